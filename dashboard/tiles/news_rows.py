"""The rows that come, as the store hands them out, in the form in which tiles read them.

What a column becomes here is what the statements of rows.py make of it; a test compares the two.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from analyzer.instances import N_TO_N, N_TO_ONE, ONE_TO_N
from collector.storage._interface import News
from dashboard.tiles.edges_native import Ints
from dashboard.tiles.rows import (
    ACTORS,
    COLLECTIVES,
    COMPUTE,
    CPU,
    GPU,
    GROUPS,
    NONE,
    UNKNOWN,
    Rows,
)

_NUMBER = ("rank", "incarnation", "seq", "wall_ns")
_COLUMNS = {
    "collectives": ("comm_id", "cseq", "op", "root", "start_ns", "enter_ns", "complete_ns"),
    "groups": ("comm_id", "members"),
    "gpu": ("util_pct",),
    "health": ("detector", "signal", "unit", "value"),
    "compute": ("start_ns", "end_ns"),
    "actors": ("kind",),
}
_WHAT = {
    "collectives": COLLECTIVES, "groups": GROUPS, "gpu": GPU, "health": CPU, "compute": COMPUTE,
    "actors": ACTORS,
}  # fmt: skip
_KINDS = dict.fromkeys(N_TO_N, 0) | dict.fromkeys(ONE_TO_N, 1) | dict.fromkeys(N_TO_ONE, 2)


def rows_after(news: News, place: Mapping[str, int]) -> Rows | None:
    """The rows beyond a place, less collectives that have not completed; None where some are not at hand."""
    parts: list[Rows] = []
    for name, columns in _COLUMNS.items():
        found = news.after(place, name)
        if found is None:
            return None
        if found:
            wanted = [part.select([*_NUMBER, *columns]) for part in found]
            parts.append(_rows_of(name, pa.concat_tables(wanted)))
    return _empty().and_all(parts)


def open_rows(news: News) -> Rows:
    """Every collective that has not completed."""
    return _rows_of("collectives", news.open())


def _empty() -> Rows:
    return _made(COLLECTIVES, {name: np.zeros(0, np.int64) for name in _NUMBER})


def _rows_of(name: str, table: pa.Table) -> Rows:
    if name == "health":
        is_sample = pc.and_(
            pc.and_(pc.equal(table["detector"], "cpu"), pc.equal(table["signal"], "cpu_busy")),
            pc.equal(table["unit"], "percent"),
        )
        table = table.filter(is_sample)
    known: dict[str, Any] = {column: _ints(table[column], NONE) for column in _NUMBER}
    if name == "collectives":
        begin = pc.coalesce(table["start_ns"], table["enter_ns"], table["wall_ns"])
        known |= {"cseq": _ints(table["cseq"], NONE), "root": _ints(table["root"], NONE)}
        known |= {"kind": _kinds(table["op"]), "comm": table["comm_id"]}
        known |= {"begin_ns": _ints(begin, UNKNOWN), "end_ns": _ints(table["complete_ns"], UNKNOWN)}
    elif name == "groups":
        sizes = pc.list_value_length(table["members"])
        known |= {"cseq": _ints(sizes, NONE), "comm": table["comm_id"]}
    elif name in ("gpu", "health"):
        value = table["util_pct" if name == "gpu" else "value"]
        known["value"] = pc.fill_null(value, np.nan).to_numpy().astype(np.float64)
    elif name == "compute":
        known |= {"begin_ns": _ints(table["start_ns"], UNKNOWN)}
        known |= {"end_ns": _ints(table["end_ns"], UNKNOWN)}
    else:
        is_agent = pc.fill_null(pc.equal(table["kind"], "agent"), False)
        known["kind"] = is_agent.to_numpy().astype(np.int64)
    return _made(_WHAT[name], known)


def _made(what: int, known: dict[str, Any]) -> Rows:
    num = len(known["rank"])
    every: dict[str, Any] = {name: np.full(num, NONE) for name in ("cseq", "kind", "root")}
    every |= {name: np.full(num, UNKNOWN) for name in ("begin_ns", "end_ns")}
    every |= {"what": np.full(num, what), "value": np.full(num, np.nan), **known}
    comm = every.pop("comm", None)
    words = pa.nulls(num, pa.string()) if comm is None else comm.combine_chunks()
    return Rows(**every, comm=words)


def _ints(column: Any, null: int) -> Ints:
    filled = pc.fill_null(column.cast(pa.int64()), null) if column.null_count else column
    found: Ints = filled.to_numpy().astype(np.int64, copy=False)
    return found


def _kinds(op: Any) -> Ints:
    """As the operation's word says; NONE where it is another one, or none."""
    coded = op.combine_chunks().dictionary_encode()
    kinds = [_KINDS.get(word, NONE) for word in coded.dictionary.to_pylist()]
    places = coded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    found: Ints = np.array([*kinds, NONE], np.int64)[places]
    return found
