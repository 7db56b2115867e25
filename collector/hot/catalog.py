"""The runs of an embedded store, as they are found when it is opened."""

from __future__ import annotations

import shutil
import threading
from pathlib import Path

from collector.data_folder import run_folder, runs_folder
from collector.hot.journal import Journal, JournalRow, RunRow
from collector.hot.restore import restore
from collector.hot.run import Run
from collector.storage._interface import NoSuchRun, RunDropped


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
        self._latest_ns = 0

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
            now = self._later(wall_ns)
            row = RunRow(run_id, "hot", None, now, now, 0, 0, None)
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

    def num_hot_rows(self) -> int:
        """Rows in memory of the runs that rows may come for."""
        with self._lock:
            runs = [run for run in self._runs.values() if run.state == "hot"]
        return sum(run.rows.num_rows for run in runs)

    def now(self, wall_ns: int) -> int:
        """The wall clock, but never back: a run that comes later is not older than those before."""
        with self._lock:
            return self._later(wall_ns)

    def _later(self, wall_ns: int) -> int:
        self._latest_ns = max(wall_ns, self._latest_ns + 1)
        return self._latest_ns

    def load(self, journal: Journal) -> int:
        """Read what an earlier collector left; the highest commit number that was given.

        Raises:
            BadTrace: a file of a run cannot be read.
        """
        rows = {row.run_id: row for row in journal.runs()}
        batches: dict[str, list[JournalRow]] = {}
        highest = max((row.commit_no for row in rows.values()), default=0)
        for batch in journal.batches():
            batches.setdefault(batch.run_id, []).append(batch)
            highest = max(highest, batch.commit_no)
        for run_id, row in rows.items():
            self._latest_ns = max(self._latest_ns, row.first_seen_ns, row.last_seen_ns)
            if row.state == "dropped":
                self._dropped.add(run_id)
            else:
                self._runs[run_id] = Run(row, run_folder(self._data, run_id))
        for run_id, rank, incarnation, kind, first, last in journal.spans():
            if run_id in self._runs:
                known = self._runs[run_id].known_of((rank, incarnation))
                (known.covered if kind == "covered" else known.stored).add(first, last)
        for run_id, rank, incarnation in journal.damaged():
            if run_id in self._runs:
                self._runs[run_id].damaged.add((rank, incarnation))
        for run_id, run in self._runs.items():
            left = batches.get(run_id, [])
            highest = max(highest, restore(run, rows[run_id].orphans, left))
            if left or run.num_published:
                run.state = "hot"
        self._clean()
        return highest

    def _clean(self) -> None:
        """Remove folders of dropped runs that a killed collector left behind."""
        for run_id in self._dropped:
            shutil.rmtree(run_folder(self._data, run_id), ignore_errors=True)
        for folder in runs_folder(self._data).glob(".dropped-*"):
            shutil.rmtree(folder, ignore_errors=True)
