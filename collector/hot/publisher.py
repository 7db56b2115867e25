"""The publisher thread: brings new rows into the runs' folders, seals, and drops what is too old."""

from __future__ import annotations

import logging
import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from uuid import uuid4

import pyarrow as pa

from cascade_runtime.vocabulary.errors import CascadeError
from collector.hot.catalog import Catalog
from collector.hot.journal import Journal, RunRow
from collector.hot.options import StoreOptions
from collector.hot.run import Run
from collector.hot.writer import Writer
from collector.trace.durable import publish as write_file
from collector.trace.trace_writer import write_views

_log = logging.getLogger("cascade.store")
_DAY_NS = 86_400 * 10**9


class Publisher:
    """Files follow the journal at a short distance.

    Args:
        catalog, journal, writer, options: of the store.
        on_new_files: called after a table of a run got its first file.
    """

    def __init__(
        self,
        catalog: Catalog,
        journal: Journal,
        writer: Writer,
        options: StoreOptions,
        on_new_files: Callable[[], None],
    ) -> None:
        self._catalog = catalog
        self._journal = journal
        self._writer = writer
        self._options = options
        self._on_new_files = on_new_files
        self._wake = threading.Event()
        self._stopping = False
        self.num_segments = 0
        self.problem: str | None = None
        self._thread = threading.Thread(target=self._run, name="cascade-publisher", daemon=True)
        self._thread.start()

    def wake(self) -> None:
        """Publish now."""
        self._wake.set()

    def stop(self) -> None:
        """End the thread; ``publish`` still works."""
        self._stopping = True
        self._wake.set()
        self._thread.join()

    def publish_all(self) -> None:
        """Publish every run that has something new, seal those that are over, drop the oldest.

        A run that cannot be written is tried again next time; ``problem`` says why.
        """
        problem = None
        for run in self._catalog.all():
            try:
                over = self._is_over(run)
                if over or run.meta_changed or run.rows.commit > run.flushed_commit:
                    self.publish(run, whole=over)
            except (OSError, pa.ArrowException, CascadeError) as error:
                problem = f"run {run.run_id[:100]} cannot be written: {error}"
                _log.error("%s", problem)
        self.problem = problem
        self._retire()

    def publish(self, run: Run, *, whole: bool = False) -> None:
        """Bring a run's rows into its folder; ``whole``: as segments only, the open ones too.

        Raises:
            OSError, pyarrow.ArrowException, CascadeError: what is not in the folder is in the journal.
        """
        with run.publishing:
            snapshot = run.rows.snapshot()
            before = set(run.num_published) | set(snapshot.segments)
            for name, chunks in snapshot.tables.items():
                self._publish_table(run, name, chunks, snapshot.commit, whole=whole)
            run.files.write_open(snapshot.open, snapshot.commit)
            orphans = snapshot.orphans
            if whole:
                run.rows.close_open(run.files.seal_open(snapshot.commit))
                run.files.write_orphans(run.rows.take_orphans())
                orphans, run.state = [], "cold"
            self._write_meta(run)
            if set(snapshot.tables) - before or not (run.files.root / "views.sql").exists():
                write_views(run.files.root)
                self._on_new_files()

            def flushed() -> None:
                self._journal.flushed(
                    run.row(snapshot.commit, orphans), run.span_rows(), run.damaged
                )
                run.flushed_commit = snapshot.commit

            self._writer.do(flushed).result()

    def drop(self, run: Run) -> None:
        """Delete a run: first it is refused and forgotten, then its folder goes."""

        def forget() -> None:
            row = RunRow(
                run.run_id, "dropped", None, run.first_seen_ns, run.last_seen_ns, 0, 0, None
            )
            self._journal.drop(row)
            self._catalog.drop(run.run_id)

        with run.publishing:
            self._writer.do(forget).result()
            root = run.files.root
            if root.exists():
                gone = root.with_name(f".dropped-{uuid4().hex}")
                root.rename(gone)
                shutil.rmtree(gone, ignore_errors=True)

    # ---- inside ----------------------------------------------------------------------------------

    def _run(self) -> None:
        while not self._stopping:
            self._wake.wait(self._options.publish_every_s)
            self._wake.clear()
            if not self._stopping:
                self.publish_all()

    def _publish_table(
        self, run: Run, name: str, chunks: list[pa.Table], commit: int, *, whole: bool
    ) -> None:
        num_rows = sum(rows.num_rows for rows in chunks)
        if whole or num_rows >= self._options.segment_rows:
            file = run.files.write_segment(name, chunks, commit)
            run.rows.sealed(name, len(chunks), file)
            run.num_published.pop(name, None)
            self.num_segments += 1
        elif num_rows != run.num_published.get(name):
            run.files.write_tail(name, chunks, commit)
            run.num_published[name] = num_rows

    def _write_meta(self, run: Run) -> None:
        file = run.files.root / "trace.json"
        text = run.meta_text
        if run.meta_changed or run.meta_json is None:
            run.meta_changed = False
            if not file.exists() or file.read_bytes() != text:
                write_file(file, lambda out: out.write(text))

    def _is_over(self, run: Run) -> bool:
        """An ended run that has been quiet: nothing more is expected."""
        if run.state == "cold" or run.meta_json is None or run.meta.ended_ns is None:
            return False
        return self._options.mono_s() - run.last_row_s >= self._options.idle_s

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
            sizes = {run.run_id: _size(run.files.root) for run in self._catalog.all()}
            for run in runs:
                if sum(sizes.values()) <= self._options.keep_bytes:
                    break
                self._retire_one(run, "all runs together are larger than is kept")
                del sizes[run.run_id]

    def _retire_one(self, run: Run, why: str) -> None:
        _log.info("run %s is dropped: %s", run.run_id[:100], why)
        try:
            self.drop(run)
        except (OSError, CascadeError) as error:
            _log.error("run %s cannot be dropped: %s", run.run_id[:100], error)

    def _is_idle(self, run: Run) -> bool:
        """Nothing came for a day: a run that never said its end."""
        return self._options.wall_ns() - run.last_seen_ns > _DAY_NS


def _size(folder: Path) -> int:
    return sum(f.stat().st_size for f in folder.rglob("*") if f.is_file())
