"""The network between the members has become slow: the transfer takes many times what it did.

Of each step every member tells how long it waited in the last bucket. Who came last waited for the
transfer alone, so the least wait is the transfer, and what the others waited beyond it is somebody's
late arrival (``rank_skew``). Round trips between agents are judged in the same way; nothing measures them
so far (docs/detectors.md).

It fires when the transfer is above ``times_median`` times its median of the last ``median_window_s``
and above ``min_ms``, in ``fires_in`` of ``of_steps`` steps, and stays so for ``dwell_s``; it clears
after ``clears_after`` good steps. Bad steps do not enter the median, so a fault stands as long as the link is slow. The first
``warm_up`` steps only teach it.

It cannot tell which link it is (a reduction goes over all), nor a slow network from a machine that
has no CPU to spare for moving data.
"""

from __future__ import annotations

from cascade_runtime.detectors._base import News, Spec, Verdict
from cascade_runtime.detectors._steps import WholeStep
from cascade_runtime.detectors._window import FiresIn, RecentMedian
from cascade_runtime.vocabulary.fault import FaultEvent
from cascade_runtime.vocabulary.identity import Actor
from cascade_runtime.vocabulary.policy import LinkDelayLimits

NAME = "link_delay"


class _Series:
    """One stream of durations (s) that should stay near its own median."""

    def __init__(self, limits: LinkDelayLimits) -> None:
        self._limits = limits
        self._median = RecentMedian(limits.median_window_s, limits.warm_up)
        self._fires = FiresIn(limits.fires_in, limits.of_steps, limits.dwell_s, limits.clears_after)

    def feed(self, value_s: float, now_s: float) -> tuple[bool, float]:
        """Whether the fault begins or ends here, and the limit that held (s)."""
        usual = self._median.value
        if usual is None:
            self._median.add(value_s, now_s)
            return False, 0.0
        limit = max(self._limits.times_median * usual, self._limits.min_ms / 1000)
        bad = value_s > limit
        if not bad:
            self._median.add(value_s, now_s)
        return self._fires.add(bad, now_s), limit

    @property
    def stands(self) -> bool:
        """The fault stands."""
        return self._fires.stands


class LinkDelay:
    """Judges transfers of steps and round trips between agents.

    Args:
        limits: the policy's ``[link_delay]``.
    """

    def __init__(self, limits: LinkDelayLimits) -> None:
        self._limits = limits
        self._transfer = _Series(limits)
        self._round_trips: dict[Actor, _Series] = {}
        self._readings: dict[Actor | None, Verdict] = {}
        self._news = News()

    def feed_step(self, step: WholeStep, now_s: float) -> None:
        """A decided step, as all members told it."""
        if len(step.waits_s) > 1:
            self._judge(self._transfer, None, "transfer", step.transfer_s, now_s)

    def feed_round_trip(self, agent: Actor, round_trip_s: float, now_s: float) -> None:
        """A message to another agent and its echo, less the time that it was held there."""
        series = self._round_trips.setdefault(agent, _Series(self._limits))
        self._judge(series, agent, "round_trip", round_trip_s, now_s)

    def _judge(
        self, series: _Series, subject: Actor | None, signal: str, value_s: float, now_s: float
    ) -> None:
        changed, limit_s = series.feed(value_s, now_s)
        where = "a reduction's transfer" if subject is None else f"the way to agent {subject}"
        value_ms, limit_ms = value_s * 1000, limit_s * 1000
        if limit_ms:
            self._readings[subject] = _verdict(None, subject, signal, value_ms, limit_ms, "")
        if changed and not series.stands:
            why = f"{where} took {value_ms:.1f} ms, at most {limit_ms:.1f} ms for the last "
            self._news.end(subject, value_ms, f"{why}{self._limits.clears_after} times")
        elif changed:
            why = (
                f"{where} took {value_ms:.1f} ms, above {limit_ms:.1f} ms in "
                f"{self._limits.fires_in} of {self._limits.of_steps}"
            )
            fault = FaultEvent.LINK_DELAY_HIGH
            self._news.begin(_verdict(fault, subject, signal, value_ms, limit_ms, why))

    def decide(self, now_s: float) -> list[Verdict]:
        """What began and what ended since the last call."""
        del now_s  # every signal carried its own time, and silence says nothing of a link
        return self._news.take()

    @property
    def readings(self) -> list[Verdict]:
        """The newest transfer, and the newest round trip to each agent."""
        return list(self._readings.values())

    @property
    def standing(self) -> list[Verdict]:
        """Links that are slow."""
        return self._news.standing

    def forget(self, actor: Actor) -> None:
        """An agent is gone; of ranks nothing is kept here."""
        self._round_trips.pop(actor, None)
        self._readings.pop(actor, None)
        self._news.forget(actor)


def _verdict(
    fault: FaultEvent | None,
    subject: Actor | None,
    signal: str,
    value_ms: float,
    limit_ms: float,
    why: str,
) -> Verdict:
    return Verdict(
        detector=NAME,
        signal=signal,
        fault=fault,
        subject=subject,
        value=value_ms,
        threshold=limit_ms,
        unit="ms",
        why=why,
    )


PLUGIN = Spec(NAME, frozenset({FaultEvent.LINK_DELAY_HIGH}), "link_delay", LinkDelay)
