"""A run's rows in memory, table by table, and the collectives among them that wait for their completion."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import cast

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from cascade_runtime.vocabulary.events import CollectiveDone, Collectives, Event, Gaps, Record
from cascade_runtime.vocabulary.schema import EVENT_TABLES
from collector.doorway import CollectiveKey, joined, key_of
from collector.hot.raw_rows import Converted
from collector.schema.rows import table_to_events
from collector.wire.batch import Batch

_ROW_BYTES = 1000
"""About what one record takes up as an object."""

_NAMES = {table.struct: table.name for table in EVENT_TABLES.values()}


class TableRows:
    """Rows of one table.

    Attributes:
        pending: records that are not converted yet; they come behind the chunks.
        chunks: rows as Arrow, oldest first.
        num_rows: of both.
        num_bytes: of the chunks.
    """

    __slots__ = ("chunks", "num_bytes", "num_rows", "pending")

    def __init__(self) -> None:
        self.pending: list[Event] = []
        self.chunks: list[pa.Table] = []
        self.num_rows = 0
        self.num_bytes = 0


class RowTables:
    """All tables. Whoever uses it holds the run's lock.

    Attributes:
        by_name: the rows of each table; open collectives are in none.
        open: collectives that have not completed.
        orphans: completions whose entered record is not here.
    """

    def __init__(self) -> None:
        self.by_name: dict[str, TableRows] = {}
        self.open: dict[CollectiveKey, Collectives] = {}
        self.orphans: dict[CollectiveKey, CollectiveDone] = {}

    @property
    def num_rows(self) -> int:
        """Rows, completions without their row included."""
        sealable = sum(table.num_rows for table in self.by_name.values())
        return sealable + len(self.open) + len(self.orphans)

    @property
    def num_bytes(self) -> int:
        """About what they take up; records that are not converted apart."""
        chunks = sum(table.num_bytes for table in self.by_name.values())
        return chunks + _ROW_BYTES * (len(self.open) + len(self.orphans))

    def names(self) -> set[str]:
        """Tables that have rows here."""
        found = {name for name, table in self.by_name.items() if table.num_rows}
        return found | ({"collectives"} if self.open else set())

    def add_converted(self, converted: Converted) -> None:
        """Add what was made of scanned batches."""
        for name, rows in converted.tables.items():
            self.chunk(name, rows)
        self.add_records([*converted.rare, *converted.entered, *converted.done])

    def add_records(self, records: Iterable[Record]) -> None:
        """Add records as they came."""
        lost: dict[tuple[int, int], int] = {}
        for record in records:
            if isinstance(record, CollectiveDone):
                self._complete(record)
            elif isinstance(record, Collectives) and _is_open(record):
                # A record says that it was entered; that it never completed is true until it does.
                self._enter(msgspec.structs.replace(record, completed=False))
            else:
                _heed(record, lost)
                self._put(record)
        self.completions_lost(lost)

    def add_table(self, name: str, rows: pa.Table) -> None:
        """Add rows that came as Arrow."""
        if name == "collectives":
            rows = self._enter_open(rows)
        self.chunk(name, rows)

    def chunk(self, name: str, rows: pa.Table) -> None:
        """Add rows as they are stored."""
        if not rows.num_rows:
            return
        table = self.by_name.setdefault(name, TableRows())
        table.chunks.append(rows)
        table.num_rows += rows.num_rows
        table.num_bytes += rows.nbytes

    def put_open(self, rows: pa.Table) -> None:
        """Add open collectives."""
        for row in cast("list[Collectives]", table_to_events("collectives", rows)):
            self._enter(row)

    def completions_lost(self, upto: Mapping[tuple[int, int], int]) -> None:
        """Completions may be lost: what an actor has open below a seq is not known to hang.

        One pass for all gaps of a batch: a sender could make very many (docs/spool.md).
        """
        if not upto:
            return
        for key, entered in self.open.items():
            if entered.seq < upto.get((entered.rank, entered.incarnation), -1):
                self.open[key] = msgspec.structs.replace(entered, completed=None)

    def replay(
        self, commit: int, batch: Batch, commits: Mapping[str, int], open_commit: int
    ) -> None:
        """See HotRows.replay."""
        in_files = {name for name, upto in commits.items() if commit <= upto}
        # Collectives are joined again whether the joined rows are in a file or not: what is
        # open in the end depends on it.
        num_joined = self._num_rows_of("collectives")
        if commit > open_commit:
            lost: dict[tuple[int, int], int] = {}
            for record in batch.records or ():
                if isinstance(record, CollectiveDone) or _is_open(record):
                    self.add_records([record])
                else:
                    _heed(record, lost)
            self.completions_lost(lost)
            if batch.tables and "collectives" in batch.tables:
                self._enter_open(batch.tables["collectives"])
        if "collectives" in in_files:
            self._take_back("collectives", num_joined)
        for record in batch.records or ():
            if isinstance(record, CollectiveDone) or _is_open(record):
                continue
            if _NAMES[type(record)] not in in_files:
                self._put(record)
        for name, sent in (batch.tables or {}).items():
            if name not in in_files:
                is_open = _open_mask(sent) if name == "collectives" else None
                rows = sent if is_open is None else sent.filter(pc.invert(is_open))
                self.chunk(name, rows)

    def _num_rows_of(self, name: str) -> int:
        return self.by_name[name].num_rows if name in self.by_name else 0

    def _take_back(self, name: str, num_rows: int) -> None:
        table = self.by_name.get(name)
        while table is not None and table.num_rows > num_rows:
            table.pending.pop()
            table.num_rows -= 1

    def _enter_open(self, rows: pa.Table) -> pa.Table:
        """Enter the open collectives of a table; the others."""
        is_open = _open_mask(rows)
        self.put_open(rows.filter(is_open))
        return rows.filter(pc.invert(is_open))

    def _put(self, row: Event) -> None:
        table = self.by_name.setdefault(_NAMES[type(row)], TableRows())
        table.pending.append(row)
        table.num_rows += 1

    def _enter(self, entered: Collectives) -> None:
        key = key_of(entered)
        done = self.orphans.pop(key, None)
        if done is None:
            self.open[key] = entered
        else:
            self._put(joined(entered, done))

    def _complete(self, done: CollectiveDone) -> None:
        entered = self.open.pop(key_of(done), None)
        if entered is None:
            self.orphans[key_of(done)] = done
        else:
            self._put(joined(entered, done))


def _heed(record: Record, lost: dict[tuple[int, int], int]) -> None:
    """A gap that is due to damage may have swallowed completions of what was open before it."""
    if type(record) is Gaps and record.reason == "corrupt":
        actor = (record.rank, record.incarnation)
        lost[actor] = max(record.seq, lost.get(actor, -1))


def _is_open(record: Record) -> bool:
    """True for a collective that is entered; its completion makes the row whole."""
    return isinstance(record, Collectives) and record.done_seq is None and not record.completed


def _open_mask(rows: pa.Table) -> pa.ChunkedArray:
    """Whole rows that are open. Null is not: whether they completed was lost before."""
    not_completed = pc.fill_null(pc.equal(rows["completed"], pa.scalar(False)), False)
    return pc.and_(rows["done_seq"].is_null(), not_completed)
