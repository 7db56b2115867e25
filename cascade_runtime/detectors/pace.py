"""A rank that steps by itself keeps the others' pace again, so it may step with them again.

Measured is its own time for a step, without what it waited, against the median of the other ranks' own
times. It is named when it was no more than ``share_of_median`` and ``min_ms`` above that for ``steps``
steps in a row and for ``dwell_s``. Where no cohort is larger than its own, nobody can say whose pace is
the right one, and the others' must be no more above its own either.

It is over when ``ends_in`` of ``of_steps`` steps are beyond the limit. A rank that is set apart again
within ``forgets_s`` must keep the pace for twice as many steps as the last time, up to 16 times as
many. No fault event follows; that cohorts are to be joined is the leading agent's business. It cannot
tell why a rank was slow, nor whether it will be again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from statistics import median

from cascade_runtime.detectors._base import News, Spec, Verdict
from cascade_runtime.detectors._steps import StepWait
from cascade_runtime.vocabulary.identity import Actor
from cascade_runtime.vocabulary.policy import PaceLimits

NAME = "pace"
_RECENT = 9
"""Steps that a rank's own time is the median of."""
_MOST_TIMES = 4
"""Doublings."""


class _Alone:
    """A rank that is a cohort of its own."""

    def __init__(self, needed: int, of_steps: int, *, is_equal: bool) -> None:
        self.needed = needed
        self.is_equal = is_equal
        """No cohort is larger."""
        self.good = 0
        self.since_s = 0.0
        self.last: deque[bool] = deque(maxlen=of_steps)

    def add(self, bad: bool, now_s: float) -> None:
        """One more step."""
        self.last.append(bad)
        if bad:
            self.good = 0
        else:
            self.since_s = now_s if self.good == 0 else self.since_s
            self.good += 1


class Pace:
    """Judges own times of steps, as members tell them.

    Args:
        limits: the policy's ``[pace]``.
    """

    def __init__(self, limits: PaceLimits) -> None:
        self._limits = limits
        self._epoch = -1
        self._members: frozenset[Actor] = frozenset()
        self._alone: dict[Actor, _Alone] = {}
        self._recent: dict[Actor, deque[float]] = {}
        self._times: dict[Actor, tuple[int, float]] = {}
        self._readings: dict[Actor, Verdict] = {}
        self._news = News()

    def feed_cohorts(self, epoch: int, cohorts: Sequence[Sequence[Actor]], now_s: float) -> None:
        """Another view: who steps with whom. What was measured of steps before it counts no more."""
        largest = max(map(len, cohorts), default=0)
        alone = {c[0] for c in cohorts if len(c) == 1 and len(cohorts) > 1}
        for actor in list(self._alone):
            self._news.forget(actor)
            times, _ = self._times[actor]
            self._times[actor] = times, now_s
        before, self._alone = self._alone, {}
        for actor in sorted(alone):
            times, last_s = self._times.get(actor, (0, now_s))
            if actor not in before:
                times = 1 if now_s - last_s > self._limits.forgets_s else times + 1
            self._times[actor] = times, now_s
            needed = self._limits.steps * 2 ** min(times - 1, _MOST_TIMES)
            self._alone[actor] = _Alone(needed, self._limits.of_steps, is_equal=largest == 1)
        self._epoch, self._members = epoch, frozenset(a for c in cohorts for a in c)
        self._recent.clear()
        self._readings.clear()

    def feed_wait(self, told: StepWait, now_s: float) -> None:
        """One member's own account of a step; of another epoch or of no member it says nothing."""
        if told.epoch != self._epoch or told.actor not in self._members or not self._alone:
            return
        own_s = max(0.0, told.period_s - told.wait_s)
        self._recent.setdefault(told.actor, deque(maxlen=_RECENT)).append(own_s)
        alone = self._alone.get(told.actor)
        others = [median(t) for a, t in self._recent.items() if a != told.actor]
        if alone is None or 2 * len(others) < len(self._members) - 1:
            return
        usual_s = median(others)
        limit_s = self._above(usual_s)
        alone.add(own_s > limit_s or (alone.is_equal and usual_s > self._above(own_s)), now_s)
        self._judge(told.actor, alone, own_s * 1000, limit_s * 1000, now_s)

    def _above(self, usual_s: float) -> float:
        limits = self._limits
        return max((1 + limits.share_of_median) * usual_s, usual_s + limits.min_ms / 1000)

    def _judge(
        self, actor: Actor, alone: _Alone, own_ms: float, limit_ms: float, now_s: float
    ) -> None:
        limits = self._limits
        self._readings[actor] = _kept(actor, own_ms, limit_ms, "")
        if actor in self._news:
            if sum(alone.last) >= limits.ends_in:
                why = f"rank {actor} takes {own_ms:.1f} ms a step again, above {limit_ms:.1f} ms"
                self._news.end(actor, own_ms, why)
        elif alone.good >= alone.needed and now_s - alone.since_s >= limits.dwell_s:
            why = (
                f"rank {actor} by itself took no more than {limit_ms:.1f} ms a step "
                f"in {alone.good} steps, as the others do"
            )
            self._news.begin(_kept(actor, own_ms, limit_ms, why))

    def decide(self, now_s: float) -> list[Verdict]:
        """Who keeps the pace now, and who does not any more."""
        del now_s  # steps say when they were
        return self._news.take()

    @property
    def readings(self) -> list[Verdict]:
        """The newest step of each rank that steps by itself."""
        return [self._readings[actor] for actor in sorted(self._readings)]

    @property
    def standing(self) -> list[Verdict]:
        """Ranks that step by themselves and need not any more."""
        return self._news.standing

    def forget(self, actor: Actor) -> None:
        """The rank is gone."""
        for kept in (self._alone, self._recent, self._times, self._readings):
            kept.pop(actor, None)
        self._news.forget(actor)


def _kept(actor: Actor, own_ms: float, limit_ms: float, why: str) -> Verdict:
    return Verdict(
        detector=NAME,
        signal="own_step",
        fault=None,
        subject=actor,
        value=own_ms,
        threshold=limit_ms,
        unit="ms",
        why=why,
    )


PLUGIN = Spec(NAME, frozenset(), "pace", Pace)
