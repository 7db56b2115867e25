"""A rank's progress word stands still while others wait for it.

The word is shared memory: the agent reads it without the rank's help, so a rank that holds its
interpreter lock for a second (pickling, compiling) is seen to be slow and is not taken for dead. A
slow rank is named and nothing else follows from it: it never counts as a fail-stop.

It is named when its word has stood still for ``min_s`` and for ``times_median`` times what its words
usually take, and some other member waits in a bucket that it has not entered; or it steps by itself, and
all of another cohort wait although none of them is missing: at the staleness bound, for what it folds.
It is cleared when its word moves. It cannot tell what the rank is doing, only in which phase of which step.
"""

from __future__ import annotations

from collections import deque
from statistics import median

from cascade_runtime.detectors._base import News, Spec, Verdict
from cascade_runtime.detectors._steps import ARRIVED, ON_THE_WAY, Place, missing_from, not_there
from cascade_runtime.vocabulary.identity import Actor
from cascade_runtime.vocabulary.policy import SlowLimits

NAME = "slow"
_STILLS = 64
"""Looks that the usual time of a word is taken of."""


class Slow:
    """Judges progress words.

    Args:
        limits: the policy's ``[slow]``.
    """

    def __init__(self, limits: SlowLimits) -> None:
        self._limits = limits
        self._places: dict[Actor, Place] = {}
        self._alone: dict[Actor, Place] = {}
        """Of ranks that step by themselves."""
        self._usual: dict[Actor, deque[float]] = {}
        self._news = News()

    def feed_place(self, place: Place) -> None:
        """Where a member is now that steps with others."""
        self._alone.pop(place.actor, None)
        self._feed(self._places, place)

    def feed_alone(self, place: Place) -> None:
        """The same of a rank that steps by itself."""
        self._places.pop(place.actor, None)
        self._feed(self._alone, place)

    def _feed(self, places: dict[Actor, Place], place: Place) -> None:
        before = places.get(place.actor)
        places[place.actor] = place
        if before is None or before.phase not in ON_THE_WAY:
            return
        if (before.decided, before.phase) != (place.decided, place.phase):
            self._usual.setdefault(place.actor, deque(maxlen=_STILLS)).append(before.still_s)

    def decide(self, now_s: float) -> list[Verdict]:
        """Who became slow, and who goes on."""
        del now_s  # places say how long they stand
        missing, _ = missing_from(self._places)
        waited = [(self._places[a], "and others wait for it") for a in missing]
        at_bound = [(p, "and others wait for it to fold their updates") for p in self._held_up()]
        for place, how in waited + at_bound:
            actor = place.actor
            limit_s = max(self._limits.min_s, self._limits.times_median * self._usual_s(actor))
            if place.still_s > limit_s:
                self._news.begin(
                    Verdict(
                        detector=NAME,
                        signal="stands_still",
                        fault=None,
                        subject=actor,
                        value=place.still_s,
                        threshold=limit_s,
                        unit="s",
                        why=(
                            f"rank {actor} {not_there(place.phase, place.decided + 1, place.still_s)}, "
                            f"{how}"
                        ),
                    )
                )
        for verdict in self._news.standing:
            assert verdict.subject is not None
            place = {**self._places, **self._alone}[verdict.subject]
            if place.still_s < verdict.value:
                why = f"rank {verdict.subject} goes on, in step {place.decided + 1}"
                self._news.end(verdict.subject, place.still_s, why)
        return self._news.take()

    def _held_up(self) -> list[Place]:
        """Ranks that step by themselves and are on their way while all of another cohort wait."""
        together = list(self._places.values())
        return [
            place
            for actor, place in sorted(self._alone.items())
            if place.phase in ON_THE_WAY
            and any(
                cohort
                and all(p.phase == ARRIVED and p.still_s > self._limits.min_s for p in cohort)
                for cohort in (together, *([p] for a, p in self._alone.items() if a != actor))
            )
        ]

    def _usual_s(self, actor: Actor) -> float:
        usual = self._usual.get(actor)
        return median(usual) if usual else 0.0

    @property
    def standing(self) -> list[Verdict]:
        """Who is slow."""
        return self._news.standing

    def forget(self, actor: Actor) -> None:
        """The rank is gone."""
        self._places.pop(actor, None)
        self._alone.pop(actor, None)
        self._usual.pop(actor, None)
        self._news.forget(actor)


PLUGIN = Spec(NAME, frozenset(), "slow", Slow)
