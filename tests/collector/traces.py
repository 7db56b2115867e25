"""Small traces for the tests, and a writer of spool segments (the runtime has its own, in the job)."""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from cascade_runtime.vocabulary import codec
from cascade_runtime.vocabulary.events import CollectiveDone, Collectives, Steps
from cascade_runtime.vocabulary.schema import EVENT_TABLES
from cascade_runtime.vocabulary.spool_format import RECORD, pack_header
from cascade_runtime.vocabulary.trace_meta import TraceMeta
from collector.schema.rows import table_to_events
from collector.trace.trace_folder import TraceFolder, open_trace
from collector.trace.trace_writer import write_meta, write_views

RUN = "run-1"


def make_meta(**changes: Any) -> TraceMeta:
    fields = {
        "schema_version": 1,
        "run_id": RUN,
        "name": "small",
        "world_size": 2,
        "mode": "enforce",
        "policy": None,
        "created_ns": 1_000,
        "ended_ns": 9_000,
        "clean_end": True,
        "recorded_tables": sorted(EVENT_TABLES),
        "tool_versions": {"cascade-timelines": "0.1.0"},
    }
    return TraceMeta(**(fields | changes))


def make_trace(folder: Path, **changes: Any) -> Path:
    """An empty trace."""
    write_meta(folder, make_meta(**changes))
    write_views(folder)
    return folder


def leading(seq: int, rank: int = 0) -> dict[str, Any]:
    return {
        "run_id": RUN,
        "rank": rank,
        "incarnation": 0,
        "seq": seq,
        "group_id": "world",
        "epoch": 0,
        "regime": None,
        "step": seq,
        "wall_ns": 2_000 + seq,
        "mono_ns": seq,
    }


def step(seq: int, rank: int = 0, **changes: Any) -> Steps:
    fields = {"phase": "begin", "loss": None, "num_samples": 8}
    return Steps(**(leading(seq, rank) | fields | changes))


def entered(seq: int, rank: int = 0, **changes: Any) -> Collectives:
    fields = {"comm_id": "c", "cseq": seq, "op": "all_reduce", "enter_ns": 2_000 + seq}
    return Collectives(**(leading(seq, rank) | fields | changes))


def done(seq: int, rank: int = 0, **changes: Any) -> CollectiveDone:
    fields = {"done_seq": seq + 1, "start_ns": 2_001 + seq, "complete_ns": 2_002 + seq}
    return CollectiveDone(run_id=RUN, rank=rank, incarnation=0, seq=seq, **(fields | changes))


def frame(payload: bytes) -> bytes:
    return RECORD.pack(len(payload), zlib.crc32(payload)) + payload


def segment(records: Iterable[Any], first_seq: int = 0) -> bytes:
    """Records, or payloads that are bytes already, as one segment."""
    payloads = (r if isinstance(r, bytes) else codec.pack(r) for r in records)
    return pack_header(first_seq) + b"".join(map(frame, payloads))


def write_spool(trace: Path, actor: str, *segments: bytes) -> Path:
    folder = trace / "spool" / actor
    folder.mkdir(parents=True)
    for number, data in enumerate(segments):
        (folder / f"{number}.seg").write_bytes(data)
    return folder


def rows_of(trace: Path | TraceFolder, *tables: str) -> dict[str, list[Any]]:
    """All rows of a trace by table, in key order; tables without rows are left out."""
    if not isinstance(trace, TraceFolder):
        with open_trace(trace) as opened:
            return rows_of(opened, *tables)
    found = {}
    for name in tables or EVENT_TABLES:
        rows = table_to_events(name, trace.table(name))
        if rows:
            found[name] = sorted(
                rows, key=lambda row: (row.rank, row.incarnation, row.seq, repr(row))
            )
    return found


def notes_of(trace: Path) -> list[str]:
    with open_trace(trace) as opened:
        for name in EVENT_TABLES:
            opened.table(name)
        return [f"{note.where}: {note.what}" for note in opened.notes]


def everything_under(folder: Path) -> dict[str, Any]:
    """Names, sizes and times of all that lies in a folder: equal when nothing was written."""
    return {
        str(path.relative_to(folder)): (path.stat().st_mtime_ns, path.stat().st_size)
        for path in sorted(folder.rglob("*"))
    }
