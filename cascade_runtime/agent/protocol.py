"""What agents say to each other and to their ranks. Frames are u32 length + MessagePack.

Messages of the walk and of reconciliation are recorded as ``messages`` rows on both ends: their frame
carries a ``channel_seq``. The rest (hello, rendezvous keys, progress) moves no consistency state.
"""

from __future__ import annotations

import struct
from typing import Any

import msgspec

from cascade_runtime.detectors._steps import Place, StepWait
from cascade_runtime.vocabulary.fault import FaultEvent
from cascade_runtime.vocabulary.identity import Actor, Dot, EventRef
from cascade_runtime.vocabulary.regime import Regime

LENGTH = struct.Struct("<I")
MAX_FRAME = 64 << 20

LOST = ("failed", "stopped")
"""``member_reason`` of views that members were lost to; ``stopped``: none of them is known to be dead."""


class Ballot(msgspec.Struct, frozen=True, array_like=True, order=True):
    """A proposal number: (round, agent index); unique, totally ordered."""

    number: int
    agent: int


class View(msgspec.Struct, frozen=True, kw_only=True):
    """One committed state of the job: what all members that committed it agree on.

    ``cut_step`` is the last step that any answering member had decided. Members listed in ``behind``
    are rolled forward to it with the buckets that ``source`` kept; all then step on from it.
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


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """What a halted rank answers: where it stands."""

    decided: int
    issued: int = 0
    """Counter of the last dot this actor issued."""
    frontier: list[Dot] = []
    launched_all: bool = False
    """All buckets of the open step are under way, so waiting may decide it."""
    leaving: bool = False
    digest: str | None = None
    """Of all objects at ``decided``, where it was computed."""
    dead: bool = False
    """Certified by the agent of its host; the other fields are what the progress word said, and
    ``decided`` is the last step that it may have decided."""
    stopped: bool = False
    """It lives and is fenced (``dead`` is set too): it never acts in a later epoch."""


# ---- rank -> agent ---------------------------------------------------------------------------------


class Hello(msgspec.Struct, frozen=True, tag="hello"):
    """First frame of a rank on a new connection."""

    actor: Actor
    pid: int
    epoch: int


class Lifeline(msgspec.Struct, frozen=True, tag="lifeline"):
    """First and only frame of a rank to the agent of another host: while it is open, I live."""

    actor: Actor


class Halted(msgspec.Struct, frozen=True, tag="halted"):
    """The rank launches no collective until a commit, and stands as told."""

    facts: Facts
    ask: int = 0
    """Of the newest Halt or Drain that the rank had taken in when it answered."""


class Acked(msgspec.Struct, frozen=True, tag="acked"):
    """The rank wrote its acknowledged row for this proposal."""

    epoch: int
    ballot: Ballot


class Round(msgspec.Struct, frozen=True, tag="round"):
    """A step was decided in a regime below STRONG."""

    actor: Actor
    epoch: int
    step: int


class Reconciled(msgspec.Struct, frozen=True, tag="reconciled"):
    """Digest of all objects after the first step of this epoch (or at leaving), with the frontier."""

    actor: Actor
    epoch: int
    digest: str
    frontier: list[Dot]


class DebtInfo(msgspec.Struct, frozen=True, kw_only=True):
    """An open debt, with all that whoever settles it must know (its opener may be dead by then)."""

    debt_id: str
    relaxed: Regime
    new_epoch: int
    object: str | None
    in_flight: list[Dot] = []
    voided: bool = False
    """The dots in flight were discarded everywhere."""


class DebtNote(msgspec.Struct, frozen=True, tag="debt"):
    """The lowest member opened, settled or wrote off debts."""

    actor: Actor
    opened: list[DebtInfo] = []
    closed: list[str] = []


class Leave(msgspec.Struct, frozen=True, tag="leave"):
    """The rank's job is done; it waits for a view without it."""

    actor: Actor
    decided: int


class Stuck(msgspec.Struct, frozen=True, tag="stuck"):
    """A group could not be formed or a collective failed, and nobody is known to have died."""

    actor: Actor
    epoch: int
    why: str


class Joining(msgspec.Struct, frozen=True, tag="joining"):
    """A newcomer asks for a live member to take the state from; it listens at ``address``."""

    actor: Actor
    address: str
    attempt: int


class Level(msgspec.Struct, frozen=True, tag="level"):
    """A newcomer stands where ``source`` stood when it had decided ``decided`` in ``epoch``.

    ``source`` None takes back what was told before.
    """

    actor: Actor
    source: Actor | None
    epoch: int
    decided: int


class Put(msgspec.Struct, frozen=True, tag="put"):
    """A rendezvous key of a group being formed."""

    epoch: int
    key: str
    value: bytes


class Get(msgspec.Struct, frozen=True, tag="get"):
    """Ask for a rendezvous key; answered when it is known or its epoch is over."""

    epoch: int
    key: str


# ---- agent -> rank ---------------------------------------------------------------------------------


class Welcome(msgspec.Struct, frozen=True, tag="welcome"):
    """The newest committed view, once there is one."""

    view: View
    agent: Actor
    mode: str


class Halt(msgspec.Struct, frozen=True, tag="halt"):
    """Launch no collective, say where you stand. ``graceful``: nobody died."""

    epoch: int
    graceful: bool
    ask: int = 0


class Drain(msgspec.Struct, frozen=True, tag="drain"):
    """Your open step is decided elsewhere and nobody died: wait for it, then answer again."""

    step: int
    ask: int = 0


class Proposed(msgspec.Struct, frozen=True, tag="proposed"):
    """A view is proposed; write the acknowledged row and answer."""

    view: View
    ballot: Ballot


class Commit(msgspec.Struct, frozen=True, tag="commit"):
    """The view is committed."""

    view: View


class Serve(msgspec.Struct, frozen=True, tag="serve"):
    """To ``source``, by way of its agent: give your state to the newcomer that listens at ``address``."""

    newcomer: Actor
    source: Actor
    address: str


class NotWanted(msgspec.Struct, frozen=True, tag="not_wanted"):
    """To a newcomer: end, with this exit code."""

    why: str
    code: int


class Settle(msgspec.Struct, frozen=True, tag="settle"):
    """Close these debts: settled where ``equal`` (all members agree by digest), else written off."""

    debts: list[DebtInfo]
    equal: bool


class Value(msgspec.Struct, frozen=True, tag="value"):
    """Answer to Get; ``value`` is None when the epoch is over."""

    key: str
    value: bytes | None


# ---- agent <-> agent -------------------------------------------------------------------------------


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


class SettleOrder(msgspec.Struct, frozen=True, tag="settle_order"):
    """To the agent of the debts' opener."""

    actor: Actor
    settle: Settle


Message = (
    Hello | Lifeline | Halted | Acked | Round | Reconciled | DebtNote | Leave | Stuck | Put | Get
    | Welcome | Halt | Drain | Proposed | Commit | Settle | Value
    | AgentHello | Beat | HostLost | Attached | Trigger | Query | Answer | Rejected | DrainRanks | Propose
    | Accepted | History | Lag | SettleOrder
    | StopJob | Waits | Joining | Level | Serve | NotWanted | Ended
)  # fmt: skip

RECORDED = (
    Halted, Acked, Reconciled, DebtNote, Leave, Stuck, Halt, Drain, Proposed, Commit, Settle, Trigger,
    Query, Answer, DrainRanks, Propose, Accepted, History, SettleOrder, Level,
)  # fmt: skip
"""Messages that carry cause and effect of the walk: both ends record them."""


class Frame(msgspec.Struct, frozen=True, array_like=True):
    """One message with its number on the channel (None: not recorded)."""

    body: Message
    channel_seq: int | None = None


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(Frame)


def pack_frame(body: Any, channel_seq: int | None = None) -> bytes:
    """A frame with its length in front."""
    payload = _encoder.encode(Frame(body, channel_seq))
    return LENGTH.pack(len(payload)) + payload


def unpack_frame(payload: bytes) -> Frame:
    """A frame without its length; ValidationError names what is wrong."""
    return _decoder.decode(payload)
