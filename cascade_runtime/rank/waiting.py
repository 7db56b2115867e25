"""Waiting for collectives, with an ear for the agent: a death never leaves a rank inside of one."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable

from cascade_runtime.agent.protocol import (
    Commit,
    Halt,
    Message,
    Proposed,
    Serve,
    Settle,
    Stuck,
    Value,
)
from cascade_runtime.rank.channel import Channel
from cascade_runtime.rank.feed import Feeds
from cascade_runtime.rank.groups import epoch_of
from cascade_runtime.rank.layouts import Layouts
from cascade_runtime.rank.link import AgentLink, wait_readable
from cascade_runtime.rank.member import Member
from cascade_runtime.rank.part import Part
from cascade_runtime.rank.wait_rows import ROOM, WaitRows
from cascade_runtime.vocabulary.errors import CascadeError

STUCK_AFTER_S = 2.0
"""A collective that failed although nobody died: ask for a new epoch after this."""

BROKEN_PATIENCE_S = 60.0

LONG_WAIT_S = 1.0
"""A wait that long, and longer than usual, may be for a member whose buckets are not like ours."""


class Waiting:
    """The agent's messages of one rank, and what it waits for beside them.

    Args:
        wakeup: readable when a collective has ended.
        rows: told of while it waits.
    """

    def __init__(
        self, member: Member, link: AgentLink, layouts: Layouts, wakeup: int, rows: WaitRows
    ) -> None:
        self._member = member
        self._link = link
        self._layouts = layouts
        self._wakeup = wakeup
        self.rows = rows
        self.channel: Channel | None = None
        """To other cohorts."""
        self.feeds: Feeds | None = None
        """Where newcomers are served from; None: nobody is."""
        self.usual_s = 0.0
        """How long the last step was waited for."""
        self._stuck: Stuck | None = None

    def next_message(self) -> Message | None:
        """The next message that stops this member, without waiting; others are handled here."""
        self._link.pump()
        if self.channel is not None:
            self.channel.pump()
        while self._link.inbox:
            message = self._link.inbox.popleft()
            if isinstance(message, Halt | Proposed | Commit):
                if epoch_of(message) > self._member.view.epoch:
                    return message
                continue  # told twice, by two lives of the agent: that walk is over
            if isinstance(message, Settle):
                self._member.settle(message)
            elif isinstance(message, Serve) and self.feeds is not None:
                self.feeds.request(message)
            elif isinstance(message, Value):
                self._layouts.hear(message)
                if self.channel is not None:
                    self.channel.hear(message)
        return None

    def until_done(
        self, parts: list[Part], of_step: bool = True, or_failed: bool = False
    ) -> Message | None:
        """Until all of ``parts`` are done (None), or the agent wants something of the walk.

        Args:
            of_step: they are the open step's, whose buckets may not be the others'.
            or_failed: return None as soon as one has failed, too.
        """
        broken = _Broken(self._member, self.say_stuck)
        began = time.monotonic()
        self.rows.begin()
        while not all(p.done for p in parts):
            self.rows.look()
            message = self.next_message()
            if message is not None:
                return message
            if or_failed and any(p.failed for p in parts):
                return None
            broken.look(parts)
            if of_step and time.monotonic() - began > max(LONG_WAIT_S, 4 * self.usual_s):
                self._layouts.tell(parts)
            self._wait()
        self.rows.end()
        return None

    def for_room(self, channel: Channel) -> Message | None:
        """Until other cohorts have folded enough (None), or the agent wants something of the walk."""
        self.rows.begin(ROOM)
        while channel.must_wait:
            self.rows.look()
            message = self.next_message()
            if message is not None:
                return message
            channel.fold_more()
            if channel.must_wait:
                self._wait()
        self.rows.end()
        return None

    def _wait(self) -> None:
        fds = self.channel.fds if self.channel is not None else []
        # The channel's tell of edges only, and were looked at just before.
        brief = self._link.fd < 0 or bool(fds)
        wait_readable([self._wakeup, self._link.fd, *fds], 0.05 if brief else 1.0)
        with contextlib.suppress(BlockingIOError):
            os.eventfd_read(self._wakeup)

    def say_stuck(self, why: str) -> None:
        """Nobody is known to have died, and yet it does not go on."""
        member = self._member
        self._stuck = Stuck(member.actor, member.view.epoch, why.splitlines()[0][:200])
        self._link.send(self._stuck)

    def tell_again(self) -> None:
        """The agent was away and may have missed that it does not go on: nobody else would tell it."""
        if self._stuck is not None and self._stuck.epoch == self._member.view.epoch:
            self._link.send(self._stuck)


class _Broken:
    """Collectives that failed while the agents say nothing."""

    def __init__(self, member: Member, say_stuck: Callable[[str], None]) -> None:
        self._member = member
        self._say_stuck = say_stuck
        self._since: float | None = None
        self._told = False

    def look(self, parts: list[Part]) -> None:
        why = next((p.failed for p in parts if p.failed), None)
        if why is None:
            return
        now = time.monotonic()
        self._since = self._since or now
        if not self._told and now - self._since > STUCK_AFTER_S:
            self._told = True
            self._say_stuck(why)
        if now - self._since > BROKEN_PATIENCE_S:
            raise CascadeError(
                f"a collective failed ({why}) and no agent announced a new view "
                f"within {BROKEN_PATIENCE_S:.0f} s",
                where=f"rank {self._member.actor}",
                hint="the agents' output above says what they wait for",
            )
