"""The newest rows of one run, in memory: durable in the journal, not yet in a sealed segment."""

from __future__ import annotations

import threading
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from cascade_runtime.vocabulary.events import CollectiveDone, Record
from collector.doorway import CollectiveKey, key_of
from collector.hot.left_rows import LEFT_S, LeftRows
from collector.hot.open_rows import OpenRows
from collector.hot.raw_rows import Raw, convert
from collector.hot.raw_waiting import RawWaiting
from collector.hot.row_tables import RowTables
from collector.hot.scanned import scan_completions
from collector.hot.sift import Part
from collector.hot.snapshot import Snapshot
from collector.losses import HIGHEST_SEQ
from collector.schema.rows import events_to_table
from collector.wire.batch import RECORD_GROWTH, Batch, Scan
from collector.wire.scan_plan import DONE, NUMBER


class _Kept(NamedTuple):
    """The last snapshot of every table, and when it was begun."""

    began_s: float
    snapshot: Snapshot


class HotRows:
    """Rows come in by ``apply`` (the writer thread alone) and go out by ``snapshot`` and ``sealed``.

    Args:
        segments: file names of the segments that are there already, by table.
    """

    def __init__(self, segments: dict[str, list[str]] | None = None) -> None:
        self._lock = threading.Lock()
        self._converting = threading.Lock()
        self._rows = RowTables()
        self._raw = RawWaiting()
        self._pending_bytes = 0
        """About what records that are not converted take up."""
        self._segments: dict[str, list[str]] = segments or {}
        self._num_sealed: dict[str, int] = {}
        self._left = LeftRows()
        self._kept: _Kept | None = None
        self.open_rows = OpenRows()
        self.commit = 0

    @property
    def num_rows(self) -> int:
        """Rows held here that are in no segment, completions without their row included."""
        with self._lock:
            return self._rows.num_rows + self._raw.num_rows

    @property
    def num_bytes(self) -> int:
        """About what all of it takes up in memory, sealed rows that are kept for followers included."""
        with self._lock:
            waiting = self._raw.num_bytes + self._pending_bytes
            return self._rows.num_bytes + waiting + self._left.num_bytes

    @property
    def num_waiting(self) -> int:
        """Rows of scanned batches that no snapshot has converted yet."""
        return self._raw.num_rows

    def tables(self) -> list[str]:
        """Tables that have rows here."""
        with self._lock:
            return sorted(self._rows.names() | self._raw.tables())

    def is_open(self, key: CollectiveKey) -> bool:
        """True for a collective that waits for its completion."""
        with self._lock:
            place = key[1:]
            if self._raw.leaves_open(place):
                return True
            return key in self._rows.open and not self._raw.completes(place)

    def is_orphan(self, key: CollectiveKey) -> bool:
        """True when the completion is here already, and its row is not."""
        with self._lock:
            return key in self._rows.orphans

    # ---- in --------------------------------------------------------------------------------------

    def apply(self, commit: int, parts: Sequence[Part]) -> None:
        """Add all that one commit made durable, in one step: a snapshot holds whole commits."""
        if all(part.scan is not None for part in parts):
            with self._lock:
                self.commit = commit
                for part in parts:
                    self._raw.add(_raw_of(part))
            return
        with self._converting, self._lock:  # the others are joined with rows, not with batches
            self.commit = commit
            for part in parts:
                if part.scan is not None:
                    self._raw.add(_raw_of(part))
                    continue
                self._settle()
                if part.records is not None:
                    self._rows.add_records(part.records)
                    self._pending_bytes += RECORD_GROWTH * len(part.body)
                for name, rows in (part.tables or {}).items():
                    self._rows.add_table(name, rows)

    def put_table(self, name: str, rows: pa.Table) -> None:
        """Add rows that came from a file, when a run is opened again."""
        with self._lock:
            self._rows.chunk(name, rows)

    def put_open(self, rows: pa.Table) -> None:
        """Add open collectives that came from their file, when a run is opened again."""
        with self._lock:
            self._rows.put_open(rows)

    def put_records(self, records: Iterable[Record]) -> None:
        """Add records that are in no file, when a run is opened again."""
        with self._lock:
            self._settle()
            self._rows.add_records(records)

    def replay_scanned(self, body: bytes, scan: Scan) -> None:
        """Add a journaled batch when a run is opened again, of which no file has anything."""
        num_done = int(np.count_nonzero(scan.kinds == NUMBER[DONE]))
        with self._lock:
            self._raw.add(Raw(body, scan, len(scan.kinds) - num_done, scan_completions(scan)))

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
        with self._lock:
            self._settle()
            self._rows.replay(commit, batch, commits, open_commit)

    def forget_done(self, orphans: Iterable[CollectiveDone]) -> None:
        """These completions are kept elsewhere, or their rows turned out to be in files."""
        with self._lock:
            for done in orphans:
                self._rows.orphans.pop(key_of(done), None)

    def completions_lost(self, actors: Collection[tuple[int, int]]) -> None:
        """Whether open collectives of these actors completed is not known any more."""
        with self._lock:
            self._settle()
            self._rows.completions_lost(dict.fromkeys(actors, HIGHEST_SEQ))

    def _settle(self) -> None:
        """Turn the scanned batches into rows now."""
        if self._raw.batches:
            self._rows.add_converted(convert(self._raw.batches))
            self._raw.forget(len(self._raw.batches))

    # ---- out -------------------------------------------------------------------------------------

    def convert_waiting(self) -> None:
        """Turn the batches that wait into columns now, so that the next snapshot need not.

        It is a whole snapshot, of every table, because that one is kept: a question that may be answered
        as of a moment ago (``since_s``) takes it, and neither converts nor waits.
        """
        self.snapshot()

    def snapshot(
        self, names: Collection[str] | None = None, since_s: float | None = None
    ) -> Snapshot:
        """Everything here, as Arrow. Records are converted once, and not under the writer's lock.

        Args:
            names: of the tables that are wanted; every table when not given.
            since_s: when given, one of every table will do that was begun at that monotonic time or
                later, or that nothing came after: it need not be waited for.
        """
        kept = self._kept if since_s is not None else None
        if kept is not None and (
            kept.snapshot.commit == self.commit or kept.began_s >= (since_s or 0.0)
        ):
            return kept.snapshot
        began_s = time.monotonic()
        with self._converting:
            commit = self._convert()
            # Meanwhile the writer may add scanned batches, and nothing else (see apply).
            with self._lock:
                tables = self._rows.by_name
                wanted = tables if names is None else tables.keys() & names
                pending = {n: rows for n in wanted if (rows := tables[n].pending)}
                is_open = list(self._rows.open.values())
                orphans = list(self._rows.orphans.values())
            fresh = {name: events_to_table(name, rows) for name, rows in pending.items()}
            sizes = {name: rows.nbytes for name, rows in fresh.items()}
            with self._lock:
                for name, rows in fresh.items():
                    tables[name].chunks.append(rows)
                    tables[name].num_bytes += sizes[name]
                    tables[name].pending = []
                if not any(table.pending for table in tables.values()):
                    self._pending_bytes = 0
                found = Snapshot(
                    commit,
                    {n: list(t.chunks) for n in wanted if (t := tables[n]).chunks},
                    {name: list(files) for name, files in self._segments.items()},
                    is_open,
                    orphans,
                    dict(self._num_sealed),
                    self._left.tables(),
                )
                if names is None:
                    self._kept = _Kept(began_s, found)
                return found

    def follow(self) -> Snapshot:
        """A snapshot of every table, for somebody who will come again and read on from it."""
        self._left.followed()
        return self.snapshot()

    def forget_left(self) -> None:
        """Let go of what was kept for readers who do not come any more."""
        with self._lock:
            self._left.forget()
            kept = self._kept
            if kept is not None and time.monotonic() - kept.began_s >= LEFT_S:
                self._kept = None  # it holds sealed rows, too

    def _convert(self) -> int:
        """Convert the batches that wait; the commit that all rows here are of then."""
        with self._lock:
            commit, raw = self.commit, list(self._raw.batches)
        if raw:
            converted = convert(raw)
            with self._lock:
                self._rows.add_converted(converted)
                self._raw.forget(len(raw))
        return commit

    def sealed(self, name: str, num_chunks: int, file: str) -> None:
        """The first chunks of a table are in a segment now; the caller holds the run's ``publishing``."""
        with self._lock:
            gone = self._rows.by_name[name].chunks[:num_chunks]
        # Arrow counts them column by column, which is long for who waits for the lock.
        sizes = [rows.nbytes for rows in gone]
        with self._converting, self._lock:  # no snapshot sees them in both places
            table = self._rows.by_name[name]
            table.chunks = table.chunks[num_chunks:]
            num_gone = sum(rows.num_rows for rows in gone)
            table.num_rows -= num_gone
            table.num_bytes -= sum(sizes)
            self._num_sealed[name] = self._num_sealed.get(name, 0) + num_gone
            self._kept = None  # or those rows would stay in memory
            self._left.sealed(name, gone, sizes)
            self._segments.setdefault(name, []).append(file)

    def compact(self, name: str, num_chunks: int) -> None:
        """Put the newest of the first chunks together, as far as they are small beside each other.

        A scan pays for each chunk. The caller holds the run's ``publishing``: nothing is sealed
        meanwhile. So a row is copied as often as its chunk doubles.
        """
        with self._lock:
            chunks = self._rows.by_name[name].chunks[:num_chunks]
        start = num_chunks - 1
        num_rows = chunks[start].num_rows
        while start and chunks[start - 1].num_rows <= 2 * num_rows:
            start -= 1
            num_rows += chunks[start].num_rows
        if num_chunks - start > 1:
            one = pa.concat_tables(chunks[start:]).combine_chunks()
            grown = one.nbytes - sum(rows.nbytes for rows in chunks[start:])
            with self._lock:
                table = self._rows.by_name[name]
                table.chunks[start:num_chunks] = [one]
                self._kept = None  # or the rows would be in memory twice
                table.num_bytes += grown

    def replace_segments(self, name: str, files: list[str]) -> None:
        """The rows of a table's segments are in these files now."""
        with self._lock:
            self._segments[name] = files
            self._kept = None  # it names files that go

    def orphans(self) -> list[CollectiveDone]:
        """Completions whose entered record is not here."""
        with self._lock:
            return list(self._rows.orphans.values())


def _raw_of(part: Part) -> Raw:
    assert part.scan is not None
    assert part.completions is not None
    return Raw(part.body, part.scan, part.num_rows - part.num_done, part.completions)
