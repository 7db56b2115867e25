"""Waits as they can be seen before an analysis: whoever enters a collective last made the others wait."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from collector.storage._interface import News
from dashboard.story import words
from dashboard.story.background_look import RETRY_S, SYNC_ROWS, BackgroundLook
from dashboard.story.judged_facts import MAX_PAIRS
from dashboard.story.model import WaitsPart
from dashboard.story.source import RunSource
from dashboard.story.wait_entries import Ints, Pairs, WaitEntries, entries_of, entries_sql

MIN_PAUSE_S = 2.0
SHARE = 20

_TABLE = "collectives"

SMALL_ROWS = 50_000
"""Of a run with so few a look takes no longer than the rest of a story."""

MAX_ROWS = 2_000_000
"""About so many rows of the run are looked at: its newest."""


class WaitsKeeper:
    """Keeps one run's provisional waits, refreshed at most every two seconds.

    Of a run that grows the entries that come are added to those that were read.

    Args:
        source: the run.
        mono_s: the clock.
    """

    def __init__(self, source: RunSource, mono_s: Callable[[], float] = time.monotonic) -> None:
        self._source = source
        self._mono_s = mono_s
        self._known: WaitsPart | None = None
        self._version: str | None = None
        self._entries: WaitEntries | None = None
        self._place: Mapping[str, int] | None = None
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

    def forget(self) -> None:
        """There is an analysis: nobody asks any more."""
        if not self._background.is_going_on:
            self._entries, self._place = None, None

    def as_of(
        self, version: str, num_rows: int, first_ns: int, last_ns: int, news: News | None
    ) -> WaitsPart | None:
        """The waits of this version, or of one shortly before.

        Args:
            version: of the run.
            num_rows: of all its tables.
            first_ns, last_ns: wall clocks of its first and last row.
            news: its newest rows, of a run that grows.
        """
        if version == self._version or self._mono_s() < self._not_before_s:
            return self._known
        since = _since(num_rows, first_ns, last_ns)
        # The first look at a run of moderate size is worth waiting for; later only a small one's.
        if num_rows <= (SYNC_ROWS if self._version is None else SMALL_ROWS):
            self._look(version, since, first_ns, last_ns, news)
            return self._known

        def failed() -> None:
            self._version, self._not_before_s = version, self._mono_s() + RETRY_S

        self._background.begin(lambda: self._look(version, since, first_ns, last_ns, news), failed)
        return self._known

    def _look(
        self, version: str, since_ns: int, first_ns: int, last_ns: int, news: News | None
    ) -> None:
        began = self._mono_s()
        if not self._grow(since_ns, news):
            self._entries = WaitEntries(since_ns)
            answer, seen = self._source.query_at(entries_sql(since_ns))
            self._entries.add(answer)
            self._place = None if seen is None else seen.place
        assert self._entries is not None
        self._known = _told(self._entries, first_ns, last_ns)
        if news is None:  # nothing comes that could be added
            self._entries = None
        took = self._mono_s() - began
        self._not_before_s = self._mono_s() + max(MIN_PAUSE_S, SHARE * took)
        self._version = version

    def _grow(self, since_ns: int, news: News | None) -> bool:
        """Add what came; False when it is not at hand, or older entries are wanted than are known."""
        if news is None or self._entries is None or self._place is None:
            return False
        if since_ns < self._entries.since_ns and not self._entries.is_full:
            return False
        if news.place.get(_TABLE, 0) < self._place.get(_TABLE, 0):
            return True  # a look that ended since has seen more than this
        found = news.after(self._place, _TABLE)
        if found is None:
            return False
        if found:  # all at once: what failed half way would be added twice
            self._entries.add(pa.concat_tables([entries_of(rows) for rows in found]))
        self._place = news.place
        self._entries.forget(since_ns)
        return True


def _since(num_rows: int, first_ns: int, last_ns: int) -> int:
    """The wall clock from which on about MAX_ROWS rows are."""
    part = min(1.0, MAX_ROWS / max(num_rows, 1))
    return first_ns if part == 1.0 else last_ns - int((last_ns - first_ns) * part)


def _told(entries: WaitEntries, first_ns: int, last_ns: int) -> WaitsPart | None:
    """Waits of whoever completed a collective for the last who did; None when there is none.

    How many belong to a collective is not known here: of one that some have yet to complete it counts
    those who have. Direct blame only: why the last was last, an analysis tells.
    """
    pairs = entries.pairs()
    if not len(pairs.num):
        return None
    since_ns = max(entries.since_ns, first_ns)
    waited, late = (_by_rank(ranks, pairs.wait_ns) for ranks in (pairs.waited, pairs.caused_by))
    ranks = sorted(waited.keys() | late.keys())
    total = int(pairs.wait_ns.sum()) / 1e9
    lifetime = (last_ns - since_ns) / 1e9 * len(ranks)
    return WaitsPart(
        source="provisional",
        kind="raw",
        total_rank_s=round(total, 9),
        exposed_rank_s=None,
        share_pct=round(words.percent(total, lifetime), 4),
        joules=None,
        refused=None,
        sentence=_sentence(total, pairs, late, since_ns > first_ns, max(0, last_ns - since_ns)),
        by_rank=[
            {
                "rank": rank,
                "waited_s": waited.get(rank, 0.0),
                "last_s": late.get(rank, 0.0),
            }
            for rank in ranks
        ],
        pairs=[
            {"caused_by": by, "waited": one, "num": num, "wait_s": ns / 1e9, "cause": "late rank"}
            for by, one, num, ns in zip(
                *(column[:MAX_PAIRS].tolist() for column in pairs), strict=True
            )
        ],
        chronic=None,
    )


def _by_rank(rank: Ints, wait_ns: Ints) -> dict[int, float]:
    """Seconds."""
    ranks, places = np.unique(rank, return_inverse=True)
    sums = np.zeros(len(ranks), np.int64)
    np.add.at(sums, places, wait_ns)
    return {one: ns / 1e9 for one, ns in zip(ranks.tolist(), sums.tolist(), strict=True)}


def _sentence(
    total: float, pairs: Pairs, late: dict[int, float], is_part: bool, span_ns: int
) -> str:
    over = f" in the last {words.duration(span_ns)}" if is_part else ""
    top = int(pairs.caused_by[0])
    return (
        f"Not judged yet: the ranks waited {words.seconds(total)} in collectives{over}, summed over "
        f"ranks; rank {top} came last for {words.seconds(late[top])} of it."
    )
