"""What a scenario of the demo is, and the walks that a run of it took."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from cascade_runtime.vocabulary.report import Report
from cascade_runtime.vocabulary.results import Verdict
from dashboard.demo.faults import Cold, Late, Strike


class Move(NamedTuple):
    """One walk between two regimes, and the fault event that it answers."""

    from_regime: str
    to_regime: str
    fault: str | None


def moves_of(report: Report) -> tuple[Move, ...]:
    """The walks between regimes that a run really took; those that only changed members are none."""
    walks = sorted(report.transitions, key=lambda walk: walk.new_epoch)
    return tuple(
        Move(walk.from_regime, walk.to_regime, walk.fault)
        for walk in walks
        if walk.from_regime != walk.to_regime
    )


@dataclass(frozen=True)
class Scenario:
    """One story."""

    name: str
    summary: str
    story: tuple[str, ...]
    """What will happen, told before it does; the page ticks each line when it was seen (63_plan.js)."""
    expected: Verdict
    path: tuple[Move, ...] = ()
    """The walks between regimes that are expected, in order."""
    steps: int = 120
    pause_ms: float = 10.0
    strikes: tuple[Strike, ...] = ()
    late: Late | None = None
    respawn: int = 0
    """How often a dead rank is started again."""
    script: str = "train"
    """Which module of this folder is run."""
    arguments: tuple[str, ...] = ()
    """For the script, besides ``steps`` and ``pause_ms``."""
    before: tuple[str, ...] = ()
    """Arguments of an earlier run of the script, whose trace is not kept; both get ``--folder``."""
    mode: str = "enforce"
    least_ranks: int = 2
    """Fewer cannot play it, besides the ranks that something is done to."""
    cold: Cold | None = None
    """How slow a rank that joins is at first."""
    policy: str = "default"
    """By name, or of a file in ``policies/`` beside this one."""

    @property
    def needs_ranks(self) -> int:
        """The smallest job that it can be played with."""
        struck = [strike.rank for strike in self.strikes]
        struck += [self.late.rank] if self.late else []
        return max([*struck, self.least_ranks - 1]) + 1
