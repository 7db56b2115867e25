"""The default store: a DuckDB journal, Parquet segments in a trace folder for each run."""

from __future__ import annotations

import contextlib
import logging
import shutil
import threading
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from cascade_runtime.vocabulary.errors import BadTrace, BadUsage, CascadeError
from cascade_runtime.vocabulary.trace_meta import TraceMeta, format_trace_meta
from collector.data_folder import runs_folder
from collector.hot.asking import Asking
from collector.hot.catalog import Catalog
from collector.hot.converter import Converter
from collector.hot.journal import Journal, open_journal
from collector.hot.live_query import LiveSql
from collector.hot.news import HotNews
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
    RunDropped,
    RunSummary,
    StoreDown,
    StoreStats,
)
from collector.trace.durable import alone_in
from collector.wire.batch import BadBatch, Batch
from collector.wire.unread import Unread

_COUNT_EVERY_S = 0.05
DISK_LOOK_S = 0.1
"""How long what the disk had free is believed; each batch asks."""

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
        self._free, self._look_again_s = 0, float("-inf")
        with contextlib.ExitStack() as held:
            _hold(data, held)
            self._journal = open_journal(data)
            held.callback(self._journal.close)
            self._catalog = Catalog(data)
            last = _load(self._catalog, self._journal, data)
            self._held = held.pop_all()
        self._asking = Asking(self.options.give_way_s)
        self._converter = Converter(self._catalog, self._asking)
        self._writer = Writer(
            self._journal,
            self._catalog,
            self.options,
            last + 1,
            self._disk_is_low,
            self._asking,
            self._converter.tell,
        )
        self._publisher = Publisher(
            self._catalog, self._journal, self._writer, self.options, self._asking, self._new_files
        )
        self._live_sql = LiveSql()
        if self._journal.log_bytes() >= self.options.long_log_bytes:
            self._catch_up()
        self._num_hot, self._hot_bytes, self._counted_s = 0, 0, float("-inf")
        self._closing = threading.Lock()
        self._closed = False

    # ---- rows in ---------------------------------------------------------------------------------

    def append(self, batch: Batch | Unread) -> Future[Receipt]:
        """See EventStore."""
        low = self._disk_is_low()
        if low is not None:
            raise DiskLow(
                low, hint="make room on the collector's disk; nothing acknowledged is lost"
            )
        self._count_hot()
        options = self.options
        if self._num_hot > options.max_hot_rows or self._hot_bytes > options.max_hot_bytes:
            self._publisher.wake()
            raise QueueFull(
                f"{self._num_hot} rows ({self._hot_bytes >> 20} MiB) wait to be sealed",
                hint="send it again in a while",
            )
        return self._writer.append(batch)

    def put_meta(self, meta: TraceMeta) -> None:
        """See EventStore."""
        low = self._disk_is_low()
        if low is not None:
            raise DiskLow(low, hint="make room on the collector's disk")

        def store() -> None:
            run, new = self._catalog.make(meta.run_id, self.options.wall_ns())
            if (
                meta.ended_ns is None
                and run.meta_json is not None
                and run.meta.ended_ns is not None
            ):
                return  # the start, come late: an agent waited for us. The end stands.
            text = format_trace_meta(meta)
            if run.meta_json == text:
                return
            run.seen(self._catalog.now(self.options.wall_ns()), self.options.mono_s())
            row = run.row(run.flushed_commit)
            try:
                self._journal.put_meta(row._replace(meta=text, state="hot"))
            except BaseException:
                if new is not None:
                    self._catalog.forget(run.run_id)
                raise
            run.meta_json, run.state, run.meta_changed = text, "hot", True

        self._writer.do(store).result()

    # ---- runs ------------------------------------------------------------------------------------

    def meta(self, run_id: str) -> TraceMeta:
        """See EventStore."""
        return self._catalog.find(run_id).meta

    def marks(self, run_id: str) -> list[Mark]:
        """See EventStore."""

        def read() -> list[Mark]:
            # Between two commits: a mark never counts rows that are not durable yet.
            known = sorted(self._catalog.find(run_id).known.items())
            return [Mark(run_id, *actor, mine.mark) for actor, mine in known]

        marks: list[Mark] = self._writer.do(read).result()
        return marks

    def runs(self) -> list[RunSummary]:
        """See EventStore."""
        return [_summary(run) for run in self._catalog.all()]

    def run(self, run_id: str) -> RunSummary:
        """See EventStore."""
        return _summary(self._catalog.find(run_id))

    def is_published(self, run_id: str) -> bool:
        """See EventStore."""
        return not self._catalog.find(run_id).has_news

    def query(
        self,
        sql: str,
        run_id: str | None = None,
        *,
        background: bool = False,
        max_age_s: float = 0.0,
    ) -> pa.Table:
        """See EventStore."""
        self._check_open()
        runs = self._catalog.all() if run_id is None else [self._catalog.find(run_id)]
        with self._asking.reading() if background else self._asking.question():
            return self._live_sql.query(runs, sql, max_age_s)

    def question(self) -> contextlib.AbstractContextManager[None]:
        """See EventStore."""
        return self._asking.question()

    def query_at(
        self, sql: str, run_id: str, *, background: bool = False
    ) -> tuple[pa.Table, HotNews]:
        """See EventStore."""
        self._check_open()
        with self._asking.reading() if background else self._asking.question():
            return self._live_sql.query_at(self._catalog.find(run_id), sql)

    def news(self, run_id: str) -> HotNews:
        """See EventStore."""
        self._check_open()
        run = self._catalog.find(run_id)
        with self._asking.question():
            return HotNews(run.rows.follow(), run)

    def publish(self, run_id: str | None = None) -> None:
        """See EventStore."""
        self._check_open()
        for run in self._catalog.all() if run_id is None else [self._catalog.find(run_id)]:
            with contextlib.suppress(RunDropped):
                self._publisher.publish(run)

    def drop(self, run_id: str) -> None:
        """See EventStore."""
        self._check_open()
        run = self._catalog.find(run_id)
        try:
            self._publisher.drop(run)
        except RunDropped:  # by somebody else, meanwhile
            self._catalog.find(run_id)

    # ---- health ----------------------------------------------------------------------------------

    def stats(self) -> StoreStats:
        """See EventStore."""
        runs = self._catalog.all()
        return StoreStats(
            num_queued_rows=self._writer.num_queued_rows,
            num_hot_rows=sum(run.rows.num_rows for run in runs),
            hot_row_bytes=sum(run.rows.num_bytes for run in runs),
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
        with self._closing:
            if self._closed:
                return
            self._closed = True
        until = self.options.mono_s() + deadline_s

        def left() -> float:
            return max(0.1, until - self.options.mono_s())

        self._writer.refuse("the collector is stopping")
        self._converter.stop(left())
        self._publisher.stop(left())
        try:
            self._writer.do(lambda: None).result(left())  # what was accepted is stored then
            for run in self._catalog.all():
                if self.options.mono_s() < until and run.has_news:
                    self._publisher.publish(run)
        except Exception as error:
            _log.error("not everything was published, the next start does it: %s", error)
        self._publisher.end(left())
        self._live_sql.close()
        if self._writer.stop(left()):
            self._held.close()
        else:  # it still writes: the folder stays ours until the process ends
            _log.error("what was accepted could not be stored in %g s", deadline_s)

    def _catch_up(self) -> None:
        """Empty a long log before anything new comes, or each kill makes the next start longer.

        First the rows go into the runs' folders, so that little is left to be folded in. It may be cut
        short at any point, as publishing may be.
        """
        try:
            for run in self._catalog.all():
                if run.has_news:
                    self._publisher.publish(run)
            self._writer.do(self._journal.checkpoint).result()
        except (OSError, pa.ArrowException, duckdb.Error, CascadeError) as error:
            _log.error("the journal's log stays as long as it is: %s", error)

    def _check_open(self) -> None:
        if self._closed:
            raise StoreDown("the store is closed")

    def _count_hot(self) -> None:
        """Anew after 50 ms only: it looks at every run."""
        now = self.options.mono_s()
        if 0 <= now - self._counted_s < _COUNT_EVERY_S:
            return
        self._counted_s = now
        runs = [run.rows for run in self._catalog.all() if run.state == "hot"]
        self._num_hot = sum(rows.num_rows for rows in runs)
        self._hot_bytes = sum(rows.num_bytes for rows in runs)

    def _disk_is_low(self) -> str | None:
        now = self.options.mono_s()
        if now >= self._look_again_s:
            self._free = shutil.disk_usage(self.data).free
            self._look_again_s = now + DISK_LOOK_S
        free = self._free
        if free >= self.options.min_free_bytes:
            return None
        return f"{free >> 20} MiB are free on the collector's disk, and it keeps more than that"

    def _new_files(self) -> bool:
        """Renew views.duckdb; False when it must be tried again."""
        try:
            write_views_file(self.data)
        except Exception as error:
            _log.error("views.duckdb was not renewed: %s", error)
            return False
        return True


def _hold(data: Path, held: contextlib.ExitStack) -> None:
    """Take the data folder for this process."""
    try:
        data.mkdir(mode=0o700, parents=True, exist_ok=True)  # rows are for their owner
        runs_folder(data).mkdir(exist_ok=True)
        held.enter_context(alone_in(data, "using"))
    except OSError as error:
        raise BadUsage(
            f"this data folder cannot be used: {error.strerror}",
            where=str(data),
            hint="give a folder that can be written",
        ) from error
    except BadUsage as error:
        raise BadUsage(
            "another collector has this data folder open",
            where=str(data),
            hint="stop it, or give another --data",
        ) from error


def _load(catalog: Catalog, journal: Journal, data: Path) -> int:
    try:
        return catalog.load(journal)
    except (duckdb.Error, BadTrace, BadBatch) as error:
        raise BadUsage(
            f"this data folder is damaged: {' '.join(str(error).split())[:300]}",
            where=str(data),
            hint=f"cascade recover {data}   (keeps what is damaged, says what is missing)",
        ) from error


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
