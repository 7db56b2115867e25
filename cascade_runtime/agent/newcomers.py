"""One agent's part in bringing ranks back: it starts them, finds who serves them, and reports for them.

A newcomer is a process of this host that is no member yet. What it does and what becomes of it costs
the members nothing, until the walk that lets it in.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Callable

from cascade_runtime.agent.fencing import put_up, since_ns
from cascade_runtime.agent.host_state import HostState
from cascade_runtime.agent.joins import PATIENCE_S, source_for
from cascade_runtime.agent.protocol import (
    Commit,
    Ended,
    Facts,
    Joining,
    Level,
    NotWanted,
    Serve,
    Trigger,
    View,
)
from cascade_runtime.agent.rank_process import RankProcess, describe_status
from cascade_runtime.agent.respawn import Respawn
from cascade_runtime.agent.spawning import STOP_GRACE_S
from cascade_runtime.detectors._base import Verdict
from cascade_runtime.vocabulary.fault import FaultEvent
from cascade_runtime.vocabulary.identity import Actor

MAX_REFUSALS = 2
"""So often in a row may a rank be refused. Once more is tried: a batch may have been the reason."""

_NO_PROCESS = (OSError, EOFError)
"""What starting a process may raise: no memory, too many processes, the zygote is gone."""


class Newcomers:
    """The newcomers of one host.

    Args:
        host: the agent's state; what is known of all newcomers is in its ``joins``.
        start: starts a rank's process as this actor.
    """

    def __init__(self, host: HostState, start: Callable[[Actor], RankProcess | None]) -> None:
        self._host = host
        self._start_process = start
        self._rule = Respawn(host.config.respawn, host.config.respawn_delay_s)
        self._local: dict[Actor, RankProcess] = {}
        self._waiting_since: float | None = None

    def __contains__(self, actor: object) -> bool:
        return actor in self._local

    def not_level(self) -> list[Actor]:
        """Newcomers that have attached and do not stand, by a member's log, where that member stands.

        Not from their start: what a script does before it attaches may take minutes, and concerns nobody.
        """
        level = {told.actor for told in self._host.joins.told()}
        attached = self._host.attached
        return sorted(a for a in self._local if a in attached and a not in level)

    # ---- processes -------------------------------------------------------------------------------

    def remember(self) -> None:
        """After a restart of the agent: who is on its way, and who was to be started again."""
        host = self._host
        if not host.walker.log:
            return
        lost = {actor for actor, facts in host.walker.dead.items() if not facts.leaving}
        for process in host.ranks.values():
            actor = process.actor
            if actor in host.walker.view.members and actor not in lost:
                continue
            coming = host.config.comes_later(actor) and actor not in host.certified
            if process.status is None and coming:
                self._local[actor] = process
            elif process.status not in (None, 0) and actor in lost:
                self.after_end(actor)

    def on_exit(self, actor: Actor, status: int) -> None:
        """A newcomer ended before it was a member; a view that lets it in may be proposed already."""
        self._host.refusals.note_lost(actor)
        if status != 0:
            how = describe_status(status)
            self._host.say(f"rank {actor} ended before it had joined ({how})")
        self._host.rows.ended(actor, status)
        self._lose(actor, Facts(decided=0, dead=True))
        if status != 0:
            self.after_end(actor)

    def fence(self, actor: Actor, verdict: Verdict) -> None:
        """A newcomer is stopped: nobody waits for it, and it is not let in when it runs again."""
        host = self._host
        with contextlib.suppress(OSError):
            put_up(host.config.progress_path(actor), since_ns(verdict))
        host.certified.add(actor)
        host.fenced.add(actor)
        host.rows.fenced(actor, verdict.value)
        if (writer := host.post.connections.pop(actor, None)) is not None:
            writer.close()
        host.say(f"{verdict.why}: fenced, it does not join")
        self._lose(actor, Facts(decided=0, dead=True, stopped=True))
        host.perform()
        host.tick()

    def note_ended(self, actor: Actor) -> None:
        """After a restart of the agent: this one ended, and the agent did just before it had told."""
        self._lose(actor, Facts(decided=0, dead=True))

    def _lose(self, actor: Actor, facts: Facts) -> None:
        self._host.journal.append("dead", (actor, facts))
        if self._local.pop(actor, None) is not None:
            self._host.post.broadcast(Ended(actor))
        self._host.walker.on_death(actor, facts)

    def after_end(self, actor: Actor) -> None:
        """The process of a rank of this host has ended that the job lost: it may be started again."""
        if self._host.config.mode != "enforce" or not self._host.config.respawn:
            return
        following = self._rule.after(actor)
        if following is None:
            times = (
                "once" if self._host.config.respawn == 1 else f"{self._host.config.respawn} times"
            )
            self._host.say(f"rank {actor.rank} is not started again: it was, {times}")
            return
        if (refused := self._host.refusals.in_a_row(actor)) >= MAX_REFUSALS:
            self._host.say(
                f"rank {actor.rank} is not started again: it was refused {refused} times in a row"
            )
            return
        coming, delay = following
        asyncio.get_running_loop().call_later(delay, self._start, coming)

    def _start(self, actor: Actor) -> None:
        if (why := self._too_late()) is not None:
            self._host.say(f"rank {actor.rank} is not started again: {why}")
            return
        self._host.say(f"starting rank {actor.rank} again, as {actor}")
        try:
            self._begin(actor)
        except _NO_PROCESS as error:
            self._host.say(f"rank {actor.rank} could not be started ({error})")
            self.after_end(actor)

    def _begin(self, actor: Actor) -> bool:
        process = self._start_process(actor)
        if process is not None:
            self._local[actor] = process
        return process is not None

    def _too_late(self) -> str | None:
        if not self._host.walker.view.members:
            return "the job is over"
        if self._host.judge.leaving & set(self._host.walker.view.members):
            return "the job is ending"
        return None

    def add(self, rank: int) -> str | None:
        """Start the script as a rank that never was; why not, or None when it was started."""
        host = self._host
        first = host.config.first_new_rank
        if host.config.mode != "enforce":
            return "the job is only observed, so nobody can join it"
        if not host.walker.log:
            return "the job has not begun yet: its ranks are still attaching"
        if rank < host.config.num_ranks or rank in host.ranks:
            return f"rank {rank} exists already"
        if rank < first:
            return f"{rank} is the number of a host agent in the trace; new ranks begin at {first}"
        if host.config.host_of(rank) != host.index:
            return f"rank {rank} belongs to host {host.config.host_of(rank)}, not to {host.index}"
        following = first + host.index
        while following in host.ranks:
            following += host.config.num_hosts
        if rank != following:  # LOCAL_RANK counts on without gaps
            return f"the next new rank of host {host.index} is {following}"
        why = self._too_late()
        try:
            if why is None and not self._begin(Actor(rank)):
                why = "the job is being stopped"
        except _NO_PROCESS as error:
            why = f"its process could not be started ({error})"
        if why is None:
            host.say(f"starting rank {rank}, which joins the job")
        return why

    # ---- messages --------------------------------------------------------------------------------

    def on_joining(self, asked: Joining) -> None:
        """A newcomer of this host asks for a source."""
        if not self._host.walker.log:
            return
        view = self._host.walker.view
        if not view.members:
            self._host.post.tell(asked.actor, NotWanted("the job is over", 0))
            return
        lost = {m for m in view.members if m not in self._host.judge.alive()}
        source = source_for(view, lost, asked.attempt)
        if source is not None:
            serve = Serve(asked.actor, source, asked.address)
            self._host.post.send(self._host.config.host_of(source.rank), serve)
        elif why := self._host.joins.held_back(asked.actor, view):
            self._host.say(why)
            trigger = Trigger(FaultEvent.NODE_CHURN_HIGH, None, [], why)
            self._host.rows.decision(trigger, view.regime, view.regime, False, why)

    def on_message(self, body: Serve | Level | Ended) -> None:
        """From an agent, this one too."""
        match body:
            case Serve(source=source):
                self._host.post.tell(source, body)
            case Level():
                self._host.joins.on_level(body)
                self._host.walker.replan()
            case Ended(actor=actor):
                self._host.joins.ended(actor)
                self._host.coming.forget([actor])
                self._host.walker.replan()

    def greet(self, index: int) -> None:
        """A peer can be reached (again)."""
        for level in self._host.joins.told():
            if self._host.config.host_of(level.actor.rank) == self._host.index:
                self._host.post.send(index, level)

    # ---- the walk --------------------------------------------------------------------------------

    def wants_walk(self) -> bool:
        """Somebody is level, and nothing more urgent is to be walked for."""
        leaving = self._host.judge.leaving & set(self._host.walker.view.members)
        if leaving or self._host.judge.deaths:
            return False
        return bool(self._host.newcomers_ready()) or self._tells_of_others()

    def _tells_of_others(self) -> bool:
        """Others are on the way than the view has on record."""
        now_s = asyncio.get_running_loop().time()
        may_walk = (
            self._host.judge.stood_s(now_s) >= self._host.judge.policy.walk.min_interval_ms / 1000
        )
        return may_walk and self._host.coming.is_news(self._host.walker.view)

    def look(self, now_s: float) -> None:
        """Where this agent leads: everybody is not held up for a newcomer that does not get there."""
        told = self._host.watch.not_level | {level.actor for level in self._host.joins.told()}
        self._host.coming.look(told, now_s)
        awaits = self._host.walker.awaits
        if awaits is None:
            self._waiting_since = None
            return
        if self._waiting_since is None:
            self._waiting_since = now_s
        elif now_s - self._waiting_since > PATIENCE_S:
            self._host.joins.give_up(awaits.newcomers, self._host.walker.epoch)
            names = ", ".join(str(a) for a in awaits.newcomers)
            self._host.say(f"rank {names} did not reach step {awaits.step} in time to join")
            self._host.walker.replan()

    def installed(self, view: View) -> None:
        """A view was committed: some are members now, the others must know of it."""
        self._host.joins.install(view)
        self._host.coming.forget(view.members)
        for actor in view.members:
            self._local.pop(actor, None)
        for actor in self._local:
            self._host.post.tell(actor, Commit(view))
        for actor in self._host.local(set(view.joined)):
            if actor in self._host.walker.dead:
                self._certify(actor)
        if not view.members:
            self._end_all()

    def _certify(self, actor: Actor) -> None:
        """It was let in, and had ended just before."""
        evidence = self._host.rows.dead(actor, None)
        self._host.journal.append("evidence", (actor, evidence))
        reason = f"rank {actor} died as it joined"
        told = Trigger(FaultEvent.GPU_FAIL_STOP, actor, [evidence], reason, certified=True)
        self._host.post.broadcast(told)

    def _end_all(self) -> None:
        """The job is over. Who has said hello hears it and ends by itself; the job's end waits for nobody."""
        for actor, process in self._local.items():
            asyncio.get_running_loop().call_later(STOP_GRACE_S, process.signal, signal.SIGKILL)
            if actor not in self._host.attached:
                self._host.say(f"rank {actor} came too late: the job is over")
                process.signal(signal.SIGTERM)
