"""The runs of an embedded store, as they are found when it is opened."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from pathlib import Path

import msgspec

from cascade_runtime.vocabulary.events import CollectiveDone
from collector.data_folder import run_folder
from collector.hot.hot_rows import HotRows
from collector.hot.journal import Journal, JournalRow, RunRow
from collector.hot.run import Run
from collector.hot.sift import sift
from collector.storage._interface import NoSuchRun, RunDropped
from collector.wire.decode import decode

_orphans = msgspec.msgpack.Decoder(list[CollectiveDone])


class Catalog:
    """Every run, by run_id. Runs are added by the writer thread and read by any.

    Args:
        data: the data folder.
    """

    def __init__(self, data: Path) -> None:
        self._data = data
        self._lock = threading.Lock()
        self._runs: dict[str, Run] = {}
        self._dropped: set[str] = set()

    def find(self, run_id: str) -> Run:
        """One run.

        Raises:
            NoSuchRun: none of that id, or it was dropped.
        """
        with self._lock:
            run = self._runs.get(run_id)
        if run is None:
            raise NoSuchRun(
                "there is no such run here", where=run_id[:200], hint="see GET /v1/runs"
            )
        return run

    def make(self, run_id: str, wall_ns: int) -> tuple[Run, RunRow | None]:
        """The run, made when it is new; then also its row, which the catalog does not have yet.

        Raises:
            RunDropped: it was dropped.
        """
        with self._lock:
            run = self._runs.get(run_id)
            if run is not None:
                return run, None
            if run_id in self._dropped:
                raise RunDropped("this run was dropped, and is not taken again", where=run_id[:200])
            row = RunRow(run_id, "hot", None, wall_ns, wall_ns, 0, 0, None)
            run = self._runs[run_id] = Run(row, run_folder(self._data, run_id))
            return run, row

    def is_dropped(self, run_id: str) -> bool:
        """True when retention dropped the run."""
        with self._lock:
            return run_id in self._dropped

    def forget(self, run_id: str) -> None:
        """A run that was made could not be stored, so it never was."""
        with self._lock:
            self._runs.pop(run_id, None)

    def drop(self, run_id: str) -> None:
        """The run is gone."""
        with self._lock:
            self._runs.pop(run_id, None)
            self._dropped.add(run_id)

    def all(self) -> list[Run]:
        """Every run, the newest first."""
        with self._lock:
            runs = list(self._runs.values())
        return sorted(runs, key=lambda run: run.first_seen_ns, reverse=True)

    def load(self, journal: Journal) -> int:
        """Read what an earlier collector left; the highest commit number that was given.

        Raises:
            BadTrace: a tail cannot be read.
        """
        for row in journal.runs():
            if row.state == "dropped":
                self._dropped.add(row.run_id)
            else:
                self._runs[row.run_id] = Run(row, run_folder(self._data, row.run_id))
        for run_id, rank, incarnation, kind, first, last in journal.spans():
            if run_id in self._runs:
                known = self._runs[run_id].known_of((rank, incarnation))
                (known.covered if kind == "covered" else known.stored).add(first, last)
        for run_id, rank, incarnation in journal.damaged():
            if run_id in self._runs:
                self._runs[run_id].damaged.add((rank, incarnation))
        orphans = {row.run_id: row.orphans for row in journal.runs() if row.orphans}
        batches: dict[str, list[JournalRow]] = {}
        highest = max((run.flushed_commit for run in self._runs.values()), default=0)
        for batch in journal.batches():
            batches.setdefault(batch.run_id, []).append(batch)
            highest = max(highest, batch.commit_no)
        for run_id, run in self._runs.items():
            left = batches.get(run_id, [])
            if run.state == "hot" or left:
                run.state = "hot"
                highest = max(highest, restore(run, orphans.get(run_id), left))
            else:
                found = run.files.find_all()
                run.rows = HotRows({name: files.segments for name, files in found.items()})
                run.rows.is_closed = True
        return highest


def restore(run: Run, orphans: bytes | None, left: Iterable[JournalRow]) -> int:
    """Bring a run's newest rows back into memory: its tails, then batches that are in no file.

    Args:
        run: its spans are those of its last flush; they grow by the batches.
        orphans: MessagePack of the orphaned completions at that flush.
        left: journaled batches of the run, in the order of their commits.

    Returns:
        The highest commit that its files or batches name.
    """
    run.files.clean()
    found = run.files.find_all()
    run.rows = HotRows({name: list(files.segments) for name, files in found.items()})
    commits = {name: files.commit for name, files in found.items()}
    for name, files in found.items():
        if files.tail is not None:
            run.rows.put_table(name, files.tail)
            run.num_published[name] = files.tail.num_rows
    still_open, open_commit = run.files.find_open()
    run.rows.put_open(still_open)
    if orphans:
        run.rows.put_records(_orphans.decode(orphans))
    highest = max([run.flushed_commit, open_commit, *commits.values()])
    for batch in left:
        _replay(run, batch, commits, open_commit)
        highest = max(highest, batch.commit_no)
    run.rows.commit = highest
    return highest


def _replay(run: Run, row: JournalRow, commits: dict[str, int], open_commit: int) -> None:
    """Add the rows of a journaled batch that no file has (see run_files)."""
    batch = decode(row.media_type, row.body)
    # Only for what is known of the actors: the journal holds nothing twice.
    for part in sift(batch, lambda key: run.known_of(key[1:]).stored, lambda done: True):
        run.cover(part)
    run.rows.replay(row.commit_no, batch, commits, open_commit)
