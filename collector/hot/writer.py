"""The one writer thread: takes what is queued, drops duplicates, commits once a group, answers.

Acknowledged means committed: DuckDB syncs its write-ahead log once a commit, so a group of batches
costs one sync.
"""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, NamedTuple

import duckdb

from cascade_runtime.vocabulary.errors import CascadeError
from collector.hot.asking import Asking
from collector.hot.catalog import Catalog
from collector.hot.group import Group
from collector.hot.intake import Job, Sifted, fail, read, sift_all
from collector.hot.journal import Journal
from collector.hot.options import StoreOptions
from collector.hot.sift import ActorKey, Part
from collector.storage._interface import DiskLow, Mark, QueueFull, Receipt, StoreDown
from collector.wire.batch import Batch
from collector.wire.unread import Unread

_log = logging.getLogger("cascade.store")
_STOP = None
_GATHER_S = 0.03
_CROWD, _CROWD_ROWS = 4, 100
"""While commits have so many batches, of so few rows in the mean, the next one begins so long after the
one before: a thousand senders then share thirty commits a second. A lone sender never waits."""

_JOB_BYTES = 1000
"""What a waiting batch costs beside its body, however small that is."""


class _Task(NamedTuple):
    do: Callable[[], Any]
    answer: Future[Any]


class Writer:
    """The only one who changes the journal and the spans.

    Args:
        journal: open.
        catalog: loaded.
        options: limits.
        first_commit: the number of the next commit.
        disk_is_low: says what is wrong with the disk; None when there is room.
        asking: questions, which go first for a moment.
        on_stored: told after each commit that its rows can be read.
    """

    def __init__(
        self,
        journal: Journal,
        catalog: Catalog,
        options: StoreOptions,
        first_commit: int,
        disk_is_low: Callable[[], str | None],
        asking: Asking,
        on_stored: Callable[[], None],
    ) -> None:
        self._journal = journal
        self._catalog = catalog
        self._options = options
        self._next_commit = first_commit
        self._disk_is_low = disk_is_low
        self._asking = asking
        self._on_stored = on_stored
        self._queue: queue.SimpleQueue[Job | _Task | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._queued_rows = 0
        self._queued_bytes = 0
        self._refuses: str | None = None
        self._is_crowd, self._began_s = False, 0.0
        self._ended = self._is_broken = self._in_doubt = False
        self.problem: str | None = None
        self.num_commits = self.num_rows = self.num_duplicates = self.num_reopened = 0
        self._thread = threading.Thread(target=self._run, name="cascade-writer", daemon=True)
        self._thread.start()

    @property
    def num_queued_rows(self) -> int:
        """Rows taken and not yet durable."""
        return self._queued_rows

    # ---- from any thread -------------------------------------------------------------------------

    def append(self, batch: Batch | Unread) -> Future[Receipt]:
        """Queue a batch.

        Raises:
            QueueFull, StoreDown: nothing was taken.
        """
        job = Job(batch, Future(), batch.num_bytes + _JOB_BYTES)
        with self._lock:
            if self._refuses is not None:
                raise StoreDown(self._refuses, hint="send it again in a while")
            rows, num_bytes = self._queued_rows + batch.num_rows, self._queued_bytes + job.num_bytes
            full = (
                rows > self._options.max_queued_rows or num_bytes > self._options.max_queued_bytes
            )
            if full and self._queued_bytes:  # alone, any batch is taken
                raise QueueFull(
                    f"{self._queued_rows} rows are waiting to be stored",
                    hint="send it again in a while",
                )
            self._queued_rows, self._queued_bytes = rows, num_bytes
            self._queue.put(job)
        return job.answer

    def do(self, task: Callable[[], Any]) -> Future[Any]:
        """Run something in the writer thread, between two commits.

        Raises:
            StoreDown: the writer has ended.
        """
        answer: Future[Any] = Future()
        with self._lock:
            if self._ended:
                raise StoreDown(self._refuses or "the store is closed")
            self._queue.put(_Task(task, answer))
        return answer

    def refuse(self, why: str) -> None:
        """Take no more batches."""
        with self._lock:
            self._refuses = self._refuses or why

    def stop(self, deadline_s: float) -> bool:
        """End when all that was queued is done; False when that takes longer than the deadline."""
        self.refuse("the store is closed")
        with self._lock:
            self._ended = True
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

    def _gather(self) -> tuple[list[Job], list[_Task], bool]:
        """Wait for something, then take what is there, up to one group of rows."""
        jobs: list[Job] = []
        tasks: list[_Task] = []
        num_rows = 0
        item = self._queue.get()
        if isinstance(item, Job):
            self._asking.give_way()
        if self._is_crowd:
            time.sleep(max(0.0, self._began_s + _GATHER_S - time.monotonic()))
        self._began_s = time.monotonic()
        while True:
            if item is _STOP:
                return jobs, tasks, True
            if isinstance(item, Job):
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
            self._check_whole()
            self._settle()
            task.answer.set_result(task.do())
        except duckdb.Error as error:
            _log.warning("the journal failed, it will be opened again: %s", _short(error))
            self._in_doubt = True
            fail(task.answer, self._why(error))
        except Exception as error:
            fail(task.answer, error)

    def _store(self, jobs: list[Job]) -> None:
        num_rows = sum(job.batch.num_rows for job in jobs)
        self._is_crowd = len(jobs) >= _CROWD and num_rows < _CROWD_ROWS * len(jobs)
        try:
            self._check_whole()
            self._store_group(jobs)
        except Exception as error:
            expected = isinstance(error, CascadeError | duckdb.Error)
            _log.error("batches could not be stored: %s", _short(error), exc_info=not expected)
            for job in jobs:
                fail(job.answer, self._why(error))
        finally:
            with self._lock:
                self._queued_rows -= num_rows
                self._queued_bytes -= sum(job.num_bytes for job in jobs)

    def _store_group(self, jobs: list[Job]) -> None:
        group = Group(self._catalog, self._options.wall_ns())
        sifted = sift_all(read(jobs), group)
        parts = group.parts
        if parts:
            try:
                self._commit(parts, group)
            except BaseException as error:
                group.undo()
                self.problem = self._why(error).message
                raise
            self._apply(parts)
            self._on_stored()
        marks: dict[ActorKey, Mark] = {}
        for done in sifted:
            self._acknowledge(done, marks)

    def _commit(self, parts: list[Part], group: Group) -> None:
        """Make the parts durable.

        Raises:
            duckdb.Error, CascadeError: it failed twice.
        """
        for is_last_try in (False, True):
            try:
                self._settle()
                self._journal.commit(self._next_commit, parts, group.new_runs)
                break
            except (duckdb.Error, CascadeError) as error:
                self._in_doubt = True
                if is_last_try:
                    raise
                _log.warning("a commit failed, opening the store again: %s", _short(error))
        self._next_commit += 1
        self.num_commits += 1
        self.problem = None

    def _settle(self) -> None:
        """After an error open the journal again, without what it may hold of an unanswered commit.

        A fatal error makes every later call fail until then. And whether a commit that failed is
        durable nobody knows: its sender was told no and sends it again.

        Raises:
            duckdb.Error, CascadeError: it cannot be opened.
        """
        if self._in_doubt:
            self.num_reopened += 1
            self._journal.reopen(self._next_commit - 1)
            self._in_doubt = False

    def _apply(self, parts: list[Part]) -> None:
        """The parts are durable: they are hot rows now, those of one run all at once."""
        by_run: dict[str, list[Part]] = {}
        for part in parts:
            by_run.setdefault(part.run_id, []).append(part)
        try:
            for run_id, mine in by_run.items():
                run = self._catalog.find(run_id)
                run.rows.apply(self._next_commit - 1, mine)
                run.num_rows += sum(part.num_rows - part.num_done for part in mine)
                run.state = "hot"
                run.seen(self._catalog.now(self._options.wall_ns()), self._options.mono_s())
        except Exception as error:
            # Durable, but not among the hot rows: were more published, the journal would forget it.
            self._broken(f"stored rows could not be kept in memory: {error!r}")
            raise

    def _broken(self, why: str) -> None:
        self._is_broken = True
        self.problem = f"{why[:200]}; the collector must be started again"
        self.refuse(self.problem)

    def _check_whole(self) -> None:
        if self._is_broken:
            raise StoreDown(str(self.problem))

    def _acknowledge(self, done: Sifted, marks: dict[ActorKey, Mark]) -> None:
        """Answer one batch; ``marks`` are those of this commit so far."""
        mine = []
        num_rows = num_duplicates = 0
        for part in done.parts:
            num_rows += part.num_rows
            num_duplicates += part.num_duplicates
            for actor in part.actors:
                key = (part.run_id, *actor)
                mark = marks.get(key)
                if mark is None:
                    known = self._catalog.find(part.run_id).known_of(actor)
                    mark = marks[key] = Mark(*key, known.mark)
                mine.append(mark)
        self.num_rows += num_rows
        self.num_duplicates += num_duplicates
        if done.answer.set_running_or_notify_cancel():
            done.answer.set_result(Receipt(num_rows, num_duplicates, mine))

    def _why(self, error: BaseException) -> CascadeError:
        if isinstance(error, StoreDown):
            return error
        low = self._disk_is_low()
        if low is not None or "No space left" in str(error):
            return DiskLow(
                low or "the disk is full", hint="make room; nothing acknowledged is lost"
            )
        return StoreDown(
            f"the store cannot write: {_short(error)}", hint="send it again in a while"
        )


def _short(error: BaseException) -> str:
    return " ".join(str(error).split())[:200]
