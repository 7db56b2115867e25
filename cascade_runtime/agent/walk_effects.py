"""What the walk asks its host to do; performed in this order by effects.py."""

from __future__ import annotations

from typing import NamedTuple

from cascade_runtime.agent.plan import Plan
from cascade_runtime.agent.protocol import Ballot, Message, View
from cascade_runtime.vocabulary.identity import Actor


class Send(NamedTuple):
    """Send ``message`` to agent ``to`` (never to itself)."""

    to: int
    message: Message


class HaltLocal(NamedTuple):
    """Halt these local members; tell their facts with ``on_facts``, and ``ask`` with them."""

    graceful: bool
    ranks: list[Actor]
    ask: int = 0


class DrainLocal(NamedTuple):
    """Let these local members finish ``step``, then they answer again."""

    step: int
    ranks: list[Actor]
    ask: int = 0


class AskLocal(NamedTuple):
    """Ask these local members to acknowledge; tell with ``on_ack``."""

    view: View
    ballot: Ballot
    ranks: list[Actor]


class Installed(NamedTuple):
    """A view was committed; local ranks must be told, in this order."""

    view: View


class ProposedNow(NamedTuple):
    """This agent proposes ``plan`` (None: it adopts a view that another had got accepted)."""

    view: View
    plan: Plan | None


class Persist(NamedTuple):
    """Write to the journal before any later effect is performed."""

    what: str
    value: object


Effect = Send | HaltLocal | DrainLocal | AskLocal | Installed | ProposedNow | Persist
