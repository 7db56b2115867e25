"""What the picture needs of a run, wherever the run is kept."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Protocol

import pyarrow as pa

from cascade_runtime.vocabulary.report import Report
from cascade_runtime.vocabulary.trace_meta import TraceMeta
from collector.storage._interface import News

MAX_PLAN = 50
"""Sentences of what a job says will happen next."""


class RunSource(Protocol):
    """One run, on disk or in a collector's store. Safe to call from several threads.

    Attributes:
        run_id: the run.
        is_live: the run is in a store that rows may still come to.
    """

    run_id: str
    is_live: bool

    def meta(self) -> TraceMeta:
        """trace.json as it is now."""
        ...

    def plan(self) -> list[str]:
        """What the job says will happen next, from trace.json's ``story``; mostly nothing."""
        ...

    def version(self) -> str:
        """Changes whenever rows or results may have changed; cheap."""
        ...

    def num_rows(self) -> int:
        """Rows of all event tables as of now; cheap."""
        ...

    def is_open(self) -> bool:
        """True while rows are expected: the run has not ended, and got something lately."""
        ...

    def last_came_ns(self) -> int | None:
        """Wall clock of the last arrival of anything; None where nobody listens any more."""
        ...

    def query(self, sql: str) -> pa.Table:
        """Trusted SQL over the tables and named views of this run, for what is shown at once.

        Of a run that grows the rows of the last half second may be missing, but none that came
        before the last ``news``.

        Raises:
            BadUsage: the statement fails.
            BadTrace: a file that it needs cannot be read.
        """
        ...

    def query_whole(self, sql: str) -> pa.Table:
        """The same over every row that there is now.

        Of a saved trace a slow answer is kept for the next opening.

        Raises:
            BadUsage, BadTrace: as ``query``.
        """
        ...

    def query_at(self, sql: str) -> tuple[pa.Table, News | None]:
        """The same, and the news as of the rows that it saw.

        Raises:
            BadUsage, BadTrace: as ``query``.
        """
        ...

    def question(self) -> AbstractContextManager[None]:
        """Around work on an answer that somebody waits for: what comes in gives way for a moment."""
        ...

    def news(self) -> News | None:
        """The newest rows, for whoever keeps what was read; None where no rows come any more."""
        ...

    def report(self) -> Report | None:
        """The last analysis; None while there is none (a trace on disk is then being judged)."""
        ...

    def judged_ns(self) -> int | None:
        """Wall clock of the last analysis."""
        ...

    def marks(self) -> dict[tuple[int, int], int] | None:
        """By (rank, incarnation): every row with a seq up to this one is there, or never comes.

        None where no rows come any more.
        """
        ...

    def is_judged_whole(self) -> bool:
        """True when the last analysis saw every row: nothing is awaited any more."""
        ...

    def problem(self) -> str | None:
        """Why the run cannot be judged; None when it can, or was."""
        ...

    def results(self, name: str) -> pa.Table | None:
        """A result table of that analysis; None while there is none."""
        ...

    def close(self) -> None:
        """Give back what is held."""
        ...


class RunSources(Protocol):
    """The runs that can be looked at."""

    def get(self, run_id: str) -> RunSource:
        """The source of one run; the same one as long as it is held.

        Raises:
            NoSuchRun: there is none of that id.
        """
        ...

    def close(self) -> None:
        """Give back what all of them hold."""
        ...
