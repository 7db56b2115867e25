"""Answers the walk that sets this rank apart while its script is in code of its own.

A straggler may be asleep in its data loader when the others want to go on without it. That one walk needs
nothing of it: it stands at the cut, is to step by itself, and takes part in no group. So a thread answers
it, and what was committed is installed when the script meets us next. Every other walk waits for that.

The thread runs where the policy parts cohorts. It wakes when the agent says something, and does nothing
while the script is in our code.
"""

from __future__ import annotations

import functools
import select
import threading
import time
from collections.abc import Callable
from typing import Concatenate, ParamSpec, Protocol, TypeVar

from cascade_runtime.agent.protocol import View
from cascade_runtime.rank.guard import guarded
from cascade_runtime.rank.link import AgentLink
from cascade_runtime.vocabulary.identity import Actor

P = ParamSpec("P")
R = TypeVar("R")
S = TypeVar("S", bound="HasAside")

LOOK_S = 1.0
AWAY_S = 0.2
"""Between two looks for an agent that is away."""


def sets_apart(view: View, me: Actor) -> bool:
    """This member is to step by itself from where it stands, and nobody needs it for that."""
    moved = view.levels or view.cuts or view.joined or view.departed or view.optim_from is not None
    return [me] in view.cohorts and len(view.cohorts) > 1 and not moved and view.source is None


class HasAside(Protocol):
    """Whose methods are our code."""

    aside: Aside


def in_turn(
    method: Callable[Concatenate[S, P], R],
) -> Callable[Concatenate[S, P], R]:
    """The method is our code: nobody answers a walk aside while it runs."""

    def inner(self: S, /, *args: P.args, **kwargs: P.kwargs) -> R:
        with self.aside.turn:
            return method(self, *args, **kwargs)

    functools.update_wrapper(inner, method)  # DDP looks at the hook's signature
    return inner


class Aside:
    """The thread.

    Args:
        link: to the agent.
        serve: takes what the agent has said and answers what may be answered; never waits.
    """

    def __init__(self, link: AgentLink, serve: Callable[[], None]) -> None:
        self.turn = threading.RLock()
        """Held by whoever is in our code."""
        self._link, self._serve = link, serve
        self._over = False
        self._thread = threading.Thread(target=self._run, name="cascade-aside", daemon=True)

    def start(self) -> None:
        """Listen from now on."""
        self._thread.start()

    def stop(self) -> None:
        """Not any more."""
        self._over = True

    @guarded()
    def _run(self) -> None:
        poller = select.poll()
        while not self._over:
            fd = self._link.fd
            if fd < 0:  # whoever serves looks for the agent too
                time.sleep(AWAY_S)
                heard = True
            else:
                poller.register(fd, select.POLLIN)
                heard = bool(poller.poll(LOOK_S * 1000))
                poller.unregister(fd)
            if heard:
                with self.turn:
                    if not self._over:
                        self._serve()
