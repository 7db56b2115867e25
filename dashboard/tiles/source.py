"""What tiles need of a run: rows by SQL, whether more may come, whether all of it was judged."""

from __future__ import annotations

from typing import Any, Protocol

from cascade_runtime.vocabulary.trace_meta import TraceMeta
from collector.storage._interface import News


class RowSource(Protocol):
    """The part of a ``RunSource`` (dashboard/story) that is used here.

    A source of a saved trace may have an attribute ``path`` besides, the folder or the zip that it
    was opened from: then what is built is kept in the cache folder for the next opening.
    """

    run_id: str
    is_live: bool

    def meta(self) -> TraceMeta:
        """The run's trace.json."""
        ...

    def version(self) -> str:
        """Changes whenever rows or results may have changed; cheap."""
        ...

    def is_open(self) -> bool:
        """True while rows are expected."""
        ...

    def query(self, sql: str) -> Any:
        """A pyarrow.Table: trusted SQL over the run's tables."""
        ...

    def query_at(self, sql: str) -> tuple[Any, News | None]:
        """The same, and the news as of the rows that it saw: those of the last ``news``, or of later."""
        ...

    def news(self) -> News | None:
        """The newest rows, for whoever keeps what was read; None where no rows come any more."""
        ...

    def marks(self) -> dict[tuple[int, int], int] | None:
        """By (rank, incarnation): every row with a seq up to this one is there, or never comes.

        None where rows come in order of seq, or not at all.
        """
        ...

    def is_judged_whole(self) -> bool:
        """True when the result tables are of an analysis that saw every row."""
        ...


class RowSources(Protocol):
    """The runs that can be looked at."""

    def get(self, run_id: str) -> RowSource:
        """The source of one run.

        Raises:
            NoSuchRun: there is none of that id.
        """
        ...
