"""The publisher thread: brings new rows into the runs' folders, seals, and drops what is too old."""

from __future__ import annotations

import logging
import shutil
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import NamedTuple
from uuid import uuid4

import pyarrow as pa

from cascade_runtime.vocabulary.errors import CascadeError
from cascade_runtime.vocabulary.events import CollectiveDone
from cascade_runtime.vocabulary.schema import EVENT_TABLES
from collector.hot.asking import Asking
from collector.hot.catalog import Catalog
from collector.hot.journal import Journal, RunRow
from collector.hot.merge import merge_small
from collector.hot.options import StoreOptions
from collector.hot.run import Run
from collector.hot.snapshot import Snapshot
from collector.hot.writer import Writer
from collector.storage._interface import RunDropped, StoreDown
from collector.trace.durable import publish as write_file
from collector.trace.trace_writer import write_views

_log = logging.getLogger("cascade.store")
_DAY_NS = 86_400 * 10**9


class _Size(NamedTuple):
    """Of a run's folder. An analysis and a merge change the folder's own time, rows its commit."""

    stamp: tuple[int, int]
    num_bytes: int


class Publisher:
    """Files follow the journal at a short distance.

    Args:
        catalog, journal, writer, options, asking: of the store.
        on_new_files: called after tables of runs got their first files, again until it succeeded:
            False when it did not.
    """

    def __init__(
        self,
        catalog: Catalog,
        journal: Journal,
        writer: Writer,
        options: StoreOptions,
        asking: Asking,
        on_new_files: Callable[[], bool | None],
    ) -> None:
        self._catalog = catalog
        self._journal = journal
        self._writer = writer
        self._options = options
        self._asking = asking
        self._on_new_files = on_new_files
        self._new_files = False
        self._sizes: dict[str, _Size] = {}
        self._wake = threading.Event()
        self._stopping = self._ended = False
        self.num_segments = 0
        self.problem: str | None = None
        self._thread = threading.Thread(target=self._run, name="cascade-publisher", daemon=True)
        self._thread.start()

    def wake(self) -> None:
        """Publish now."""
        self._wake.set()

    def stop(self, deadline_s: float) -> None:
        """End the thread; ``publish`` still works."""
        self._stopping = True
        self._wake.set()
        self._thread.join(deadline_s)

    def end(self, deadline_s: float) -> None:
        """No folder is written from now on; waits for those that are being written."""
        self._ended = True
        for run in self._catalog.all():
            if run.publishing.acquire(timeout=deadline_s):
                run.publishing.release()

    def publish_all(self) -> None:
        """Publish every run that has something new, seal those that are over, drop the oldest.

        A run that cannot be written is tried again next time; ``problem`` says why.
        """
        problem = None
        # More rows in memory than half of what is allowed: many small segments are the lesser evil.
        crowded = self._catalog.num_hot_rows() > self._options.max_hot_rows // 2
        # First the one whose folder is behind for longest: a round over many runs takes its time.
        for run in sorted(self._catalog.all(), key=lambda run: run.flushed_commit):
            run.rows.forget_left()
            try:
                over = self._is_over(run)
                packed = crowded and run.state == "hot" and run.rows.num_rows > 0
                if over or packed or run.has_news:
                    self._publish(run, over, 1 if packed else None)
            except RunDropped:
                continue
            except Exception as error:  # whatever it is, the other runs are not to suffer
                problem = f"run {run.run_id[:100]} cannot be written: {error}"
                _log.error("%s", problem)
        self.problem = problem
        self._fold_log()
        self._retire()
        self._tell_new_files()

    def publish(self, run: Run, *, whole: bool = False) -> None:
        """Bring a run's rows into its folder.

        Args:
            run: the run.
            whole: make segments of all rows; nothing more is expected.

        Raises:
            OSError, pyarrow.ArrowException, CascadeError: what is not in the folder is in the journal.
        """
        self._publish(run, whole, None)
        self._tell_new_files()

    def _publish(self, run: Run, whole: bool, segment_rows: int | None) -> None:
        with run.publishing:
            self._check(run)
            if not (whole or segment_rows or run.has_news):
                return
            least = 1 if whole else segment_rows or self._options.segment_rows
            snapshot = run.rows.snapshot()
            for name, chunks in snapshot.tables.items():
                self._asking.give_way()
                self._publish_table(run, name, chunks, snapshot.commit, least)
            run.files.write_open(run.rows.open_rows.table(snapshot.open), snapshot.commit)
            told, kept = self._part_orphans(snapshot.orphans)
            run.files.write_orphans(told)
            run.files.sync()
            self._write_meta(run)
            self._write_views(run, snapshot)
            self._writer.do(partial(self._flush, run, snapshot.commit, kept, whole)).result()
            run.rows.forget_done(told)
            if run.state == "cold":
                self._merge(run)

    def drop(self, run: Run) -> None:
        """Delete a run: first it is refused and forgotten, then its folder goes."""
        self._drop(run)
        self._tell_new_files()

    def _drop(self, run: Run) -> None:
        def forget() -> None:
            row = RunRow(
                run.run_id, "dropped", None, run.first_seen_ns, run.last_seen_ns, 0, 0, None
            )
            self._journal.drop(row)
            self._catalog.drop(run.run_id)

        with run.publishing:
            self._check(run)
            self._writer.do(forget).result()
            root = run.files.root
            if root.exists():
                gone = root.with_name(f".dropped-{uuid4().hex}")
                root.rename(gone)
                shutil.rmtree(gone, ignore_errors=True)
        self._sizes.pop(run.run_id, None)
        self._new_files = True

    # ---- inside ----------------------------------------------------------------------------------

    def _run(self) -> None:
        while not self._stopping:
            self._wake.wait(self._options.publish_every_s)
            self._wake.clear()
            if not self._stopping:
                self._publish_all_safely()

    def _publish_all_safely(self) -> None:
        try:
            self.publish_all()
        except Exception as error:  # the thread must live: without it rows pile up in memory
            self.problem = f"the publisher failed: {error}"
            _log.exception("the publisher failed")

    def _check(self, run: Run) -> None:
        if self._ended:
            raise StoreDown("the store is closed")
        if self._catalog.is_dropped(run.run_id):
            raise RunDropped("this run was dropped", where=run.run_id[:200])

    def _publish_table(
        self, run: Run, name: str, chunks: list[pa.Table], commit: int, least: int
    ) -> None:
        num_rows = sum(rows.num_rows for rows in chunks)
        num_bytes = sum(rows.nbytes for rows in chunks)
        if num_rows >= least or num_bytes >= self._options.segment_bytes:
            run.num_published.pop(name, None)
            run.files.write_segment(
                name, chunks, commit, partial(run.rows.sealed, name, len(chunks))
            )
            self.num_segments += 1
        elif num_rows != run.num_published.get(name):
            run.files.write_tail(name, chunks, commit)
            run.num_published[name] = num_rows
            run.rows.compact(name, len(chunks))

    def _part_orphans(
        self, orphans: list[CollectiveDone]
    ) -> tuple[list[CollectiveDone], list[CollectiveDone]]:
        """Completions without a row: those that go into the trace's spool, those that stay here.

        Here they are joined when the row comes after all; a sender that only ever sends completions
        shall not fill the memory with them.
        """
        most = self._options.segment_rows
        return ([], orphans) if len(orphans) <= most else (orphans[:-most], orphans[-most:])

    def _write_meta(self, run: Run) -> None:
        if not run.meta_changed and run.meta_json is not None:
            return
        run.meta_changed = False  # before it is read: one that is sent meanwhile comes next time
        try:
            file, text = run.files.root / "trace.json", run.meta_text
            if not file.exists() or file.read_bytes() != text:
                file.parent.mkdir(parents=True, exist_ok=True)
                write_file(file, lambda out: out.write(text))
        except BaseException:
            run.meta_changed = True
            raise

    def _write_views(self, run: Run, snapshot: Snapshot) -> None:
        """views.sql names the tables that have files, so a table's first file changes it."""
        tables = {*snapshot.tables, *snapshot.segments, *(["collectives"] if snapshot.open else [])}
        if tables - run.viewed or not (run.files.root / "views.sql").exists():
            write_views(run.files.root)
            self._new_files = True
            run.viewed = run.viewed | tables

    def _tell_new_files(self) -> None:
        """Once for many runs; what fails is tried again in the next round."""
        if self._new_files:
            self._new_files = False  # before: a file that comes meanwhile is told next time
            if self._on_new_files() is False:
                self._new_files = True

    def _merge(self, run: Run) -> None:
        """Put small segments together; where that fails, there are many small ones still."""
        for name in EVENT_TABLES:
            try:
                merge_small(
                    run.files, name, self._options, partial(run.rows.replace_segments, name)
                )
            except (OSError, pa.ArrowException, CascadeError) as error:
                _log.warning("run %s: segments are not merged: %s", run.run_id[:100], error)

    def _flush(self, run: Run, commit: int, orphans: list[CollectiveDone], whole: bool) -> None:
        """In the writer thread: the journal forgets what is in the folder."""
        if self._catalog.is_dropped(run.run_id):
            return
        before = run.state
        over = whole and run.rows.commit == commit and not run.meta_changed
        run.state = "cold" if over else "hot"
        try:
            self._journal.flushed(run.row(commit, orphans), run.span_rows(), run.damaged)
        except BaseException:
            run.state = before
            raise
        run.flushed_commit = commit

    def _is_over(self, run: Run) -> bool:
        """An ended run that has been quiet: nothing more is expected."""
        if run.state == "cold" or run.meta_json is None or run.meta.ended_ns is None:
            return False
        return run.last_row_s is None or (
            self._options.mono_s() - run.last_row_s >= self._options.idle_s
        )

    def _fold_log(self) -> None:
        """Now that most of the journal is in files there is little to fold in."""
        if self._journal.log_bytes() >= self._options.fold_log_bytes:
            try:
                self._writer.do(self._journal.checkpoint).result()
            except CascadeError as error:
                _log.error("the journal's log stays as long as it is: %s", error)

    def _retire(self) -> None:
        """Drop runs by age, then the oldest while all are too large; never one that is live."""
        runs = [run for run in self._catalog.all() if run.state == "cold" or self._is_idle(run)]
        runs.sort(key=lambda run: run.last_seen_ns)
        if self._options.keep_days is not None:
            oldest = self._options.wall_ns() - int(self._options.keep_days * _DAY_NS)
            for run in [run for run in runs if run.last_seen_ns < oldest]:
                self._retire_one(run, "it is older than the retention time")
                runs.remove(run)
        if self._options.keep_bytes is not None:
            sizes = {run.run_id: self._size(run) for run in self._catalog.all()}
            for run in runs:
                if sum(sizes.values()) <= self._options.keep_bytes:
                    break
                self._retire_one(run, "all runs together are larger than is kept")
                del sizes[run.run_id]

    def _retire_one(self, run: Run, why: str) -> None:
        _log.info("run %s is dropped: %s", run.run_id[:100], why)
        try:
            self._drop(run)
        except (OSError, CascadeError) as error:
            _log.error("run %s cannot be dropped: %s", run.run_id[:100], error)

    def _size(self, run: Run) -> int:
        """Bytes of the run's folder; of one that is cold as they were when it last changed."""
        root = run.files.root
        try:
            stamp = (run.flushed_commit, root.stat().st_mtime_ns)
        except OSError:
            return 0
        found = self._sizes.get(run.run_id)
        if run.state != "cold" or found is None or found.stamp != stamp:
            found = self._sizes[run.run_id] = _Size(stamp, _size(root))
        return found.num_bytes

    def _is_idle(self, run: Run) -> bool:
        """Nothing came for a day: a run that never said its end. Both clocks must say so."""
        if run.last_row_s is not None and self._options.mono_s() - run.last_row_s <= _DAY_NS / 1e9:
            return False
        return self._options.wall_ns() - run.last_seen_ns > _DAY_NS


def _size(folder: Path) -> int:
    size = 0
    for file in folder.rglob("*"):
        with suppress(OSError):  # files go while we look
            size += file.stat().st_size if file.is_file() else 0
    return size
