"""Communicators for a committed view, behind one factory; dead ones go to a graveyard.

A group is formed by the c10d constructor over a store of our own, whose keys travel with the agents,
so no rank and no server has to stay alive for it. ``abort`` and ``shutdown`` do nothing for gloo, and
dropping the last reference to a group with a pending operation blocks for its time-out: an abandoned
group is therefore kept for the life of the process.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
from datetime import timedelta
from pathlib import Path
from typing import Any, Protocol

import torch.distributed as dist

from cascade_runtime.agent.control_log import comm_id_of
from cascade_runtime.agent.protocol import Commit, Get, Halt, Message, Proposed, Put, Value
from cascade_runtime.agent.rendezvous import GROUP
from cascade_runtime.rank.letting_go import let_go_aside
from cascade_runtime.rank.link import AgentLink
from cascade_runtime.vocabulary.identity import Actor

FORM_TIMEOUT_S = 3.0
"""Forming takes tens of milliseconds; past this the rank says that it is stuck."""

MAX_FORM_TIMEOUT_S = 24.0
"""A machine may be so busy that forming takes longer each time: twice as long is given, up to this.

Not more, since gloo's constructor hears nothing of the agent while it waits for a peer to connect.
"""

OPERATION_TIMEOUT = timedelta(hours=1)
"""Of one collective. Deaths are told by the agents, so this only bounds what nobody explains."""


class Superseded(Exception):
    """The view that a group was being formed for is being walked away from."""


class NoAnswer(Superseded):
    """Somebody who should have told something has not, and nobody says why."""


class Group:
    """One communicator: the process group, its identity and the numbers of its collectives."""

    def __init__(
        self,
        pg: Any,
        members: list[Actor],
        ordinal: int,
        keep: Any = None,
        threads: frozenset[int] = frozenset(),
    ) -> None:
        self.pg = pg
        self.members = members
        self.ordinal = ordinal
        self.comm_id = comm_id_of(members, ordinal)
        self.num_collectives = 0
        self.num_pending = 0
        """Operations started here whose end nobody has seen."""
        self._keep = keep
        self._threads = threads

    @property
    def size(self) -> int:
        """Number of members."""
        return len(self.members)

    def next_cseq(self) -> int:
        """The number of the next collective on this communicator."""
        self.num_collectives += 1
        return self.num_collectives - 1

    def abandon(self) -> None:
        """Let go of the communicator without ever waiting for it.

        With nothing pending its destructor takes tens of milliseconds, in a thread of its own. Else it
        would block for the time-out of the pending operation, so the group is kept for the life of the
        process, and its threads, which may go on polling dead sockets, get only what processor time
        nobody else wants.
        """
        if self.num_pending == 0:
            held: list[object] = [self.pg, self._keep]
            self.pg = self._keep = None
            let_go_aside(held)
            return
        bury(self)
        for thread in self._threads:
            with contextlib.suppress(OSError):
                os.sched_setscheduler(thread, os.SCHED_IDLE, os.sched_param(0))


class GroupFactory(Protocol):
    """Forms the communicator of a view."""

    def form(self, members: list[Actor], me: Actor, epoch: int, tag: str = "") -> Group:
        """The group of ``members``; raises Superseded when another walk begins meanwhile.

        ``tag`` tells groups of one epoch apart.
        """
        ...


class GlooFactory:
    """gloo by its constructor (torch 2.13; later torch may offer reconfiguration behind this)."""

    def __init__(self, link: AgentLink, address: str) -> None:
        self._link = link
        self._address = address
        self._num_failed = 0
        """Formings in a row that failed while nobody walked away from their view."""

    def form(self, members: list[Actor], me: Actor, epoch: int, tag: str = "") -> Group:
        """As GroupFactory."""
        timeout_s = min(MAX_FORM_TIMEOUT_S, FORM_TIMEOUT_S * 2.0**self._num_failed)
        store = AgentStore(self._link, epoch, timeout_s, tag)
        gloo: Any = dist.ProcessGroupGloo  # the stubs know its public part only
        options = gloo._Options()
        options._devices = [gloo.create_device(hostname=self._address)]
        options._timeout = timedelta(seconds=timeout_s)
        before = _threads()
        try:
            pg = gloo(store, members.index(me), len(members), options)
        except (RuntimeError, Superseded) as error:
            if not store.is_over:
                self._num_failed += 1
            raise Superseded(str(error)) from error
        self._num_failed = 0
        return Group(pg, members, epoch, store, _threads() - before)


def _threads() -> frozenset[int]:
    """Ids of this process's threads that serve gloo, by the names that gloo and torch give them."""
    found = set()
    for task in Path("/proc/self/task").iterdir():
        with contextlib.suppress(OSError):
            if "gloo" in (task / "comm").read_text():
                found.add(int(task.name))
    return frozenset(found)


class AgentStore(dist.Store):  # type: ignore[misc,name-defined]  # absent from the stubs
    """A c10d store whose keys are kept by the agents, valid for one epoch.

    Args:
        timeout_s: for one key.
        tag: put before each key: an epoch may have several groups.
    """

    def __init__(
        self, link: AgentLink, epoch: int, timeout_s: float = FORM_TIMEOUT_S, tag: str = ""
    ) -> None:
        super().__init__()
        self._tag = GROUP + tag
        self._link = link
        self._epoch = epoch
        self._timeout_s = timeout_s
        self.is_over = False
        """The epoch is being walked away from."""

    def set(self, key: str, value: Any) -> None:
        """Publish a key."""
        data = value.encode() if isinstance(value, str) else bytes(value)
        self._link.send(Put(self._epoch, self._tag + key, data))

    def get(self, key: str) -> bytes:
        """Wait for a key."""
        try:
            return ask(self._link, self._epoch, self._tag + key, self._timeout_s, forms=True)
        except NoAnswer:
            raise
        except Superseded:
            self.is_over = True
            raise

    def wait(self, keys: list[str], timeout: timedelta | None = None) -> None:
        """Wait for all keys."""
        for key in keys:
            self.get(key)

    def check(self, keys: list[str]) -> bool:
        """Whether all keys are there (waits for them: gloo only asks for keys that will come)."""
        self.wait(keys)
        return True

    def set_timeout(self, timeout: timedelta) -> None:
        """Ignored: the agents say when a key will never come."""


def ask(
    link: AgentLink, epoch: int, key: str, timeout_s: float = FORM_TIMEOUT_S, *, forms: bool = False
) -> bytes:
    """The value of a rendezvous key of this epoch.

    Args:
        link: to the agent.
        epoch: in force.
        key: whose value.
        timeout_s: for it.
        forms: a group is being formed with it. All live members do so, also those that have heard of
            a walk for which nobody was lost; who left would hold the others for gloo's time-out.

    Raises:
        NoAnswer: nobody has told it within ``timeout_s`` (seconds).
        Superseded: the epoch is being walked away from; the walk's messages stay in the inbox.
    """
    link.send(Get(epoch, key))
    aside: list[Message] = []
    try:
        while True:
            message = link.receive(timeout_s=timeout_s)
            if message is None:
                raise NoAnswer(f"no answer for {key}")
            if isinstance(message, Value) and message.key == key:
                if message.value is None:
                    raise Superseded(f"{key} belongs to an epoch that is over")
                return message.value
            if isinstance(message, Halt | Proposed | Commit):
                if epoch_of(message) <= epoch:
                    continue  # told twice, by two lives of the agent: that walk is over
                aside.append(message)
                if not (forms and isinstance(message, Halt) and message.graceful):
                    raise Superseded("a walk has begun")
            else:
                aside.append(message)
    finally:
        link.inbox.extendleft(reversed(aside))


def epoch_of(message: Halt | Proposed | Commit) -> int:
    """The epoch that a message of the walk leads to."""
    return message.epoch if isinstance(message, Halt) else message.view.epoch


def leads_beyond(message: Message, epoch: int) -> bool:
    """It is one of a walk to a later epoch."""
    return isinstance(message, Halt | Proposed | Commit) and epoch_of(message) > epoch


def bury(thing: Any) -> None:
    """Keep an object for ever: its destructor would block."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(thing))
