"""One saved trace, shown by the same app as a collector: a store that takes nothing, and its SQL."""

from __future__ import annotations

import re
import shutil
import tempfile
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any, NoReturn

import msgspec
import pyarrow as pa

from cascade_runtime.vocabulary.errors import BadUsage, NotSupported
from cascade_runtime.vocabulary.report import Report
from cascade_runtime.vocabulary.schema import EVENT_TABLES, RESULT_TABLES
from cascade_runtime.vocabulary.trace_meta import TraceMeta, format_trace_meta
from collector.data_folder import run_folder
from collector.schema.views import named_views
from collector.sql import landlock
from collector.sql.errors import SqlFailed
from collector.sql.service import SqlAnswer, SqlHealth, SqlRequest, SqlService
from collector.storage._interface import Mark, News, NoSuchRun, Receipt, RunSummary, StoreStats
from collector.trace.copy_run import link_or_copy
from collector.trace.inside import Inside
from collector.trace.seal import seal_trace
from collector.trace.trace_folder import open_trace
from collector.trace.trace_writer import write_results
from collector.wire.batch import Batch
from collector.wire.unread import Unread
from dashboard.story.source import RunSource
from dashboard.tiles.rows import t0_of

_ANALYSIS_S = 30.0
_LOOK_AGAIN_S = 0.05

_WHY = "a replay takes no rows: it shows one saved trace"


class ReplayStore:
    """An ``EventStore`` of one run that has ended.

    Args:
        source: the run.
    """

    def __init__(self, source: RunSource) -> None:
        self._source = source

    def append(self, batch: Batch | Unread) -> Future[Receipt]:
        """Refuses; see EventStore."""
        self._refuse()

    def put_meta(self, meta: TraceMeta) -> None:
        """Refuses; see EventStore."""
        self._refuse()

    def drop(self, run_id: str) -> None:
        """Refuses; see EventStore."""
        self._refuse()

    def meta(self, run_id: str) -> TraceMeta:
        """See EventStore."""
        return self._found(run_id).meta()

    def marks(self, run_id: str) -> list[Mark]:
        """None: nobody sends to a replay; see EventStore."""
        self._found(run_id)
        return []

    def runs(self) -> list[RunSummary]:
        """See EventStore."""
        return [self._summary]

    def run(self, run_id: str) -> RunSummary:
        """See EventStore."""
        self._found(run_id)
        return self._summary

    def is_published(self, run_id: str) -> bool:
        """True: it is a trace folder; see EventStore."""
        self._found(run_id)
        return True

    def query(
        self,
        sql: str,
        run_id: str | None = None,
        *,
        background: bool = False,
        max_age_s: float = 0.0,
    ) -> Any:
        """See EventStore."""
        return self._source.query(sql)

    def question(self) -> AbstractContextManager[None]:
        """Nothing comes in; see EventStore."""
        return nullcontext()

    def query_at(self, sql: str, run_id: str, *, background: bool = False) -> tuple[pa.Table, News]:
        """Refuses: no rows come that one could go on with; see EventStore."""
        self._refuse()

    def news(self, run_id: str) -> News:
        """Refuses: no rows come; see EventStore."""
        self._refuse()

    def publish(self, run_id: str | None = None) -> None:
        """There is nothing to publish; see EventStore."""

    def stats(self) -> StoreStats:
        """All nought; see EventStore."""
        return StoreStats(**dict.fromkeys(StoreStats.__struct_fields__, 0))

    def problem(self) -> str | None:
        """See EventStore."""
        return _WHY

    def close(self, deadline_s: float = 10.0) -> None:
        """Whoever opened the source closes it; see EventStore."""

    @property
    def _summary(self) -> RunSummary:
        meta = self._source.meta()
        report = self._source.report()
        first_ns, last_ns = self._span
        return RunSummary(
            run_id=meta.run_id,
            name=meta.name,
            state="ended",
            mode=meta.mode,
            world_size=meta.world_size,
            num_rows=self._source.num_rows(),
            first_seen_ns=first_ns,
            last_seen_ns=last_ns,
            ended_ns=meta.ended_ns,
            clean_end=meta.clean_end,
            verdict=None if report is None else report.verdict,
            path="",  # of this machine, and of no use to a client
        )

    @property
    def _span(self) -> tuple[int, int]:
        """From where its pictures count to its last row: nobody received it."""
        if not hasattr(self, "_known_span"):
            # Over all rows, and every page asks for it: what was found out once is kept.
            each = " UNION ALL ".join(
                f"SELECT min(wall_ns) AS a, max(wall_ns) AS b FROM {table}"  # noqa: S608
                for table in EVENT_TABLES
            )
            found = self._source.query_whole(f"SELECT min(a) AS a, max(b) AS b FROM ({each})")  # noqa: S608
            first, last = found["a"][0].as_py(), found["b"][0].as_py()
            meta = self._source.meta()
            t0 = t0_of(meta, meta.created_ns if first is None else first)
            self._known_span = (t0, t0 if last is None else last)
        return self._known_span

    def _found(self, run_id: str) -> RunSource:
        if run_id != self._source.run_id:
            hint = f"this trace is of run {self._source.run_id}"
            raise NoSuchRun("there is no run of that id here", where=run_id[:200], hint=hint)
        return self._source

    def _refuse(self) -> NoReturn:
        raise NotSupported(_WHY, hint="cascade serve takes rows")


class ReplaySql:
    """Strangers' SQL over one trace: a ``SqlRunner``.

    Statements come over a port that every user of this machine reaches, so the checks of
    ``cascade sql`` on one's own terminal are not enough. They run where a collector's do, in confined
    processes over a data folder that holds this trace and nothing else: a temporary one, made at the
    first statement. Its Parquet files are links to the trace's where the file system allows, else
    copies; what was left in the spool is sealed there. The trace itself is never written, and it may
    lie on a read-only disk.

    Args:
        trace: the trace: a folder or a zip.
        source: the same, as the pages read it.
    """

    def __init__(self, trace: Path, source: RunSource) -> None:
        self._trace = trace
        self._source = source
        self._making = threading.Lock()
        self._data: Path | None = None
        self._service: SqlService | None = None
        self._has_results = False

    def run(self, request: SqlRequest) -> SqlAnswer:
        """See SqlRunner.

        Raises:
            SqlFailed: there is no room for the temporary folder; what SqlService raises.
        """
        with self._making:
            service = self._made()
        if not self._has_results and _reads_results(request.sql):
            report = self._judged()  # other statements are answered meanwhile
            with self._making:
                if not self._has_results:
                    self._add_results(report)
        return service.run(request)

    def health(self) -> SqlHealth:
        """See SqlRunner."""
        if self._service is None:
            return SqlHealth(landlock=landlock.abi() > 0)
        return self._service.health()

    def close(self) -> None:
        """End the processes, remove the temporary folder."""
        if self._service is not None:
            self._service.close()
        if self._data is not None:
            shutil.rmtree(self._data, ignore_errors=True)

    @property
    def _run(self) -> Path:
        assert self._data is not None
        return run_folder(self._data, self._source.run_id)

    def _made(self) -> SqlService:
        if self._service is not None:
            return self._service
        self._data = Path(tempfile.mkdtemp(prefix="cascade-replay-"))
        try:
            with open_trace(self._trace) as opened:
                _copy_trace(opened.path, self._run)
            (self._run / "trace.json").write_bytes(format_trace_meta(self._source.meta()))
            if (self._run / "spool").is_dir():
                seal_trace(self._run)
            self._has_results = (self._run / "results").is_dir()
            self._service = SqlService(self._data)
        except (OSError, BadUsage) as error:
            shutil.rmtree(self._data, ignore_errors=True)
            why = error.strerror if isinstance(error, OSError) else str(error)
            raise SqlFailed(
                f"the trace cannot be copied for SQL: {why}",
                where="the folder for temporary files",
                hint="make room there, or set TMPDIR; cascade sql TRACE asks it without a copy",
            ) from error
        return self._service

    def _judged(self) -> Report:
        """What the analyzer says of a trace that came without results; waits for it."""
        until = time.monotonic() + _ANALYSIS_S
        while (report := self._source.report()) is None:
            problem = self._source.problem()
            if problem or time.monotonic() > until:
                raise SqlFailed(
                    f"this trace is not judged: {problem or 'the analyzer is at work'}",
                    where="result tables",
                    hint="ask again later; event tables can be asked all the same",
                )
            time.sleep(_LOOK_AGAIN_S)
        return report

    def _add_results(self, report: Report) -> None:
        found = {name: self._source.results(name) for name in RESULT_TABLES}
        tables = {name: table for name, table in found.items() if table is not None}
        write_results(self._run, tables, msgspec.json.encode(report))
        self._has_results = True


def _reads_results(sql: str) -> bool:
    """Whether a statement may read what the analyzer found, itself or through a named view."""
    words = {word.lower() for word in re.findall(r"\w+", sql)}
    return bool(words & (RESULT_TABLES.keys() | named_views().keys()))


def _copy_trace(trace: Path, into: Path) -> None:
    """A trace's files; what leads out of it is left out."""
    into.mkdir(parents=True)
    inside = Inside(trace)
    for kind, ending, put in _PARTS:
        for folder in inside.folders(inside.path(kind)):
            target = into / kind / folder.name
            target.mkdir(parents=True)
            for file in inside.files(folder, ending):
                put(file, target / file.name)


_PARTS: tuple[tuple[str, str, Callable[[Path, Path], object]], ...] = (
    ("events", ".parquet", link_or_copy),
    ("results", ".parquet", link_or_copy),
    ("spool", ".seg", shutil.copyfile),  # sealing changes it
)
