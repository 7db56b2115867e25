"""One rank keeps the others waiting, step after step, or right now.

Chronic: the same rank comes last to the step's last bucket, after the one before it by more than
``share_of_step`` of the step and more than ``min_ms``, in ``fires_in`` of ``of_steps`` steps, and this
stays so for ``dwell_s``. Lateness is a difference of waits, each measured by one rank's own clock.

Imminent: a bucket has been pending for ``stall_medians`` times the median step, and more than
``stall_min_ms``, because exactly one rank has not entered it: a stall is about to happen.

Either clears after ``clears_after`` steps without it. It cannot tell why a rank is late (its data, its
device, its host); two ranks that are late alike hide each other, since none of them comes last alone.
"""

from __future__ import annotations

from collections import deque
from statistics import median

from cascade_runtime.detectors._base import News, Spec, Verdict
from cascade_runtime.detectors._steps import Place, WholeStep, missing_from
from cascade_runtime.detectors._window import FiresIn
from cascade_runtime.vocabulary.fault import FaultEvent
from cascade_runtime.vocabulary.identity import Actor
from cascade_runtime.vocabulary.policy import RankSkewLimits

NAME = "rank_skew"
_PERIODS = 64
"""Steps that the median step is taken of."""


class RankSkew:
    """Judges waits of decided steps, and places in the open one.

    Args:
        limits: the policy's ``[rank_skew]``.
    """

    def __init__(self, limits: RankSkewLimits) -> None:
        self._limits = limits
        self._late: dict[Actor, FiresIn] = {}
        self._periods: deque[float] = deque(maxlen=_PERIODS)
        self._places: dict[Actor, Place] = {}
        self._steps_since: dict[Actor, int] = {}
        self._reading: list[Verdict] = []
        self._chronic = News()
        self._stalled = News()

    def feed_step(self, step: WholeStep, now_s: float) -> None:
        """A decided step, as all members told it."""
        for actor in list(self._steps_since):
            self._steps_since[actor] += 1
            if self._steps_since[actor] >= self._limits.clears_after:
                del self._steps_since[actor]
                why = f"{self._limits.clears_after} steps went by without another stall"
                self._stalled.end(actor, step.period_s * 1000, why)
        if len(step.waits_s) < 2:
            return
        self._periods.append(step.period_s)
        if len(self._periods) < self._limits.of_steps:
            return
        last, margin_s = step.last()
        limit_s = max(self._limits.share_of_step * step.period_s, self._limits.min_ms / 1000)
        self._reading = [_late(None, last, margin_s * 1000, limit_s * 1000, "")]
        if margin_s > limit_s and last not in self._late:
            limits = self._limits
            self._late[last] = FiresIn(
                limits.fires_in, limits.of_steps, limits.dwell_s, limits.clears_after
            )
        for actor, fires in list(self._late.items()):
            by_s = margin_s if actor == last else 0.0
            if fires.add(by_s > limit_s, now_s):
                self._tell_chronic(actor, fires.stands, by_s * 1000, limit_s * 1000)
            if fires.idle:
                del self._late[actor]

    def _tell_chronic(self, actor: Actor, begins: bool, by_ms: float, limit_ms: float) -> None:
        limits = self._limits
        if not begins:
            why = f"rank {actor} was in time for {limits.clears_after} steps"
            self._chronic.end(actor, by_ms, why)
            return
        why = (
            f"rank {actor} came last by {by_ms:.1f} ms, above {limit_ms:.1f} ms in "
            f"{limits.fires_in} of {limits.of_steps} steps"
        )
        self._chronic.begin(_late(FaultEvent.RANK_SKEW_HIGH, actor, by_ms, limit_ms, why))

    def feed_place(self, place: Place) -> None:
        """Where a member is now."""
        self._places[place.actor] = place

    def decide(self, now_s: float) -> list[Verdict]:
        """What began and what ended since the last call."""
        del now_s  # places say how long they stand
        self._judge_stall()
        return self._chronic.take() + self._stalled.take()

    def _judge_stall(self) -> None:
        if len(self._periods) < self._limits.of_steps:
            return
        missing, pending_s = missing_from(self._places)
        usual_s = median(self._periods)
        limit_s = max(self._limits.stall_medians * usual_s, self._limits.stall_min_ms / 1000)
        if len(missing) != 1 or pending_s <= limit_s:
            return
        (actor,) = missing
        self._steps_since[actor] = 0
        self._stalled.begin(
            Verdict(
                detector=NAME,
                signal="stall",
                fault=FaultEvent.RANK_SKEW_HIGH,
                subject=actor,
                value=pending_s * 1000,
                threshold=limit_s * 1000,
                unit="ms",
                why=(
                    f"the others have waited for rank {actor} for {pending_s * 1000:.0f} ms, "
                    f"and a step takes {usual_s * 1000:.0f} ms"
                ),
            )
        )

    @property
    def readings(self) -> list[Verdict]:
        """Who came last in the newest step, and by how much."""
        return self._reading

    @property
    def standing(self) -> list[Verdict]:
        """Ranks that keep others waiting."""
        return self._chronic.standing + self._stalled.standing

    def forget(self, actor: Actor) -> None:
        """The rank is gone."""
        for kept in (self._late, self._places, self._steps_since):
            kept.pop(actor, None)
        self._chronic.forget(actor)
        self._stalled.forget(actor)


def _late(
    fault: FaultEvent | None, actor: Actor, by_ms: float, limit_ms: float, why: str
) -> Verdict:
    return Verdict(
        detector=NAME,
        signal="late",
        fault=fault,
        subject=actor,
        value=by_ms,
        threshold=limit_ms,
        unit="ms",
        why=why,
    )


PLUGIN = Spec(NAME, frozenset({FaultEvent.RANK_SKEW_HIGH}), "rank_skew", RankSkew)
