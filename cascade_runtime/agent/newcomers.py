"""One agent's part in bringing ranks back: it starts them, finds who serves them, and reports for them.

A newcomer is a process of this host that is no member yet. What it does and what becomes of it costs
the members nothing, until the walk that lets it in.
"""

from __future__ import annotations

import signal
from collections.abc import Callable
from typing import NamedTuple

from cascade_runtime.agent.config import JobConfig
from cascade_runtime.agent.joins import PATIENCE_S, Joins, source_for
from cascade_runtime.agent.judge import Judge
from cascade_runtime.agent.protocol import (
    Commit,
    Ended,
    Joining,
    Level,
    Message,
    NotWanted,
    Serve,
    View,
)
from cascade_runtime.agent.rank_process import RankProcess
from cascade_runtime.agent.respawn import Respawn
from cascade_runtime.agent.walk import Walker
from cascade_runtime.vocabulary.identity import Actor


class Ways(NamedTuple):
    """What the agent lends."""

    tell: Callable[[Actor, Message], None]
    """To a rank of this host."""
    send: Callable[[int, Message], None]
    """To an agent."""
    broadcast: Callable[[Message], None]
    say: Callable[[str], None]
    start: Callable[[Actor], None]
    """Start a rank's process as this actor, to join the job."""
    later: Callable[..., object]
    """Call a function with arguments after seconds."""


class Newcomers:
    """The newcomers of one host, and what is known of all others.

    Args:
        config: the job.
        index: this agent's.
        walker: for the view in force and who is dead.
        judge: for deaths that are pending and ranks that leave.
        ways: how to act.
    """

    def __init__(
        self, config: JobConfig, index: int, walker: Walker, judge: Judge, ways: Ways
    ) -> None:
        self.joins = Joins()
        self._config = config
        self._index = index
        self._walker = walker
        self._judge = judge
        self._ways = ways
        self._rule = Respawn(config.respawn, config.respawn_delay_s)
        self._local: dict[Actor, RankProcess] = {}
        self._attached: set[Actor] = set()
        self._waiting_since: float | None = None
        self._told_of_the_end = False

    def __contains__(self, actor: object) -> bool:
        return actor in self._local

    # ---- processes -------------------------------------------------------------------------------

    def started(self, process: RankProcess) -> None:
        """A process of this host is to join the job."""
        self._local[process.actor] = process

    def lost(self, actor: Actor) -> None:
        """A newcomer of this host ended, or is not listened to any more."""
        if self._local.pop(actor, None) is not None:
            self._ways.broadcast(Ended(actor))

    def after_end(self, actor: Actor) -> None:
        """The process of a rank of this host has ended that the job lost: it may be started again."""
        if self._config.mode != "enforce" or not self._config.respawn:
            return
        following = self._rule.after(actor)
        if following is None:
            times = "once" if self._config.respawn == 1 else f"{self._config.respawn} times"
            self._ways.say(f"rank {actor.rank} is not started again: it was, {times}")
            return
        coming, delay = following
        self._ways.later(delay, self._start, coming)

    def _start(self, actor: Actor) -> None:
        why = None
        if not self._walker.view.members:
            why = "the job is over"
        elif self._judge.leaving & set(self._walker.view.members):
            why = "the job is ending"
        if why is not None:
            self._ways.say(f"rank {actor.rank} is not started again: {why}")
            return
        self._ways.say(f"starting rank {actor.rank} again, as {actor}")
        self._ways.start(actor)

    # ---- messages --------------------------------------------------------------------------------

    def attached(self, actor: Actor) -> None:
        """A newcomer said hello."""
        self._attached.add(actor)

    def on_joining(self, asked: Joining) -> None:
        """A newcomer of this host asks for a source."""
        view = self._walker.view
        if not view.members:
            self._ways.tell(asked.actor, NotWanted("the job is over", 0))
            return
        lost = {m for m in view.members if m not in self._judge.alive()}
        source = source_for(view, lost, asked.attempt)
        if source is not None:
            serve = Serve(asked.actor, source, asked.address)
            self._ways.send(self._config.host_of(source.rank), serve)

    def on_message(self, body: Serve | Level | Ended) -> None:
        """From an agent, this one too."""
        match body:
            case Serve(source=source):
                self._ways.tell(source, body)
            case Level():
                self.joins.on_level(body)
                self._walker.replan()
            case Ended(actor=actor):
                self.joins.ended(actor)
                self._walker.replan()

    def greet(self, index: int) -> None:
        """A peer can be reached (again)."""
        for level in self.joins.told():
            if self._config.host_of(level.actor.rank) == self._index:
                self._ways.send(index, level)

    # ---- the walk --------------------------------------------------------------------------------

    def ready(self) -> list[Level]:
        """Newcomers that the next view may let in."""
        view = self._walker.view
        return self.joins.ready(view, set(view.members) - self._judge.alive())

    def wants_walk(self) -> bool:
        """Somebody is level, and nothing more urgent is to be walked for."""
        leaving = self._judge.leaving & set(self._walker.view.members)
        return not leaving and not self._judge.deaths and bool(self.ready())

    def look(self, now_s: float) -> None:
        """Where this agent leads: everybody is not held up for a newcomer that does not get there."""
        awaits = self._walker.awaits
        if awaits is None:
            self._waiting_since = None
            return
        if self._waiting_since is None:
            self._waiting_since = now_s
        elif now_s - self._waiting_since > PATIENCE_S:
            self.joins.give_up(awaits.newcomers, self._walker.epoch)
            names = ", ".join(str(a) for a in awaits.newcomers)
            self._ways.say(f"rank {names} did not reach step {awaits.step} in time to join")
            self._walker.replan()

    def installed(self, view: View) -> None:
        """A view was committed: some are members now, the others must know of it."""
        self.joins.install(view)
        for actor in view.members:
            self._local.pop(actor, None)
        for actor in self._local:
            self._ways.tell(actor, Commit(view))
        if not view.members:
            self._end_all()

    def _end_all(self) -> None:
        for actor, process in self._local.items():
            if actor not in self._attached:
                self._ways.say(f"rank {actor} came too late: the job is over")
                process.signal(signal.SIGTERM)
