"""Waits as they can be seen before an analysis: whoever enters a collective last made the others wait."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from analyzer.instances import N_TO_N
from dashboard.story import words
from dashboard.story.background_look import RETRY_S, SYNC_ROWS, BackgroundLook
from dashboard.story.judged_facts import MAX_PAIRS
from dashboard.story.model import WaitsPart
from dashboard.story.source import RunSource

MIN_PAUSE_S = 2.0
SHARE = 20

SMALL_ROWS = 50_000
"""Of a run with so few a look takes no longer than the rest of a story."""

MAX_ROWS = 2_000_000
"""About so many rows of the run are looked at: its newest."""

ALL_WAIT = ", ".join(f"'{op}'" for op in sorted(N_TO_N))
"""The operations in which everybody waits for the last, as SQL words."""


class WaitsKeeper:
    """Keeps one run's provisional waits, refreshed at most every two seconds.

    Args:
        source: the run.
        mono_s: the clock.
    """

    def __init__(self, source: RunSource, mono_s: Callable[[], float] = time.monotonic) -> None:
        self._source = source
        self._mono_s = mono_s
        self._known: WaitsPart | None = None
        self._version: str | None = None
        self._not_before_s = 0.0
        self._background = BackgroundLook("cascade-provisional", f"waits of run {source.run_id}")

    @property
    def generation(self) -> int:
        """Grows when waits were found out in the background."""
        return self._background.generation

    def building(self) -> dict[str, Any] | None:
        """What a person is told while the first look is being taken."""
        if not self._background.was_begun or self._version is not None:
            return None
        return {"share": 0.5, "what": "reading the newest collectives"}

    def is_of(self, version: str) -> bool:
        """Whether what is known is of this version."""
        return version == self._version

    def as_of(self, version: str, num_rows: int, first_ns: int, last_ns: int) -> WaitsPart | None:
        """The waits of this version, or of one shortly before."""
        if version == self._version or self._mono_s() < self._not_before_s:
            return self._known
        # The first look at a run of moderate size is worth waiting for; later only a small one's.
        if num_rows <= (SYNC_ROWS if self._version is None else SMALL_ROWS):
            self._look(version, num_rows, first_ns, last_ns)
            return self._known

        def failed() -> None:
            self._version, self._not_before_s = version, self._mono_s() + RETRY_S

        self._background.begin(lambda: self._look(version, num_rows, first_ns, last_ns), failed)
        return self._known

    def _look(self, version: str, num_rows: int, first_ns: int, last_ns: int) -> None:
        began = self._mono_s()
        self._known = provisional_waits(self._source, num_rows, first_ns, last_ns)
        took = self._mono_s() - began
        self._not_before_s = self._mono_s() + max(MIN_PAUSE_S, SHARE * took)
        self._version = version


def provisional_waits(
    source: RunSource, num_rows: int, first_ns: int, last_ns: int
) -> WaitsPart | None:
    """Waits in collectives that everybody completed; None when there is none.

    Direct blame only: why the last was last, an analysis tells.
    """
    span = last_ns - first_ns
    part = min(1.0, MAX_ROWS / max(num_rows, 1))
    since = first_ns if part == 1.0 else last_ns - int(span * part)
    found = source.query(_sql(since)).to_pylist()
    if not found:
        return None
    ranks: dict[int, dict[str, float]] = {}

    def of(rank: int) -> dict[str, float]:
        return ranks.setdefault(
            rank, {"rank": rank, "waited_s": 0.0, "caused_s": 0.0, "last_s": 0.0}
        )

    for pair in found:
        of(pair["waited"])["waited_s"] += pair["wait_s"]
        late = of(pair["caused_by"])
        late["caused_s"] += pair["wait_s"]
        late["last_s"] += pair["wait_s"]
    total = sum(pair["wait_s"] for pair in found)
    lifetime = (last_ns - since) / 1e9 * len(ranks)
    return WaitsPart(
        source="provisional",
        kind="raw",
        total_rank_s=round(total, 9),
        exposed_rank_s=None,
        share_pct=round(words.percent(total, lifetime), 4),
        joules=None,
        refused=None,
        sentence=_sentence(total, found, since > first_ns, last_ns - since),
        by_rank=[ranks[rank] for rank in sorted(ranks)],
        pairs=found[:MAX_PAIRS],
        chronic=None,
    )


def _sentence(total: float, pairs: list[dict[str, Any]], is_part: bool, span_ns: int) -> str:
    over = f" in the last {words.duration(span_ns)}" if is_part else ""
    top = pairs[0]["caused_by"]
    caused = sum(pair["wait_s"] for pair in pairs if pair["caused_by"] == top)
    return (
        f"Not judged yet: the ranks waited {words.seconds(total)} in collectives{over}, summed over "
        f"ranks; rank {top} came last for {words.seconds(caused)} of it."
    )


def _sql(since_ns: int) -> str:
    return f"""
        WITH entries AS (
            SELECT comm_id, cseq, rank, coalesce(start_ns, enter_ns, wall_ns) AS came
            FROM collectives
            WHERE wall_ns >= {since_ns} AND completed AND op IN ({ALL_WAIT})
        ),
        timed AS (
            SELECT *, max(came) OVER whole AS last_at, arg_max(rank, (came, -rank)) OVER whole AS last_rank
            FROM entries WINDOW whole AS (PARTITION BY comm_id, cseq)
        )
        SELECT last_rank AS caused_by, rank AS waited, count(*)::BIGINT AS num,
            sum(last_at - came) / 1e9 AS wait_s, 'late rank' AS cause
        FROM timed WHERE last_at > came
        GROUP BY last_rank, rank ORDER BY wait_s DESC, caused_by, waited
    """  # noqa: S608  # numbers and words of ours
