"""The default store: a DuckDB journal, Parquet segments in a trace folder for each run."""

from __future__ import annotations

import contextlib
import logging
import shutil
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from cascade_runtime.vocabulary.errors import BadTrace, BadUsage
from cascade_runtime.vocabulary.trace_meta import TraceMeta, format_trace_meta
from collector.data_folder import runs_folder
from collector.hot.catalog import Catalog
from collector.hot.journal import Journal
from collector.hot.live_query import live_query
from collector.hot.options import StoreOptions
from collector.hot.publisher import Publisher
from collector.hot.run import Run
from collector.hot.verdicts import last_verdict
from collector.hot.writer import Writer
from collector.sql.views_file import write_views_file
from collector.storage._interface import (
    DiskLow,
    EventStore,
    Mark,
    QueueFull,
    Receipt,
    RunSummary,
    StoreStats,
)
from collector.trace.durable import alone_in
from collector.wire.batch import Batch

_log = logging.getLogger("cascade.store")


class EmbeddedStore:
    """An ``EventStore`` in one data folder; one process at a time.

    Args:
        data: the data folder, made when it is not there.
        options: limits and clocks.

    Raises:
        BadUsage: another process has the folder; it cannot be written; its files are damaged.
    """

    def __init__(self, data: Path, options: StoreOptions | None = None) -> None:
        self.data = data
        self.options = options or StoreOptions()
        self._held = contextlib.ExitStack()
        try:
            runs_folder(data).mkdir(parents=True, exist_ok=True)
            self._held.enter_context(alone_in(data, "using"))
        except OSError as error:
            raise BadUsage(
                f"this data folder cannot be used: {error.strerror}",
                where=str(data),
                hint="give a folder that can be written",
            ) from error
        try:
            self._journal = Journal(data)
            self._catalog = Catalog(data)
            last = self._catalog.load(self._journal)
        except (duckdb.Error, BadTrace) as error:
            self._held.close()
            raise BadUsage(
                f"this data folder is damaged: {' '.join(str(error).split())[:300]}",
                where=str(data),
                hint=f"cascade recover {data}   (keeps what is damaged, says what is missing)",
            ) from error
        except BaseException:
            self._held.close()
            raise
        self._writer = Writer(
            self._journal, self._catalog, self.options, last + 1, self._disk_is_low
        )
        self._publisher = Publisher(
            self._catalog, self._journal, self._writer, self.options, self._new_files
        )
        self._closed = False

    # ---- rows in ---------------------------------------------------------------------------------

    def append(self, batch: Batch) -> Future[Receipt]:
        """See EventStore."""
        low = self._disk_is_low()
        if low is not None:
            raise DiskLow(
                low, hint="make room on the collector's disk; nothing acknowledged is lost"
            )
        num_hot = sum(run.rows.num_rows for run in self._catalog.all() if run.state == "hot")
        if num_hot > self.options.max_hot_rows:
            self._publisher.wake()
            raise QueueFull(f"{num_hot} rows wait to be sealed", hint="send it again in a while")
        return self._writer.append(batch)

    def put_meta(self, meta: TraceMeta) -> None:
        """See EventStore."""
        low = self._disk_is_low()
        if low is not None:
            raise DiskLow(low, hint="make room on the collector's disk")

        def store() -> None:
            run, _ = self._catalog.make(meta.run_id, self.options.wall_ns())
            before = run.meta_json
            run.meta_json = format_trace_meta(meta)
            if run.meta_json == before:
                return
            run.state = "hot"
            run.seen(self.options.wall_ns(), self.options.mono_s())
            try:
                row = run.row(run.flushed_commit, run.rows.orphans())
                self._journal.flushed(row, run.span_rows(), run.damaged)
            except BaseException:
                run.meta_json = before
                raise
            run.meta_changed = True

        self._writer.do(store).result()

    # ---- runs ------------------------------------------------------------------------------------

    def meta(self, run_id: str) -> TraceMeta:
        """See EventStore."""
        return self._catalog.find(run_id).meta

    def marks(self, run_id: str) -> list[Mark]:
        """See EventStore."""
        known = sorted(self._catalog.find(run_id).known.items())
        return [Mark(run_id, *actor, mine.mark) for actor, mine in known]

    def runs(self) -> list[RunSummary]:
        """See EventStore."""
        return [_summary(run) for run in self._catalog.all()]

    def run(self, run_id: str) -> RunSummary:
        """See EventStore."""
        return _summary(self._catalog.find(run_id))

    def query(self, sql: str, run_id: str | None = None) -> pa.Table:
        """See EventStore."""
        runs = self._catalog.all() if run_id is None else [self._catalog.find(run_id)]
        return live_query(runs, sql)

    def publish(self, run_id: str | None = None) -> None:
        """See EventStore."""
        for run in self._catalog.all() if run_id is None else [self._catalog.find(run_id)]:
            self._publisher.publish(run)

    def drop(self, run_id: str) -> None:
        """See EventStore."""
        self._publisher.drop(self._catalog.find(run_id))

    # ---- health ----------------------------------------------------------------------------------

    def stats(self) -> StoreStats:
        """See EventStore."""
        runs = self._catalog.all()
        return StoreStats(
            num_queued_rows=self._writer.num_queued_rows,
            num_hot_rows=sum(run.rows.num_rows for run in runs),
            hot_bytes=sum(f.stat().st_size for f in self.data.glob("hot.duckdb*")),
            free_bytes=shutil.disk_usage(self.data).free,
            num_commits=self._writer.num_commits,
            num_rows=self._writer.num_rows,
            num_duplicates=self._writer.num_duplicates,
            num_segments=self._publisher.num_segments,
            num_reopened=self._writer.num_reopened,
        )

    def problem(self) -> str | None:
        """See EventStore."""
        if self._closed:
            return "the store is closed"
        return self._disk_is_low() or self._writer.problem or self._publisher.problem

    def close(self, deadline_s: float = 10.0) -> None:
        """See EventStore."""
        if self._closed:
            return
        self._closed = True
        self._publisher.stop()
        until = self.options.mono_s() + deadline_s
        try:
            for run in self._catalog.all():
                if self.options.mono_s() < until and run.rows.commit > run.flushed_commit:
                    self._publisher.publish(run)
        except Exception as error:
            _log.error("not everything was published, the next start does it: %s", error)
        if self._writer.stop(max(0.1, until - self.options.mono_s())):
            self._journal.close()
        self._held.close()

    def _disk_is_low(self) -> str | None:
        free = shutil.disk_usage(self.data).free
        if free >= self.options.min_free_bytes:
            return None
        return f"{free >> 20} MiB are free on the collector's disk, and it keeps more than that"

    def _new_files(self) -> None:
        try:
            write_views_file(self.data)
        except Exception as error:
            _log.error("views.duckdb was not renewed: %s", error)


def _summary(run: Run) -> RunSummary:
    meta = run.meta
    return RunSummary(
        run_id=run.run_id,
        name=meta.name,
        state="live" if meta.ended_ns is None else "ended",
        mode=meta.mode,
        world_size=meta.world_size,
        num_rows=run.num_rows,
        first_seen_ns=run.first_seen_ns,
        last_seen_ns=run.last_seen_ns,
        ended_ns=meta.ended_ns,
        clean_end=meta.clean_end,
        verdict=last_verdict(run.files.root),
        path=str(run.files.root),
    )


class _Kind:
    name = "duckdb"

    def open(self, data: Path, options: dict[str, Any]) -> EventStore:
        """See StoreKind; ``options`` are StoreOptions' fields."""
        return EmbeddedStore(data, StoreOptions(**options))


PLUGIN = _Kind()
