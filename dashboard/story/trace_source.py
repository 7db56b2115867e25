"""A run that lies on disk as a trace: a folder, one zip of it, or a packaged sample."""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import pyarrow as pa

from analyzer import Analysis, analyze
from cascade_runtime.vocabulary.errors import CascadeError
from cascade_runtime.vocabulary.report import Report
from cascade_runtime.vocabulary.schema import EVENT_TABLES
from cascade_runtime.vocabulary.trace_meta import TraceMeta
from collector.trace.samples import resolve_trace
from collector.trace.trace_folder import TraceFolder, open_trace
from dashboard.story.kept_answers import KeptAnswers
from dashboard.story.report_file import ReportFile
from dashboard.story.source import MAX_PLAN
from dashboard.story.trace_tables import TraceTables

_log = logging.getLogger(__name__)


class TraceRun:
    """A ``RunSource`` over a trace. Nothing is written into it.

    A trace without results is judged once, in a thread; until then ``report()`` is None.

    Args:
        name_or_path: a folder, a ``.cascade.zip``, or the name of a packaged sample.

    Raises:
        BadTrace: there is no such trace, or it is damaged.
    """

    is_live = False

    def __init__(self, name_or_path: str | Path) -> None:
        self.path = resolve_trace(name_or_path)
        self._folder: TraceFolder = open_trace(self.path)
        self.run_id = self._folder.meta.run_id
        self._tables = TraceTables(self._folder)
        self._answers = KeptAnswers(self.path, self._tables.query)
        self._file = ReportFile(self._folder.path)
        self._results_of = self._file.stamp()
        self._starting = threading.Lock()
        self._judging: threading.Thread | None = None
        self._made: Report | None = None
        self._results: Mapping[str, pa.Table] = {}
        self._judged_ns: int | None = None
        self._problem: str | None = None
        self._num_rows: int | None = None

    def meta(self) -> TraceMeta:
        """See RunSource."""
        return self._folder.meta

    def plan(self) -> list[str]:
        """See RunSource."""
        return list(self.meta().story or [])[:MAX_PLAN]

    def version(self) -> str:
        """See RunSource."""
        made = "made" if self._made is not None else "failed" if self._problem else "open"
        return f"{self._file.stamp()[1]}-{made}"

    def num_rows(self) -> int:
        """See RunSource; the first call looks at every table."""
        if self._num_rows is None:
            each = " UNION ALL ".join(f"SELECT count(*) AS n FROM {t}" for t in EVENT_TABLES)  # noqa: S608
            answer = self.query_whole(f"SELECT sum(n)::BIGINT AS n FROM ({each})")  # noqa: S608
            self._num_rows = int(answer["n"][0].as_py())
        return self._num_rows

    def is_open(self) -> bool:
        """See RunSource."""
        return False

    def last_came_ns(self) -> int | None:
        """See RunSource."""
        return None

    def query(self, sql: str) -> pa.Table:
        """See RunSource."""
        return self._tables.query(sql)

    def query_whole(self, sql: str) -> pa.Table:
        """See RunSource."""
        return self._answers.query(sql)

    def query_at(self, sql: str) -> tuple[pa.Table, None]:
        """See RunSource."""
        return self.query_whole(sql), None

    def question(self) -> AbstractContextManager[None]:
        """See RunSource; nothing comes in."""
        return nullcontext()

    def news(self) -> None:
        """See RunSource."""

    def report(self) -> Report | None:
        """See RunSource; the first call starts judging where there is no report."""
        self._follow_results()
        report = self._file.read() or self._made
        if report is None:
            self._judge_once()
        return report

    def judged_ns(self) -> int | None:
        """See RunSource; a trace that does not grow was judged as a whole."""
        return self._file.stamp()[1] or self._judged_ns

    def marks(self) -> None:
        """See RunSource."""

    def is_judged_whole(self) -> bool:
        """See RunSource; a trace does not grow."""
        return self.report() is not None

    def problem(self) -> str | None:
        """See RunSource."""
        return self._problem

    def results(self, name: str) -> pa.Table | None:
        """See RunSource."""
        if self.report() is None:
            return None
        return self._results[name] if self._results else self.query(f"FROM {name}")

    def wait_until_judged(self, timeout_s: float) -> bool:
        """Wait for the judging that was started; True when there is a report."""
        if self.report() is None and self._judging is not None:
            self._judging.join(timeout_s)
        return self.report() is not None

    def close(self) -> None:
        """See RunSource. A judging under way goes on to its end, and its answer is dropped."""
        self._tables.close()
        self._folder.close()

    def _follow_results(self) -> None:
        """Somebody analysed the trace meanwhile: tables and kept answers are of the new results."""
        stamp = self._file.stamp()
        with self._starting:
            if stamp in (self._results_of, (0, 0)):  # or just being replaced
                return
            self._results_of = stamp
            self._results = {}
            self._tables.renew_results()
            self._answers.renew()

    def _judge_once(self) -> None:
        with self._starting:
            if self._judging is None:
                self._judging = threading.Thread(
                    target=self._judge, name="cascade-judge", daemon=True
                )
                self._judging.start()

    def _judge(self) -> None:
        try:
            with open_trace(self.path) as source:  # its own: reading is not for two threads
                analysis: Analysis = analyze(source)
                self._judged_ns = (source.path / "trace.json").stat().st_mtime_ns
            self._tables.set_results(analysis.results)
        except CascadeError as error:
            self._problem = error.message
        except Exception as error:  # the story says that it failed; the picture stays
            _log.exception("the trace %s could not be judged", self.run_id)
            self._problem = f"{type(error).__name__} in the analysis"
        else:
            self._results = analysis.results
            self._made = analysis.report
