"""What messages are about: ballots, views, where a rank stands, debts."""

from __future__ import annotations

import msgspec

from cascade_runtime.vocabulary.fault import FaultEvent
from cascade_runtime.vocabulary.identity import Actor, Dot, EventRef
from cascade_runtime.vocabulary.regime import Regime

LOST = ("failed", "stopped")
"""``member_reason`` of views that members were lost to; ``stopped``: none of them is known to be dead."""


class Ballot(msgspec.Struct, frozen=True, array_like=True, order=True):
    """A proposal number: (round, agent index); unique, totally ordered."""

    number: int
    agent: int


NO_BALLOT = Ballot(0, -1)
"""Below every ballot."""


class Cut(msgspec.Struct, frozen=True):
    """Where members that stepped together stand: those ``behind`` are rolled forward to ``step``.

    ``members`` are those of them that are members of the new view too.
    """

    members: list[Actor]
    step: int
    source: Actor | None = None
    behind: list[Actor] = []


class SumLevel(msgspec.Struct, frozen=True):
    """All members get this origin's running sum up to ``upto`` from ``source``.

    ``least`` is what the member with the least of it has.
    """

    origin: Actor
    upto: int
    least: int
    source: Actor


class View(msgspec.Struct, frozen=True, kw_only=True):
    """One committed state of the job: what all members that committed it agree on.

    ``cut_step`` is the last step that any answering member had decided. Members listed in ``behind``
    are rolled forward to it with the buckets that ``source`` kept; all then step on from it.

    Where there were several cohorts, each has a cut of its own in ``cuts``. All members are made level
    by ``levels``. Where the cohorts become one, all take optimizer state from ``optim_from`` and go on
    from ``cut_step`` and ``cut_version``, the greatest there are.
    """

    epoch: int
    regime: Regime
    from_regime: Regime
    members: list[Actor]
    cohorts: list[list[Actor]]
    fault: FaultEvent | None = None
    reason: str = ""
    proposer: Actor
    evidence: list[EventRef] = []
    joined: list[Actor] = []
    departed: list[Actor] = []
    member_reason: str = ""
    cut_step: int = 0
    source: Actor | None = None
    behind: list[Actor] = []
    voided: list[Dot] = []
    in_flight: list[Dot] = []
    cuts: list[Cut] = []
    levels: list[SumLevel] = []
    optim_from: Actor | None = None
    cut_version: int = 0
    coming: list[Actor] = []
    """Newcomers on their way when this was proposed (below STRONG): no members, nobody waits for them."""

    @property
    def recorded_cohorts(self) -> list[list[Actor]]:
        """The cohorts as rows say them: a newcomer on its way is one by itself."""
        return [*self.cohorts, *([actor] for actor in self.coming)]

    def cut_of(self, actor: Actor) -> Cut:
        """The cut of those that ``actor`` stepped together with before this view."""
        whole = Cut(self.members, self.cut_step, self.source, self.behind)
        return next((c for c in self.cuts if actor in c.members), whole)


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """What a halted rank answers: where it stands."""

    decided: int
    issued: int = 0
    """Counter of the last dot this actor issued."""
    frontier: list[Dot] = []
    launched_all: bool = False
    """All buckets of the open step are under way, so waiting may decide it."""
    broken: bool = False
    """A collective of the open step failed here, so waiting never decides it."""
    leaving: bool = False
    digest: str | None = None
    """Of all objects at ``decided``, where it was computed."""
    dead: bool = False
    """Certified by the agent of its host; the other fields are what the progress word said, and
    ``decided`` is the last step that it may have decided."""
    stopped: bool = False
    """It lives and is fenced (``dead`` is set too): it never acts in a later epoch."""
    version: int = 0
    """Of every object."""
    is_apart: bool = False
    """Its parameters are a base and sums, and it is not level yet with those that it is to step with."""
    sums: list[Dot] = []
    """The running sums that it holds: of each origin the last dot in it."""
    is_bound: bool = False
    """It must not be apart from the others: its optimizer keeps parameters of its own, sums cannot be
    exchanged, or a fold is due."""


class DebtInfo(msgspec.Struct, frozen=True, kw_only=True):
    """An open debt, with all that whoever settles it must know (its opener may be dead by then)."""

    debt_id: str
    relaxed: Regime
    new_epoch: int
    object: str | None
    in_flight: list[Dot] = []
    voided: bool = False
    """The dots in flight were discarded everywhere."""
