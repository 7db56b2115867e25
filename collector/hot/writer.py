"""The one writer thread: takes what is queued, drops duplicates, commits once a group, answers.

Acknowledged means committed: DuckDB syncs its write-ahead log once a commit, so a group of batches
costs one sync.
"""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from typing import Any, NamedTuple

import duckdb

from cascade_runtime.vocabulary.errors import CascadeError
from cascade_runtime.vocabulary.events import CollectiveDone
from collector.hot.bridge import bridge
from collector.hot.catalog import Catalog
from collector.hot.journal import Journal, RunRow
from collector.hot.options import StoreOptions
from collector.hot.run import Run
from collector.hot.sift import ActorKey, Part, sift
from collector.hot.spans import Known, Spans
from collector.storage._interface import DiskLow, Mark, QueueFull, Receipt, StoreDown
from collector.wire.batch import Batch

_log = logging.getLogger("cascade.store")
_STOP = None


class _Job(NamedTuple):
    batch: Batch
    answer: Future[Receipt]


class _Task(NamedTuple):
    do: Callable[[], Any]
    answer: Future[Any]


class _Sifted(NamedTuple):
    job: _Job
    parts: list[Part]


class Writer:
    """The only one who changes the journal and the spans.

    Args:
        journal: open.
        catalog: loaded.
        options: limits.
        first_commit: the number of the next commit.
        disk_is_low: says what is wrong with the disk; None when there is room.
    """

    def __init__(
        self,
        journal: Journal,
        catalog: Catalog,
        options: StoreOptions,
        first_commit: int,
        disk_is_low: Callable[[], str | None],
    ) -> None:
        self._journal = journal
        self._catalog = catalog
        self._options = options
        self._next_commit = first_commit
        self._disk_is_low = disk_is_low
        self._queue: queue.SimpleQueue[_Job | _Task | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._queued_rows = 0
        self._queued_bytes = 0
        self._stopping = False
        self.problem: str | None = None
        self.num_commits = self.num_rows = self.num_duplicates = self.num_reopened = 0
        self._thread = threading.Thread(target=self._run, name="cascade-writer", daemon=True)
        self._thread.start()

    @property
    def num_queued_rows(self) -> int:
        """Rows taken and not yet durable."""
        return self._queued_rows

    # ---- from any thread -------------------------------------------------------------------------

    def append(self, batch: Batch) -> Future[Receipt]:
        """Queue a batch.

        Raises:
            QueueFull, StoreDown: nothing was taken.
        """
        answer: Future[Receipt] = Future()
        with self._lock:
            if self._stopping:
                raise StoreDown("the collector is stopping", hint="send it again in a while")
            if (
                self._queued_rows + batch.num_rows > self._options.max_queued_rows
                or self._queued_bytes + len(batch.body) > self._options.max_queued_bytes
            ) and self._queued_rows:
                raise QueueFull(
                    f"{self._queued_rows} rows are waiting to be stored",
                    hint="send it again in a while",
                )
            self._queued_rows += batch.num_rows
            self._queued_bytes += len(batch.body)
            self._queue.put(_Job(batch, answer))
        return answer

    def do(self, task: Callable[[], Any]) -> Future[Any]:
        """Run something in the writer thread, between two commits.

        Raises:
            StoreDown: the writer has ended.
        """
        answer: Future[Any] = Future()
        with self._lock:
            if not self._thread.is_alive():
                raise StoreDown("the store is closed")
            self._queue.put(_Task(task, answer))
        return answer

    def stop(self, deadline_s: float) -> bool:
        """Take nothing more, store what was taken; False when that takes longer than the deadline."""
        with self._lock:
            self._stopping = True
        self._queue.put(_STOP)
        self._thread.join(deadline_s)
        return not self._thread.is_alive()

    # ---- the thread ------------------------------------------------------------------------------

    def _run(self) -> None:
        while True:
            jobs, tasks, stop = self._gather()
            if jobs:
                self._store(jobs)
            for task in tasks:
                self._perform(task)
            if stop:
                return

    def _gather(self) -> tuple[list[_Job], list[_Task], bool]:
        """Wait for something, then take what is there, up to one group of rows."""
        jobs: list[_Job] = []
        tasks: list[_Task] = []
        num_rows = 0
        item = self._queue.get()
        while True:
            if item is _STOP:
                return jobs, tasks, True
            if isinstance(item, _Job):
                jobs.append(item)
                num_rows += item.batch.num_rows
            elif item is not None:
                tasks.append(item)
            if num_rows >= self._options.group_rows:
                return jobs, tasks, False
            try:
                item = self._queue.get_nowait()
            except queue.Empty:
                return jobs, tasks, False

    def _perform(self, task: _Task) -> None:
        try:
            task.answer.set_result(task.do())
        except duckdb.Error as error:
            self._reopen(error)
            self._fail(task.answer, self._why(error))
        except Exception as error:
            self._fail(task.answer, error)

    def _store(self, jobs: list[_Job]) -> None:
        with self._lock:
            self._queued_rows -= sum(job.batch.num_rows for job in jobs)
            self._queued_bytes -= sum(len(job.batch.body) for job in jobs)
        group = _Group(self._catalog, self._options)
        sifted = [done for job in jobs if (done := self._sift(job, group)) is not None]
        parts = [part for done in sifted for part in done.parts if part.num_rows]
        parts = [*group.bridges, *parts]
        if parts and not self._commit(parts, group, sifted):
            return
        for part in parts:
            run = self._catalog.find(part.run_id)
            run.rows.apply(self._next_commit - 1, part)
            run.state = "hot"
            run.seen(self._options.wall_ns(), self._options.mono_s())
        for done in sifted:
            self._acknowledge(done)

    def _sift(self, job: _Job, group: _Group) -> _Sifted | None:
        try:
            return _Sifted(job, group.sift(job.batch))
        except CascadeError as error:
            self._fail(job.answer, error)
        except Exception as error:
            _log.exception("a batch could not be sifted")
            self._fail(job.answer, StoreDown(f"this batch could not be stored: {error!r}"[:300]))
        return None

    def _commit(self, parts: list[Part], group: _Group, sifted: list[_Sifted]) -> bool:
        """True when the parts are durable; else all is as it was, and the senders know."""
        try:
            try:
                self._journal.commit(self._next_commit, parts, group.new_runs)
            except duckdb.Error as error:
                # After a fatal error every call fails until the database is opened again.
                _log.warning("a commit failed, opening the store again: %s", _short(error))
                self._reopen(error)
                self._journal.commit(self._next_commit, parts, group.new_runs)
        except (duckdb.Error, CascadeError) as error:
            group.undo()
            why = self._why(error)
            self.problem = str(why.message)
            for done in sifted:
                self._fail(done.job.answer, why)
            return False
        self._next_commit += 1
        self.num_commits += 1
        self.problem = None
        return True

    def _acknowledge(self, done: _Sifted) -> None:
        marks = []
        num_rows = num_duplicates = 0
        for part in done.parts:
            run = self._catalog.find(part.run_id)
            num_rows += part.num_rows
            num_duplicates += part.num_duplicates
            marks += [Mark(part.run_id, *actor, run.known_of(actor).mark) for actor in part.actors]
        self.num_rows += num_rows
        self.num_duplicates += num_duplicates
        if done.job.answer.set_running_or_notify_cancel():
            done.job.answer.set_result(Receipt(num_rows, num_duplicates, marks))

    def _reopen(self, error: duckdb.Error) -> None:
        self.num_reopened += 1
        try:
            self._journal.reopen()
        except CascadeError as worse:
            _log.error("the store could not be opened again: %s", worse.message)
            self.problem = worse.message

    def _why(self, error: Exception) -> CascadeError:
        low = self._disk_is_low()
        if low is not None or "No space left" in str(error):
            return DiskLow(
                low or "the disk is full", hint="make room; nothing acknowledged is lost"
            )
        return StoreDown(
            f"the store cannot write: {_short(error)}", hint="send it again in a while"
        )

    def _fail(self, answer: Future[Any], error: Exception) -> None:
        if answer.set_running_or_notify_cancel():
            answer.set_exception(error)


class _Group:
    """The batches of one commit, on the way through the sieve; can be undone as a whole."""

    def __init__(self, catalog: Catalog, options: StoreOptions) -> None:
        self._catalog = catalog
        self._options = options
        self._before: dict[ActorKey, Known] = {}
        self._damaged_before: dict[str, set[tuple[int, int]]] = {}
        self.new_runs: list[RunRow] = []
        self.bridges: list[Part] = []

    def sift(self, batch: Batch) -> list[Part]:
        """The new rows of a batch.

        Raises:
            RunDropped: it has rows of a run that was dropped.
        """
        for run_id in _runs_of(batch):
            run, row = self._catalog.make(run_id, self._options.wall_ns())
            if row is not None:
                self.new_runs.append(row)
            if run.damaged:
                self._damaged_before.setdefault(run_id, set(run.damaged))
                self.bridges += bridge(run, batch, partial(self._known, run_id))
        parts = sift(batch, self._spans, self._wants_done)
        for part in parts:
            self._run(part.run_id).cover(part)
        return parts

    def undo(self) -> None:
        """The commit failed: the spans are as they were."""
        for (run_id, rank, incarnation), known in self._before.items():
            self._run(run_id).known[rank, incarnation] = known
        for run_id, damaged in self._damaged_before.items():
            self._catalog.find(run_id).damaged = damaged
        for row in self.new_runs:
            self._catalog.forget(row.run_id)

    def _spans(self, key: ActorKey) -> Spans:
        return self._known(key[0], key[1:]).stored

    def _known(self, run_id: str, actor: tuple[int, int]) -> Known:
        known = self._run(run_id).known_of(actor)
        self._before.setdefault((run_id, *actor), known.copy())
        return known

    def _wants_done(self, done: CollectiveDone) -> bool:
        run = self._run(done.run_id)
        stored = self._spans((done.run_id, done.rank, done.incarnation))
        return run.rows.wants_done(done) or done.seq not in stored

    def _run(self, run_id: str) -> Run:
        return self._catalog.find(run_id)


def _runs_of(batch: Batch) -> set[str]:
    if batch.records is not None:
        return {record.run_id for record in batch.records}
    tables = (batch.tables or {}).values()
    return {run_id for rows in tables for run_id in rows["run_id"].unique().to_pylist()}


def _short(error: Exception) -> str:
    return " ".join(str(error).split())[:200]
