"""Collectives and groups of the simulated ranks."""

from __future__ import annotations

from cascade_runtime.agent.protocol import View
from cascade_runtime.vocabulary.identity import Actor, Dot
from cascade_runtime.vocabulary.regime import Regime

Line = tuple[int, Actor | None]

NEVER = View(
    epoch=-1,
    regime=Regime.STRONG,
    from_regime=Regime.STRONG,
    members=[],
    cohorts=[],
    proposer=Actor(0),
)


class Fabric:
    """Collectives and groups, as all ranks see them."""

    def __init__(self) -> None:
        self.arrived: set[tuple[int, Actor]] = set()
        """(epoch, rank): committed the view and asks for its group."""
        self.entered: set[tuple[int, Actor]] = set()
        self.launched: set[tuple[int, int, Actor]] = set()
        """(epoch, step, rank): all buckets of the step are under way."""
        self.acknowledged: list[tuple[Actor, View]] = []
        self.content: dict[Dot, set[tuple[int, tuple[Actor, ...]]]] = {}
        """What was decided under a dot: the step, and whose gradients are in it."""
        self.broken: set[int] = set()
        """Epochs whose collectives broke with a rank: who has not seen one complete never will."""
        self.limit = 0
        """No rank launches a step beyond this one."""
        self.folds: dict[tuple[int, Actor, int], dict[Actor, int]] = {}
        """(epoch, author, step): other origins' sums that the cohort folds with the step."""
