"""A story as it is asked "what held at t?": made once a story, each answer by bisection."""

from __future__ import annotations

from bisect import bisect_right
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from dashboard.story.actors import cast_of
from dashboard.story.facts import Facts
from dashboard.story.group_names import group_names
from dashboard.story.model import REGIME_CODES, Actor, Story, Walk

_WORDS = tuple(REGIME_CODES)


class Held(NamedTuple):
    """What an actor held: a code of model.REGIME_CODES."""

    regime: int
    since_ns: int
    epoch: int


class StateIndex:
    """Looks up a story.

    Args:
        facts: that the story was told from.
        story: the story.
    """

    def __init__(self, facts: Facts, story: Story) -> None:
        self._story = story
        self._walk_times = [walk.at_ns for walk in story.walks]
        names = group_names(facts)
        self.group_names = names.shown
        """Shown name of each group, by the name that the trace has."""
        self._first_views = {
            names(row["group_id"]): sorted({m["rank"] for m in row["members"] if m})
            for row in facts.rows.views
        }
        self.left = {
            key: facts.since(departure.wall_ns) for key, departure in cast_of(facts).left.items()
        }
        self._actors: dict[int, list[Actor]] = {}
        for actor in story.actors:
            if actor.kind != "agent":
                self._actors.setdefault(actor.rank, []).append(actor)
        self._spans: dict[tuple[int, int], dict[str, tuple[int, int]]] = {}
        self._index_regimes()

    def _index_regimes(self) -> None:
        """Where each actor's spans in each group begin and end in the story's columns."""
        spans = self._story.regimes.spans
        self._starts, rank, again = spans.start, spans.rank, spans.incarnation
        if not len(rank):
            return
        change = (np.diff(rank) != 0) | (np.diff(again) != 0) | (np.diff(spans.group) != 0)
        edges = [0, *(np.flatnonzero(change) + 1).tolist(), len(rank)]
        for low, high in pairwise(edges):
            key = (int(rank[low]), int(again[low]))
            self._spans.setdefault(key, {})[spans.groups[int(spans.group[low])]] = (low, high)

    def actor(self, rank: int, t_ns: int) -> Actor | None:
        """Who was that rank at t: its latest incarnation by then, else its first."""
        of_rank = self._actors.get(rank)
        if not of_rank:
            return None
        begun = [actor for actor in of_rank if actor.first_ns <= t_ns]
        return begun[-1] if begun else of_rank[0]

    def presence(self, actor: Actor, t_ns: int) -> str:
        """present, not_yet, gone or silent."""
        if t_ns < actor.first_ns:
            return "not_yet"
        if actor.end is not None and t_ns > actor.last_ns:
            return "gone"
        for silence in self._story.silent:
            lasts = silence.to_ns is None or t_ns < silence.to_ns
            who = (silence.rank, silence.incarnation)
            if who == (actor.rank, actor.incarnation) and silence.from_ns < t_ns and lasts:
                return "silent"
        return "present"

    def held(self, actor: Actor, t_ns: int) -> Held | None:
        """The weakest regime that the actor held in any group."""
        found: list[Held] = []
        for low, high in self._spans.get((actor.rank, actor.incarnation), {}).values():
            at = low + int(np.searchsorted(self._starts[low:high], t_ns, side="right")) - 1
            if at >= low:
                regimes = self._story.regimes
                what = regimes.regime[at], regimes.epoch[at]
                # Silence cuts a span in two; it was held since the first part began.
                while at > low and (regimes.regime[at - 1], regimes.epoch[at - 1]) == what:
                    at -= 1
                found.append(Held(what[0], regimes.start_ns[at], what[1]))
        return max(found, default=None)

    def last_walk(self, t_ns: int) -> int | None:
        """Index of the last walk up to t."""
        at = bisect_right(self._walk_times, t_ns) - 1
        return at if at >= 0 else None

    def groups(self, t_ns: int) -> list[dict[str, Any]]:
        """The view of each group at t."""
        done: dict[str, Walk] = {}
        later: dict[str, Walk] = {}
        for walk in self._story.walks:
            if walk.at_ns <= t_ns:
                done[walk.group] = walk
            else:
                later.setdefault(walk.group, walk)
        return [self._group(group, done.get(group), later) for group in self._story.groups]

    def _group(self, group: str, walk: Walk | None, later: dict[str, Walk]) -> dict[str, Any]:
        if walk is not None:
            return {
                "group": group,
                "epoch": walk.epoch,
                "regime": walk.to_regime,
                "members": walk.members,
                "missing": walk.missing,
                "cohorts": walk.cohorts,
            }
        members = self._first_views.get(group, [])
        first = self._first_span(group)
        regime = later[group].from_regime if group in later else None
        if regime is None and first is not None:
            regime = _WORDS[self._story.regimes.regime[first]]
        return {
            "group": group,
            "epoch": None if first is None else self._story.regimes.epoch[first],
            "regime": regime,
            "members": members,
            "missing": [],
            "cohorts": [members] if members else [],
        }

    def _first_span(self, group: str) -> int | None:
        spans = [of_group[group][0] for of_group in self._spans.values() if group in of_group]
        return min(spans, key=lambda at: int(self._starts[at]), default=None)


def cohort_of(rank: int, groups: list[dict[str, Any]]) -> int:
    """Which cohort of the view a rank steps with; 0 where there is one."""
    for group in groups:
        for number, cohort in enumerate(group["cohorts"]):
            if rank in cohort:
                return number
    return 0


def regime_word(code: int) -> str:
    """A regime's name."""
    return _WORDS[code]
