"""The newest rows of one run, in memory: durable in the journal, not yet in a sealed segment."""

from __future__ import annotations

import threading
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple, cast

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cascade_runtime.vocabulary.events import CollectiveDone, Collectives, Event, Gaps, Record
from cascade_runtime.vocabulary.schema import EVENT_TABLES
from collector.doorway import CollectiveKey, joined, key_of
from collector.hot.open_rows import OpenRows
from collector.hot.raw_rows import Converted, Raw, convert
from collector.hot.scanned import PlaceKey, scan_completions
from collector.hot.sift import Part
from collector.losses import HIGHEST_SEQ
from collector.schema.rows import events_to_table, table_to_events
from collector.wire.batch import RECORD_GROWTH, SCAN_BYTES, Batch, Scan
from collector.wire.scan_plan import DONE, NUMBER, TABLES

_ROW_BYTES = 1000
"""About what one record takes up as an object."""

FOLLOWED_S = 10.0
"""Who follows the rows comes again within this time."""

LEFT_S = 5.0
"""Sealed rows stay in memory so long for a follower who has not read them yet."""

_NAMES = {table.struct: table.name for table in EVENT_TABLES.values()}


class Snapshot(NamedTuple):
    """The hot rows as they were after one commit.

    Attributes:
        commit: the last commit that is in it.
        tables: parts of each table, oldest first; a later snapshot only ever appends.
        segments: file names of the sealed segments by table, which hold the rows before those.
        open: collectives that have not completed.
        orphans: completions whose entered record is not among the hot rows.
        num_sealed: rows of each table that went from here into segments since the store was opened.
        left: the last of those that are in memory still, for followers (``follow``), oldest first.
    """

    commit: int
    tables: dict[str, list[pa.Table]]
    segments: dict[str, list[str]]
    open: list[Collectives]
    orphans: list[CollectiveDone]
    num_sealed: dict[str, int]
    left: dict[str, list[pa.Table]]


class _Left(NamedTuple):
    """A sealed chunk, and when it was sealed."""

    at_s: float
    rows: pa.Table


class _Kept(NamedTuple):
    """The last snapshot of every table, and when it was begun."""

    began_s: float
    snapshot: Snapshot


class _Table:
    __slots__ = ("chunks", "num_bytes", "num_rows", "pending")

    def __init__(self) -> None:
        self.pending: list[Event] = []
        self.chunks: list[pa.Table] = []
        self.num_rows = 0
        self.num_bytes = 0
        """Of the chunks."""


class HotRows:
    """Rows come in by ``apply`` (the writer thread alone) and go out by ``snapshot`` and ``sealed``.

    Args:
        segments: file names of the segments that are there already, by table.
    """

    def __init__(self, segments: dict[str, list[str]] | None = None) -> None:
        self._lock = threading.Lock()
        self._converting = threading.Lock()
        self._tables: dict[str, _Table] = {}
        self._segments: dict[str, list[str]] = segments or {}
        self._open: dict[CollectiveKey, Collectives] = {}
        self._orphans: dict[CollectiveKey, CollectiveDone] = {}
        # Scanned batches, not converted yet: what they leave open, what they complete of _open.
        self._raw: list[Raw] = []
        self._raw_rows = self._raw_bytes = 0
        self._pending_bytes = 0
        """About what records that are not converted take up."""
        self._raw_open: set[PlaceKey] = set()
        self._raw_done: set[PlaceKey] = set()
        self.open_rows = OpenRows()
        self.commit = 0
        self._num_sealed: dict[str, int] = {}
        self._left: dict[str, list[_Left]] = {}
        self._followed_s = float("-inf")
        self._kept: _Kept | None = None

    @property
    def num_rows(self) -> int:
        """Rows held here, completions without their row included."""
        with self._lock:
            sealable = sum(t.num_rows for t in self._tables.values())
            return sealable + len(self._open) + len(self._orphans) + self._raw_rows

    @property
    def num_bytes(self) -> int:
        """About what all of it takes up in memory."""
        with self._lock:
            chunks = sum(table.num_bytes for table in self._tables.values())
            waiting = _ROW_BYTES * (len(self._open) + len(self._orphans))
            return chunks + waiting + self._raw_bytes + self._pending_bytes

    @property
    def num_waiting(self) -> int:
        """Rows of scanned batches that no snapshot has converted yet."""
        return self._raw_rows

    def tables(self) -> list[str]:
        """Tables that have rows here."""
        with self._lock:
            names = {name for name, table in self._tables.items() if table.num_rows}
            names.update(["collectives"] if self._open else [])
            kinds = {int(kind) for raw in self._raw for kind in np.unique(raw.scan.kinds)}
            return sorted(names | {TABLES[kind] for kind in kinds} - {DONE})

    def is_open(self, key: CollectiveKey) -> bool:
        """True for a collective that waits for its completion."""
        with self._lock:
            place = key[1:]
            return place in self._raw_open or (key in self._open and place not in self._raw_done)

    def is_orphan(self, key: CollectiveKey) -> bool:
        """True when the completion is here already, and its row is not."""
        with self._lock:
            return key in self._orphans

    # ---- in --------------------------------------------------------------------------------------

    def apply(self, commit: int, parts: Sequence[Part]) -> None:
        """Add all that one commit made durable, in one step: a snapshot holds whole commits."""
        if all(part.scan is not None for part in parts):
            with self._lock:
                self.commit = commit
                for part in parts:
                    self._add_raw(_raw_of(part))
            return
        with self._converting, self._lock:  # the others are joined with rows, not with batches
            self.commit = commit
            for part in parts:
                if part.scan is not None:
                    self._add_raw(_raw_of(part))
                    continue
                self._settle()
                if part.records is not None:
                    self._add_records(part.records)
                    self._pending_bytes += RECORD_GROWTH * len(part.body)
                for name, rows in (part.tables or {}).items():
                    self._add_table(name, rows)

    def put_table(self, name: str, rows: pa.Table) -> None:
        """Add rows that came from a file, when a run is opened again."""
        with self._lock:
            self._chunk(name, rows)

    def put_open(self, rows: pa.Table) -> None:
        """Add open collectives that came from their file, when a run is opened again."""
        with self._lock:
            for row in cast("list[Collectives]", table_to_events("collectives", rows)):
                self._enter(row)

    def put_records(self, records: Iterable[Record]) -> None:
        """Add records that are in no file, when a run is opened again."""
        with self._lock:
            self._settle()
            self._add_records(records)

    def replay_scanned(self, body: bytes, scan: Scan) -> None:
        """Add a journaled batch when a run is opened again, of which no file has anything."""
        num_done = int(np.count_nonzero(scan.kinds == NUMBER[DONE]))
        with self._lock:
            self._add_raw(Raw(body, scan, len(scan.kinds) - num_done, scan_completions(scan)))

    def replay(
        self, commit: int, batch: Batch, commits: Mapping[str, int], open_commit: int
    ) -> None:
        """Add a journaled batch when a run is opened again, less what files hold of it already.

        Args:
            commit: the batch's.
            batch: its rows.
            commits: by table, the commit up to which files hold its rows (open collectives apart).
            open_commit: the same for the file of open collectives.
        """
        in_files = {name for name, upto in commits.items() if commit <= upto}
        with self._lock:
            self._settle()
            # Collectives are joined again whether the joined rows are in a file or not: what is
            # open in the end depends on it.
            num_joined = self._num_rows_of("collectives")
            if commit > open_commit:
                lost: dict[tuple[int, int], int] = {}
                for record in batch.records or ():
                    if isinstance(record, CollectiveDone) or _is_open(record):
                        self._add_records([record])
                    else:
                        _heed(record, lost)
                self._completions_lost(lost)
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
                    self._chunk(name, rows)

    def forget_done(self, orphans: Iterable[CollectiveDone]) -> None:
        """These completions are kept elsewhere, or their rows turned out to be in files."""
        with self._lock:
            for done in orphans:
                self._orphans.pop(key_of(done), None)

    def completions_lost(self, actors: Collection[tuple[int, int]]) -> None:
        """Whether open collectives of these actors completed is not known any more."""
        with self._lock:
            self._settle()
            self._completions_lost(dict.fromkeys(actors, HIGHEST_SEQ))

    def _add_raw(self, raw: Raw) -> None:
        completions = raw.completions or scan_completions(raw.scan)
        self._raw.append(raw)
        self._raw_rows += raw.num_rows
        self._raw_bytes += len(raw.body) + SCAN_BYTES * len(raw.scan.kinds)
        for place in completions.before:
            if place in self._raw_open:
                self._raw_open.remove(place)
            else:
                self._raw_done.add(place)
        self._raw_open.update(completions.left_open)

    def _settle(self) -> None:
        """Turn the scanned batches into rows now."""
        if self._raw:
            self._add_converted(convert(self._raw))
            self._forget_raw(len(self._raw))

    def _forget_raw(self, num: int) -> None:
        """The first batches are rows now; what the others open and complete is seen anew."""
        left = self._raw[num:]
        self._raw, self._raw_rows, self._raw_bytes = [], 0, 0
        self._raw_open, self._raw_done = set(), set()
        for raw in left:
            self._add_raw(raw)

    def _add_converted(self, converted: Converted) -> None:
        for name, rows in converted.tables.items():
            self._chunk(name, rows)
        self._add_records([*converted.rare, *converted.entered, *converted.done])

    def _num_rows_of(self, name: str) -> int:
        return self._tables[name].num_rows if name in self._tables else 0

    def _take_back(self, name: str, num_rows: int) -> None:
        table = self._tables.get(name)
        while table is not None and table.num_rows > num_rows:
            table.pending.pop()
            table.num_rows -= 1

    def _enter_open(self, rows: pa.Table) -> pa.Table:
        """Enter the open collectives of a table; the others."""
        is_open = _open_mask(rows)
        waiting = table_to_events("collectives", rows.filter(is_open))
        for row in cast("list[Collectives]", waiting):
            self._enter(row)
        return rows.filter(pc.invert(is_open))

    def _add_records(self, records: Iterable[Record]) -> None:
        lost: dict[tuple[int, int], int] = {}
        for record in records:
            if isinstance(record, CollectiveDone):
                self._done(record)
            elif isinstance(record, Collectives) and _is_open(record):
                # A record says that it was entered; that it never completed is true until it does.
                self._enter(msgspec.structs.replace(record, completed=False))
            else:
                _heed(record, lost)
                self._put(record)
        self._completions_lost(lost)

    def _add_table(self, name: str, rows: pa.Table) -> None:
        if name == "collectives":
            rows = self._enter_open(rows)
        self._chunk(name, rows)

    def _chunk(self, name: str, rows: pa.Table) -> None:
        if not rows.num_rows:
            return
        table = self._tables.setdefault(name, _Table())
        table.chunks.append(rows)
        table.num_rows += rows.num_rows
        table.num_bytes += rows.nbytes

    def _put(self, row: Event) -> None:
        table = self._tables.setdefault(_NAMES[type(row)], _Table())
        table.pending.append(row)
        table.num_rows += 1

    def _enter(self, entered: Collectives) -> None:
        key = key_of(entered)
        done = self._orphans.pop(key, None)
        if done is None:
            self._open[key] = entered
        else:
            self._put(joined(entered, done))

    def _done(self, done: CollectiveDone) -> None:
        entered = self._open.pop(key_of(done), None)
        if entered is None:
            self._orphans[key_of(done)] = done
        else:
            self._put(joined(entered, done))

    def _completions_lost(self, upto: Mapping[tuple[int, int], int]) -> None:
        """Completions may be lost: what an actor has open below a seq is not known to hang.

        One pass for all gaps of a batch: a sender could make very many (docs/spool.md).
        """
        if not upto:
            return
        for key, entered in self._open.items():
            if entered.seq < upto.get((entered.rank, entered.incarnation), -1):
                self._open[key] = msgspec.structs.replace(entered, completed=None)

    # ---- out -------------------------------------------------------------------------------------

    def convert_waiting(self) -> None:
        """Turn the batches that wait into columns now, so that the next snapshot need not."""
        self.snapshot()

    def snapshot(self, names: Collection[str] | None = None, max_age_s: float = 0.0) -> Snapshot:
        """Everything here, as Arrow. Records are converted once, and not under the writer's lock.

        Args:
            names: of the tables that are wanted; every table when not given.
            max_age_s: when more than 0, one of every table will do that was begun so shortly ago or
                that nothing came after: it need not be waited for.
        """
        kept = self._kept if max_age_s > 0 else None
        if kept is not None and (
            kept.snapshot.commit == self.commit or time.monotonic() - kept.began_s < max_age_s
        ):
            return kept.snapshot
        began_s = time.monotonic()
        with self._converting:
            commit = self._convert()
            # Meanwhile the writer may add scanned batches, and nothing else (see apply).
            with self._lock:
                wanted = self._tables if names is None else self._tables.keys() & names
                pending = {n: rows for n in wanted if (rows := self._tables[n].pending)}
                is_open, orphans = list(self._open.values()), list(self._orphans.values())
            fresh = {name: events_to_table(name, rows) for name, rows in pending.items()}
            with self._lock:
                for name, rows in fresh.items():
                    self._tables[name].chunks.append(rows)
                    self._tables[name].num_bytes += rows.nbytes
                    self._tables[name].pending = []
                if not any(table.pending for table in self._tables.values()):
                    self._pending_bytes = 0
                found = Snapshot(
                    commit,
                    {n: list(t.chunks) for n in wanted if (t := self._tables[n]).chunks},
                    {name: list(files) for name, files in self._segments.items()},
                    is_open,
                    orphans,
                    dict(self._num_sealed),
                    self._left_now(),
                )
                if names is None:
                    self._kept = _Kept(began_s, found)
                return found

    def follow(self) -> Snapshot:
        """A snapshot of every table, for somebody who will come again and read on from it."""
        self._followed_s = time.monotonic()
        return self.snapshot()

    def _left_now(self) -> dict[str, list[pa.Table]]:
        """Forgets those that have been there for long."""
        oldest = time.monotonic() - LEFT_S
        for name, left in list(self._left.items()):
            self._left[name] = [one for one in left if one.at_s >= oldest]
            if not self._left[name]:
                del self._left[name]
        return {name: [one.rows for one in left] for name, left in self._left.items()}

    def _convert(self) -> int:
        """Convert the batches that wait; the commit that all rows here are of then."""
        with self._lock:
            commit, raw = self.commit, list(self._raw)
        if raw:
            converted = convert(raw)
            with self._lock:
                self._add_converted(converted)
                self._forget_raw(len(raw))
        return commit

    def sealed(self, name: str, num_chunks: int, file: str) -> None:
        """The first chunks of a table are in a segment now."""
        with self._converting, self._lock:  # no snapshot sees them in both places
            table = self._tables[name]
            gone = table.chunks[:num_chunks]
            table.chunks = table.chunks[num_chunks:]
            num_gone = sum(rows.num_rows for rows in gone)
            table.num_rows -= num_gone
            table.num_bytes -= sum(rows.nbytes for rows in gone)
            self._num_sealed[name] = self._num_sealed.get(name, 0) + num_gone
            self._kept = None  # or those rows would stay in memory
            now = time.monotonic()
            if now - self._followed_s < FOLLOWED_S:
                self._left.setdefault(name, []).extend(_Left(now, rows) for rows in gone)
            else:
                self._left.pop(name, None)
            self._segments.setdefault(name, []).append(file)

    def compact(self, name: str, num_chunks: int) -> None:
        """Put the newest of the first chunks together, as far as they are small beside each other.

        A scan pays for each chunk. The caller holds the run's ``publishing``: nothing is sealed
        meanwhile. So a row is copied as often as its chunk doubles.
        """
        with self._lock:
            chunks = self._tables[name].chunks[:num_chunks]
        start = num_chunks - 1
        num_rows = chunks[start].num_rows
        while start and chunks[start - 1].num_rows <= 2 * num_rows:
            start -= 1
            num_rows += chunks[start].num_rows
        if num_chunks - start > 1:
            one = pa.concat_tables(chunks[start:]).combine_chunks()
            with self._lock:
                table = self._tables[name]
                table.chunks[start:num_chunks] = [one]
                self._kept = None  # or the rows would be in memory twice
                table.num_bytes += one.nbytes - sum(rows.nbytes for rows in chunks[start:])

    def replace_segments(self, name: str, files: list[str]) -> None:
        """The rows of a table's segments are in these files now."""
        with self._lock:
            self._segments[name] = files
            self._kept = None  # it names files that go

    def orphans(self) -> list[CollectiveDone]:
        """Completions whose entered record is not here."""
        with self._lock:
            return list(self._orphans.values())


def _heed(record: Record, lost: dict[tuple[int, int], int]) -> None:
    """A gap that is due to damage may have swallowed completions of what was open before it."""
    if type(record) is Gaps and record.reason == "corrupt":
        actor = (record.rank, record.incarnation)
        lost[actor] = max(record.seq, lost.get(actor, -1))


def _raw_of(part: Part) -> Raw:
    assert part.scan is not None
    return Raw(part.body, part.scan, part.num_rows - part.num_done, part.completions)


def _is_open(record: Record) -> bool:
    """True for a collective that is entered; its completion makes the row whole."""
    return isinstance(record, Collectives) and record.done_seq is None and not record.completed


def _open_mask(rows: pa.Table) -> pa.ChunkedArray:
    """Whole rows that are open. Null is not: whether they completed was lost before."""
    not_completed = pc.fill_null(pc.equal(rows["completed"], pa.scalar(False)), False)
    return pc.and_(rows["done_seq"].is_null(), not_completed)
