"""How a process comes to share States: the job's first view, and what was put before it came."""

from __future__ import annotations

import time
from collections.abc import Callable

from cascade_runtime.agent.protocol import NotWanted, Welcome
from cascade_runtime.rank.link import AgentLink, AgentLost, wait_readable
from cascade_runtime.vocabulary.errors import BadUsage
from cascade_runtime.vocabulary.identity import Actor

ATTACH_PATIENCE_S = 600.0
"""How long the first State waits for the other ranks to open theirs; importing may take minutes."""

CATCH_UP_PATIENCE_S = 60.0
"""How long a process that comes later waits to be told what was put before it."""

_LOOK_S = 0.1


def first_message(link: AgentLink) -> Welcome | NotWanted:
    """The job's view, or that this process is not wanted.

    Raises:
        BadUsage: the other ranks do not come.
    """
    message = link.receive(timeout_s=ATTACH_PATIENCE_S)
    if isinstance(message, (Welcome, NotWanted)):
        return message
    raise BadUsage(
        f"the job's other ranks did not come within {ATTACH_PATIENCE_S:.0f} s",
        where="State",
        hint="every rank of the job must open a State",
    )


def catch_up(link: AgentLink, actor: Actor, take_in: Callable[[], bool]) -> None:
    """A process that comes later: what was put before is here before it looks or puts itself.

    Its put of a key would get version 1 else, and stand nowhere. The agent answers the first ask with
    what is lacking and asks in its turn, on one connection, so its ask comes after all of it.

    Args:
        link: to the agent, which has been asked.
        actor: this process.
        take_in: takes in what has arrived; True when the agent's ask was among it.

    Raises:
        AgentLost: it is not told in time.
    """
    end = time.monotonic() + CATCH_UP_PATIENCE_S
    while not take_in():
        if time.monotonic() >= end:
            raise AgentLost(
                f"its host agent has not told within {CATCH_UP_PATIENCE_S:.0f} s what the others "
                "have put, so nothing can be put on top of it",
                where=f"rank {actor}",
                hint="the launcher's output says what became of the agent",
            )
        wait_readable([link.fd], _LOOK_S)


def a_fork() -> BadUsage:
    """What to raise in a process that was forked from one with a State."""
    return BadUsage(
        "a State belongs to the process that opened it, and this is a fork of it",
        where="State",
        hint="use it in the rank's own process",
    )
