"""All that a story is told from, as of one moment, and when to ask what again."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from cascade_runtime.vocabulary.report import Report
from cascade_runtime.vocabulary.trace_meta import TraceMeta
from dashboard.story.activity import Activity
from dashboard.story.activity_keeper import ActivityKeeper
from dashboard.story.judged_facts import JudgedFacts, read_judged
from dashboard.story.model import WaitsPart
from dashboard.story.provisional_waits import WaitsKeeper
from dashboard.story.sample_keeper import SampleKeeper
from dashboard.story.small_rows import SmallKeeper, SmallRows
from dashboard.story.source import RunSource
from dashboard.tiles.rows import t0_of


@dataclass(frozen=True)
class Facts:
    """What is known of a run.

    Attributes:
        state: waiting, live, ended, stopped, unclean.
        t0_ns: wall clock that the story counts from.
        t1_ns: wall clock of the last row.
        now_ns: wall clock of this moment.
        activity: None while it is being found out.
        judged: None while there is no analysis.
        is_whole: that analysis saw every row.
        samples: whether there is any of ``gpu``, ``cpu``, ``compute``.
        provisional: waits as seen without an analysis.
        generation: the keeper's, of which all of this is.
        is_fresh: False when a part is of a moment before, because asking it again so soon costs much.
    """

    source: RunSource
    meta: TraceMeta
    plan: list[str]
    state: str
    num_rows: int
    t0_ns: int
    t1_ns: int
    now_ns: int
    rows: SmallRows
    activity: Activity | None
    judged: JudgedFacts | None
    is_whole: bool
    problem: str | None
    samples: dict[str, bool]
    provisional: WaitsPart | None
    generation: int
    is_fresh: bool

    @property
    def is_stopped_early(self) -> bool:
        """Somebody ended the job before its scripts did (Ctrl-C, SIGTERM), and its end was told."""
        return self.state == "stopped"

    @property
    def report(self) -> Report | None:
        """The last analysis."""
        return None if self.judged is None else self.judged.report

    def since(self, wall_ns: int) -> int:
        """A wall clock in ns since t0."""
        return wall_ns - self.t0_ns


class FactsKeeper:
    """Finds out what has changed.

    Args:
        source: the run.
        mono_s: the clock.
    """

    def __init__(self, source: RunSource, mono_s: Callable[[], float] = time.monotonic) -> None:
        self._source = source
        self._activity = ActivityKeeper(source, mono_s)
        self._waits = WaitsKeeper(source, mono_s)
        self._judged: JudgedFacts | None = None
        self._rows = SmallKeeper(source)
        self._samples = SampleKeeper(source)
        self._asking = threading.Lock()

    @property
    def generation(self) -> int:
        """Changes when something was found out in the background."""
        return self._activity.generation + self._waits.generation

    def building(self) -> dict[str, Any] | None:
        """What is being found out in the background."""
        return self._activity.building() or self._waits.building()

    def state(self, num_rows: int) -> str:
        """The run's state; see model.RunPart."""
        meta = self._source.meta()
        if meta.ended_ns is not None:
            if meta.clean_end is False:
                return "stopped"
            return "ended" if meta.clean_end is True else "unclean"
        if self._source.is_open():
            return "live" if num_rows else "waiting"
        return "unclean"

    def facts(self) -> Facts:
        """All of it as of now."""
        with self._asking:
            return self._ask()

    def _ask(self) -> Facts:
        source, version = self._source, self._source.version()
        meta, num_rows = source.meta(), source.num_rows()
        self._judged = read_judged(source, self._judged)
        generation, looked = self.generation, self._activity.generation
        news = source.news()  # of this version, or of one that came meanwhile
        rows = self._rows.as_of(news)
        activity = self._activity.as_of(version, num_rows, rows, news)
        if activity is not None and not source.is_live:  # a look that ended meanwhile is all in it
            generation += self._activity.generation - looked
        first, last = _ends(rows, activity)
        now_ns = time.time_ns()
        t0 = t0_of(meta, first if first is not None else meta.created_ns)
        is_whole = self._judged is not None and source.is_judged_whole()
        provisional = None
        if self._judged is None and last is not None and first is not None:
            provisional = self._waits.as_of(version, num_rows, first, last, news)
        elif self._judged is not None:
            self._waits.forget()
        return Facts(
            source=source,
            meta=meta,
            plan=source.plan(),
            state=self.state(num_rows),
            num_rows=num_rows,
            t0_ns=t0,
            t1_ns=t0 if last is None else last,
            now_ns=now_ns,
            rows=rows,
            activity=activity,
            judged=self._judged,
            is_whole=is_whole,
            problem=source.problem(),
            samples=self._samples.as_of(version, news),
            provisional=provisional,
            generation=generation,
            is_fresh=self._activity.is_of(version)
            and (self._judged is not None or last is None or self._waits.is_of(version)),
        )


def _ends(rows: SmallRows, activity: Activity | None) -> tuple[int | None, int | None]:
    """Wall clocks of the first and the last row."""
    if activity is not None and activity.spans:
        # Few rows are asked for at each look, all rows' times not: the newest walk is on the axis.
        newest = max((walk["wall_ns"] for walk in rows.walks), default=0)
        return activity.first_ns, max(activity.last_ns or 0, newest)
    seen = rows.points["wall_ns"].to_pylist() + [row["wall_ns"] for row in rows.faults]
    return min(seen, default=None), max(seen, default=None)
