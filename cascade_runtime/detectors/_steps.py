"""Signals of steps: how long each member waited in a step, and where each member is now.

Every number is a difference of one rank's own clock, so the clocks of hosts need not agree.
"""

from __future__ import annotations

from collections import deque
from statistics import median

import msgspec

from cascade_runtime.vocabulary.identity import Actor

ARRIVED = "waiting"
ON_THE_WAY = frozenset({"forward", "backward", "between steps"})
"""Phases of the progress word in which the others may wait for a member."""


class StepWait(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One member's own account of a decided step.

    Attributes:
        actor: the member.
        epoch: of the view in which the step was decided.
        step: its number.
        wait_s: from entering the step's last bucket to its end: what the step waited for others.
        period_s: from the end of the step before to the end of this one.
        digest: of the object that was this step's turn, after the step; 0 when there is none.
    """

    actor: Actor
    epoch: int
    step: int
    wait_s: float
    period_s: float
    digest: int = 0


class Place(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Where a member is, by its progress word.

    Attributes:
        actor: the member.
        decided: steps that it has decided.
        phase: what it is doing in the next one, a word of ``progress.PHASES``.
        still_s: how long its word has stood still.
    """

    actor: Actor
    decided: int
    phase: str
    still_s: float


class WholeStep(msgspec.Struct, frozen=True):
    """A step as all of its members told it.

    Attributes:
        step: its number.
        waits_s: wait of each member.
        period_s: median over the members.
        digests: of each member that gave one.
    """

    step: int
    waits_s: dict[Actor, float]
    period_s: float
    digests: dict[Actor, int]

    @property
    def transfer_s(self) -> float:
        """What nobody's lateness explains: the last to arrive waited for this alone."""
        return min(self.waits_s.values())

    def last(self) -> tuple[Actor, float]:
        """Who came last, and how long after the one before it (s)."""
        (least, actor), *others = sorted((wait, actor) for actor, wait in self.waits_s.items())
        return actor, (others[0][0] - least if others else 0.0)


class StepBook:
    """Puts the members' accounts of each step together.

    A step that somebody never tells (told to nobody, lost on the way, decided twice in a walk) is
    given up as soon as a later one is whole, or when ``depth`` later ones have been begun.
    """

    def __init__(self, depth: int = 256) -> None:
        self._depth = depth
        self._members: frozenset[Actor] = frozenset()
        self._epoch = -1
        self._open: dict[int, dict[Actor, StepWait]] = {}
        self._whole: deque[WholeStep] = deque(maxlen=depth)

    def install(self, epoch: int, members: list[Actor]) -> None:
        """Another view: steps that were open belong to no view that still is."""
        self._epoch, self._members = epoch, frozenset(members)
        self._open.clear()

    def feed(self, told: StepWait) -> None:
        """One member's account; of another epoch or of no member it says nothing."""
        if told.epoch != self._epoch or told.actor not in self._members:
            return
        accounts = self._open.setdefault(told.step, {})
        accounts[told.actor] = told
        if len(accounts) == len(self._members):
            self._open = {s: a for s, a in self._open.items() if s > told.step}
            self._whole.append(_whole(told.step, accounts))
        elif len(self._open) > self._depth:
            del self._open[min(self._open)]

    def take(self) -> list[WholeStep]:
        """Steps that have become whole since the last call, the oldest first."""
        whole = list(self._whole)
        self._whole.clear()
        return whole


def _whole(step: int, accounts: dict[Actor, StepWait]) -> WholeStep:
    return WholeStep(
        step,
        {actor: told.wait_s for actor, told in accounts.items()},
        median(told.period_s for told in accounts.values()),
        {actor: told.digest for actor, told in accounts.items() if told.digest},
    )


def not_there(phase: str, step: int, for_s: float) -> str:
    """Where somebody is who has not come to step ``step``: the rest of a sentence about it."""
    if phase in ("forward", "backward"):
        return f"has been in the {phase} of step {step} for {for_s:.1f} s"
    return f"has not entered step {step} for {for_s:.1f} s"


def missing_from(places: dict[Actor, Place]) -> tuple[list[Actor], float]:
    """Who has not come to a step's last bucket where others wait, and how long the first has waited.

    Nobody, when a member is in no step at all (it starts, walks or leaves): whoever waits then waits
    for that.
    """
    waiting = [p for p in places.values() if p.phase == ARRIVED]
    if not waiting or any(
        p.phase not in ON_THE_WAY and p.phase != ARRIVED for p in places.values()
    ):
        return [], 0.0
    furthest = max(p.decided for p in waiting)
    first_s = max(p.still_s for p in waiting if p.decided == furthest)
    missing = [p.actor for p in places.values() if p.phase in ON_THE_WAY and p.decided <= furthest]
    return sorted(missing), first_s
