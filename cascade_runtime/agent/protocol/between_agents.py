"""What agents say to each other."""

from __future__ import annotations

import msgspec

from cascade_runtime.agent.protocol.states import Ballot, Facts, View
from cascade_runtime.agent.protocol.to_ranks import Settle
from cascade_runtime.detectors._steps import Place, StepWait
from cascade_runtime.vocabulary.fault import FaultEvent
from cascade_runtime.vocabulary.identity import Actor, EventRef


class AgentHello(msgspec.Struct, frozen=True, tag="agent_hello"):
    """First frame of an agent on a new connection."""

    index: int
    actor: Actor
    epoch: int


class Beat(msgspec.Struct, frozen=True, tag="beat"):
    """I am here."""


class HostLost(msgspec.Struct, frozen=True, tag="host_lost"):
    """I saw the end of this host's agent and of all its ranks."""

    index: int


class Attached(msgspec.Struct, frozen=True, tag="attached"):
    """These ranks of my host have attached."""

    actors: list[Actor]


class Trigger(msgspec.Struct, frozen=True, tag="trigger"):
    """A fault event for whoever coordinates, with its evidence."""

    fault: FaultEvent | None
    subject: Actor | None
    evidence: list[EventRef]
    reason: str
    certified: bool = False
    """The subject's own agent saw its end, or fenced it: it will never answer again."""


class Query(msgspec.Struct, frozen=True, tag="query"):
    """Phase 1: promise this ballot for this epoch, halt your ranks and say where they stand."""

    ballot: Ballot
    epoch: int
    graceful: bool


class Answer(msgspec.Struct, frozen=True, tag="answer"):
    """Phase 1 answer: what was accepted before, and facts by rank."""

    ballot: Ballot
    epoch: int
    accepted: tuple[Ballot, View] | None
    facts: list[tuple[Actor, Facts]]


class Rejected(msgspec.Struct, frozen=True, tag="rejected"):
    """The ballot is too low; the highest promised one."""

    ballot: Ballot
    epoch: int
    promised: Ballot


class DrainRanks(msgspec.Struct, frozen=True, tag="drain_ranks"):
    """Tell these ranks to drain, then answer the query again."""

    ballot: Ballot
    epoch: int
    step: int
    ranks: list[Actor]


class Propose(msgspec.Struct, frozen=True, tag="propose"):
    """Phase 2: accept this view."""

    ballot: Ballot
    view: View


class Accepted(msgspec.Struct, frozen=True, tag="accepted"):
    """Phase 2 answer: accepted, and these ranks acknowledged (or are certified dead)."""

    ballot: Ballot
    epoch: int
    ranks: list[Actor]


class History(msgspec.Struct, frozen=True, tag="history"):
    """Committed views that the receiver lacks, oldest first (also how a commit is told)."""

    views: list[View]


class Lag(msgspec.Struct, frozen=True, tag="lag"):
    """I am at this epoch; send me what came after."""

    epoch: int


class Ended(msgspec.Struct, frozen=True, tag="ended"):
    """A newcomer of my host ended before it was a member."""

    actor: Actor


class StopJob(msgspec.Struct, frozen=True, tag="stop_job"):
    """A rank ended before the job had formed: stop yours too."""


class Waits(msgspec.Struct, frozen=True, tag="waits"):
    """How the last steps of my host's ranks went, and where each is now; said at short intervals.

    Best effort: whoever misses one judges later steps.
    """

    steps: list[StepWait]
    places: list[Place]
    not_level: list[Actor] = []
    """Newcomers of my host that take a member's snapshot and log."""


class AddRank(msgspec.Struct, frozen=True, tag="add_rank"):
    """From ``cascade join``, which is no agent: start this rank, which never was."""

    rank: int


class RankAdded(msgspec.Struct, frozen=True, tag="rank_added"):
    """The answer; ``refused`` says why not."""

    refused: str | None = None


class SettleOrder(msgspec.Struct, frozen=True, tag="settle_order"):
    """To the agent of ``actor``, who opens or closes debts."""

    actor: Actor
    settle: Settle
