"""Copies of the recorded samples that are changed, row by row, into what did not happen.

::

    d = Doctored("kill-one", tmp_path)
    settled = d.row("debt", action="settled")
    d.move(settled, after=d.row("transitions", phase="committed", rank=0, new_epoch=2))
    d.save()
    settled["seq"]  # its number in the copy

A row may be given any number (``seq``, also a fraction); ``save`` numbers every actor's rows from 0
again, and what names a row by its number (``done_seq``, ``evidence``) follows. ``save(renumber=False)``
leaves holes where rows were removed.
"""

from __future__ import annotations

import json
import shutil
from bisect import bisect_left
from collections.abc import Callable, Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import pyarrow as pa

from cascade_runtime.vocabulary.schema import EVENT_TABLES
from collector.schema.arrow import arrow_schema
from collector.trace.samples import sample_traces
from collector.trace.trace_folder import open_trace
from collector.trace.trace_writer import write_tables, write_views

Row = dict[str, Any]


class Doctored:
    """One changed copy of a sample."""

    def __init__(self, sample: str, folder: Path) -> None:
        self.path = folder / sample
        shutil.copytree(sample_traces()[sample], self.path)
        self.tables: dict[str, list[Row]] = {}
        with open_trace(self.path) as source:
            for name in EVENT_TABLES:
                rows = source.table(name).to_pylist()
                self.tables[name] = sorted(rows, key=_place)
        self.meta: Row = json.loads((self.path / "trace.json").read_text())

    # --- finding -------------------------------------------------------------------------

    def rows(self, table: str, where: Callable[[Row], bool] | None = None, **is_: Any) -> list[Row]:
        """The rows of a table whose columns have these values, in order; at least one."""
        found = [
            row
            for row in self.tables[table]
            if all(row[name] == value for name, value in is_.items())
            and (where is None or where(row))
        ]
        assert found, f"the sample has no such row of {table}: {is_}"
        return found

    def row(self, table: str, where: Callable[[Row], bool] | None = None, **is_: Any) -> Row:
        """The first of ``rows``."""
        return self.rows(table, where, **is_)[0]

    def every(self, **is_: Any) -> Iterator[tuple[str, Row]]:
        """(table, row) of all rows of all tables whose columns have these values."""
        for name, rows in self.tables.items():
            for row in rows:
                if all(row[column] == value for column, value in is_.items()):
                    yield name, row

    def last(self, rank: int) -> Row:
        """The last row of a rank."""
        return max((row for _, row in self.every(rank=rank)), key=_place)

    @property
    def agent(self) -> int:
        """The host agent's number."""
        return int(self.row("actors", kind="agent")["rank"])

    # --- changing ------------------------------------------------------------------------

    def remove(self, *rows: Row) -> None:
        """Take rows out."""
        gone = {id(row) for row in rows}
        for name, kept in self.tables.items():
            self.tables[name] = [row for row in kept if id(row) not in gone]

    def move(self, row: Row, after: Row) -> None:
        """Let a row come right after another one of its actor."""
        row["seq"] = after["seq"] + 0.5
        row["wall_ns"], row["mono_ns"] = after["wall_ns"], after["mono_ns"]

    def insert(self, table: str, like: Row, after: Row, **changes: Any) -> Row:
        """A copy of a row, with changes, right after ``after`` and by its actor."""
        row = (
            deepcopy(like) | {"rank": after["rank"], "incarnation": after["incarnation"]} | changes
        )
        self.move(row, after)
        self.tables[table].append(row)
        return row

    # --- writing -------------------------------------------------------------------------

    def save(self, *, renumber: bool = True) -> Path:
        """Write the copy; the rows' ``seq`` are then those that a report names."""
        if renumber:
            self._renumber()
        shutil.rmtree(self.path / "events")
        tables = {
            name: pa.Table.from_pylist(rows, arrow_schema(name))
            for name, rows in self.tables.items()
        }
        write_tables(self.path, tables)
        (self.path / "trace.json").write_text(json.dumps(self.meta))
        write_views(self.path)
        return self.path

    def _renumber(self) -> None:
        olds: dict[tuple[int, int], list[float]] = {}
        for _, row in self.every():
            olds.setdefault(_actor(row), []).append(row["seq"])
        for numbers in olds.values():
            numbers.sort()
        for _, row in self.every():
            mine = olds[_actor(row)]
            if row.get("done_seq") is not None:
                at = bisect_left(mine, row["done_seq"])
                row["done_seq"] = at if at < len(mine) else None
            for ref in row.get("evidence") or ():
                theirs = olds.get(_actor(ref), [])
                if ref["seq"] in theirs:
                    ref["seq"] = bisect_left(theirs, ref["seq"])
        for _, row in self.every():
            row["seq"] = bisect_left(olds[_actor(row)], row["seq"])


def actor(rank: int) -> dict[str, int]:
    """A rank's first actor, as columns hold it."""
    return {"rank": rank, "incarnation": 0}


def dot(rank: int, counter: int) -> dict[str, int]:
    """An update's name, as columns hold it."""
    return {"rank": rank, "incarnation": 0, "counter": counter}


def _actor(row: Row) -> tuple[int, int]:
    return row["rank"], row["incarnation"]


def _place(row: Row) -> tuple[int, int, float]:
    return row["rank"], row["incarnation"], row["seq"]
