"""What the pages show from: the store, the sources of runs, strangers' SQL."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from collector.storage._interface import EventStore, RunSummary
from collector.web.sessions import Sessions
from collector.web.sql import SqlRunner

if TYPE_CHECKING:
    from dashboard.story.source import RunSource, RunSources


@dataclass(frozen=True)
class Shell:
    """One dashboard.

    Attributes:
        store: of the runs; in a replay, the one trace as a store that takes nothing.
        sources: what a run's pictures and charts read.
        sql: runs what people type.
        sessions: who signed in.
        replayed: the trace that is shown, as a person called it; None for a collector.
    """

    store: EventStore
    sources: RunSources
    sql: SqlRunner
    sessions: Sessions
    replayed: str | None = None

    def runs(self) -> list[RunSummary]:
        """Every run: live ones first, then the newest."""
        return sorted(self.store.runs(), key=lambda run: (run.state != "live", -run.first_seen_ns))

    def run(self, run_id: str) -> RunSummary | None:
        """One run; None when it is not here."""
        return next((run for run in self.store.runs() if run.run_id == run_id), None)

    def source(self, run_id: str) -> RunSource:
        """What a run's charts read.

        Raises:
            LookupError: there is no run of that id.
        """
        return self.sources.get(run_id)
