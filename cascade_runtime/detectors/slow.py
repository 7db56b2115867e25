"""A rank's progress word stands still while others wait for it.

The word is shared memory: the agent reads it without the rank's help, so a rank that holds its
interpreter lock for a second (pickling, compiling) is seen to be slow and is not taken for dead. A
slow rank is named and nothing else follows from it: it never counts as a fail-stop.

It is named when its word has stood still for ``min_s`` and for ``times_median`` times what its words
usually take, and some other member waits in a bucket that it has not entered. It is cleared when its
word moves. It cannot tell what the rank is doing, only in which phase of which step.
"""

from __future__ import annotations

from collections import deque
from statistics import median

from cascade_runtime.detectors._base import News, Spec, Verdict
from cascade_runtime.detectors._steps import ON_THE_WAY, Place, missing_from, not_there
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
        self._usual: dict[Actor, deque[float]] = {}
        self._news = News()

    def feed_place(self, place: Place) -> None:
        """Where a member is now."""
        before = self._places.get(place.actor)
        self._places[place.actor] = place
        if before is None or before.phase not in ON_THE_WAY:
            return
        if (before.decided, before.phase) != (place.decided, place.phase):
            self._usual.setdefault(place.actor, deque(maxlen=_STILLS)).append(before.still_s)

    def decide(self, now_s: float) -> list[Verdict]:
        """Who became slow, and who goes on."""
        del now_s  # places say how long they stand
        missing, _ = missing_from(self._places)
        for actor in missing:
            place = self._places[actor]
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
                            "and others wait for it"
                        ),
                    )
                )
        for verdict in self._news.standing:
            assert verdict.subject is not None
            place = self._places[verdict.subject]
            if place.still_s < verdict.value:
                why = f"rank {verdict.subject} goes on, in step {place.decided + 1}"
                self._news.end(verdict.subject, place.still_s, why)
        return self._news.take()

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
        self._usual.pop(actor, None)
        self._news.forget(actor)


PLUGIN = Spec(NAME, frozenset(), "slow", Slow)
