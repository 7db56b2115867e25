"""Seals a trace: what lies in its spool becomes Parquet, then the spool is cleared.

The order makes a crash harmless at every point: files first, durable, then views.sql, and only then
are segments removed, one actor's folder at a time by one rename. In between, rows are there twice,
and readers drop copies.
"""

from __future__ import annotations

import shutil
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

import msgspec

from cascade_runtime.vocabulary.errors import BadUsage
from cascade_runtime.vocabulary.ports import SourceNote
from cascade_runtime.vocabulary.schema import EVENT_TABLES
from collector.spool_reader import SpoolFolder
from collector.trace.durable import alone_in, remove_leftovers, sync_folder
from collector.trace.trace_folder import TraceFolder
from collector.trace.trace_writer import write_tables, write_views

_DONE_WITH = ".sealed-"
"""Folders of this name in a spool hold nothing that is not sealed; hidden, so nobody reads them."""


class SealSummary(msgspec.Struct, frozen=True):
    """What sealing did.

    Attributes:
        num_rows: rows written, by table.
        num_actors: spool folders that were cleared.
        kept: spool folders left as they are (a newer release's records, or another run's).
        damaged: segments that could not be read whole; moved to ``spool/damaged/``, not deleted.
        notes: what was met on the way.
    """

    num_rows: dict[str, int]
    num_actors: int
    kept: list[str]
    damaged: list[str]
    notes: list[SourceNote]


def seal_trace(trace_dir: str | Path) -> SealSummary:
    """Move what is in a trace's spool into ``events/``; all other writers of it must have ended.

    Raises:
        BadTrace: no trace, or files in it that cannot be read; nothing is changed then.
        BadUsage: the folder cannot be written, or another process is sealing it.
    """
    root = Path(trace_dir)
    with TraceFolder(root) as trace, alone_in(root, "sealing"):
        folders = trace.spool_folders()
        kept = [folder.path.name for folder in folders if _must_stay(folder, trace.meta.run_id)]
        # Read again without the folders that stay: their torn ends are not ours to judge.
        sealing = TraceFolder(root, leave_spool=frozenset(kept)) if kept else trace
        unsealed = ((name, sealing.unsealed(name)) for name in EVENT_TABLES)
        tables = {name: rows for name, rows in unsealed if rows.num_rows}
        for folder in (root, *(root / "events").glob("*")):
            remove_leftovers(folder)
        write_tables(root, tables)
        write_views(root)
        cleared = [folder for folder in folders if folder.path.name not in kept]
        try:
            damaged = _clear(root / "spool", cleared)
        except OSError as error:
            raise BadUsage(
                f"all rows are sealed, but the spool cannot be cleared: {error.strerror}",
                where=str(error.filename or root / "spool"),
                hint="check the folder's permissions; sealing again is safe",
            ) from error
        return SealSummary(
            num_rows={name: rows.num_rows for name, rows in tables.items()},
            num_actors=len(cleared),
            kept=kept,
            damaged=damaged,
            notes=list(dict.fromkeys([*trace.notes, *sealing.notes])),
        )


def _must_stay(folder: SpoolFolder, run_id: str) -> bool:
    return folder.newer or bool(folder.runs - {run_id})


def _clear(spool: Path, folders: list[SpoolFolder]) -> list[str]:
    damaged = []
    for folder in folders:
        # Damaged segments go first: should we die before the rename, what is read is still the same.
        for segment in dict.fromkeys(folder.damaged):
            place = spool / "damaged" / folder.path.name
            place.mkdir(parents=True, exist_ok=True)
            segment.replace(place / segment.name)
            damaged.append((place / segment.name).relative_to(spool.parent).as_posix())
        folder.path.rename(spool / f"{_DONE_WITH}{folder.path.name}-{uuid4().hex}")
    if spool.is_dir():
        sync_folder(spool)
        for leftover in spool.glob(f"{_DONE_WITH}*"):
            shutil.rmtree(leftover)
        with suppress(OSError):
            spool.rmdir()  # only when nothing is left in it
    return damaged
