"""What a rank says to an agent; some of it is passed on to all agents."""

from __future__ import annotations

import msgspec

from cascade_runtime.agent.protocol.states import Ballot, DebtInfo, Facts
from cascade_runtime.vocabulary.identity import Actor, Dot


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
