"""One digest a table: equal where the rows are equal, whatever their order and files."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import xxhash

from cascade_runtime.vocabulary.schema import EVENT_TABLES
from collector.trace.trace_folder import open_trace

_ORDER = [(name, "ascending") for name in ("rank", "incarnation", "seq")]


def row_digests(trace: Path) -> dict[str, str]:
    """Digest by event table, of all columns of all rows."""
    with open_trace(trace) as source:
        return {name: _digest(source.table(name)) for name in EVENT_TABLES}


def _digest(rows: pa.Table) -> str:
    whole = rows.sort_by(_ORDER).combine_chunks()
    # Rebuilt from values: buffers may differ in what lies under nulls.
    return xxhash.xxh3_64_hexdigest(repr(whole.to_pylist()).encode())


def missing_and_doubled(trace: Path) -> tuple[list[tuple[int, int, int]], int]:
    """Holes as (rank, incarnation, seq before the hole), and how many seqs are there twice."""
    seqs: dict[tuple[int, int], list[int]] = {}
    with open_trace(trace) as source:
        for name in EVENT_TABLES:
            rows = source.table(name, ["rank", "incarnation", "seq"]).to_pydict()
            for rank, incarnation, seq in zip(*rows.values(), strict=True):
                seqs.setdefault((rank, incarnation), []).append(seq)
    holes = []
    doubled = 0
    for actor, mine in seqs.items():
        mine.sort()
        doubled += len(mine) - len(set(mine))
        before = -1
        for seq in mine:
            if seq > before + 1:
                holes.append((*actor, before))
            before = seq
    return holes, doubled
