"""What an agent says to a rank of its host."""

from __future__ import annotations

import msgspec

from cascade_runtime.agent.protocol.states import Ballot, DebtInfo, View
from cascade_runtime.vocabulary.identity import Actor


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
    """Close these debts: settled where ``equal`` (all members agree by digest), else written off.

    ``unopened`` are to be opened: whoever should have done it was lost just then.
    """

    debts: list[DebtInfo]
    equal: bool
    unopened: list[DebtInfo] = []


class Value(msgspec.Struct, frozen=True, tag="value"):
    """Answer to Get; ``value`` is None when the epoch is over."""

    key: str
    value: bytes | None
