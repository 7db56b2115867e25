"""Ranks that the kernel keeps stopped (SIGSTOP, a debugger): suspected, fenced, ended with the job."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import time

from cascade_runtime.agent.fencing import LOOK_S, StopWatch, put_up, since_ns
from cascade_runtime.agent.host_state import HostState
from cascade_runtime.agent.newcomers import Newcomers
from cascade_runtime.agent.proc_stat import look_at
from cascade_runtime.agent.protocol import (
    Facts,
    Trigger,
)
from cascade_runtime.agent.rank_process import describe_status
from cascade_runtime.agent.spawning import STOP_GRACE_S
from cascade_runtime.detectors._base import Verdict
from cascade_runtime.progress import Fence
from cascade_runtime.vocabulary.fault import FaultEvent
from cascade_runtime.vocabulary.identity import Actor, EventRef


class StoppedRanks:
    """Looks for stopped ranks of this host and acts on them; see fencing.py.

    The same look finds those that are on their way out, long before the kernel has taken them down.
    """

    def __init__(self, host: HostState, newcomers: Newcomers) -> None:
        self._host = host
        self._newcomers = newcomers
        self.stop_watch = StopWatch(host.judge.policy.frozen)
        self._suspicions: dict[Actor, EventRef] = {}
        self._told_stopped: set[Actor] = set()
        self._over_since = 0.0

    def look(self) -> None:
        """Who is stopped by the kernel (SIGSTOP, a debugger)? However idle the agent is otherwise."""
        if self._host.finished.is_set():
            return
        loop = asyncio.get_running_loop()
        states = []
        for process in list(self._host.ranks.values()):
            look = look_at(process.pid) if process.status is None else None
            if look is None:
                continue
            if look.failed is not None:
                process.fails(look.failed)
            else:
                states.append((process.actor, look.state))
        for verdict in self.stop_watch.look(loop.time(), states):
            self._on_stop_or_go(verdict)
        if self.stop_watch.standing:
            self._fence_stopped()
        loop.call_later(LOOK_S, self.look)

    def _on_stop_or_go(self, verdict: Verdict) -> None:
        """A local rank has been stopped for too long, or runs again."""
        assert verdict.subject is not None
        actor = verdict.subject
        if verdict.cleared and actor in self._host.fenced:
            with contextlib.suppress(OSError):
                Fence(self._host.config.progress_path(actor)).resumed(time.monotonic_ns())
        if not self._host.walker.log or actor not in self._host.walker.view.members:
            return
        evidence = self._host.rows.verdict(verdict)
        if verdict.cleared or actor in self._host.certified:
            return
        if self._host.config.mode == "observe":
            self._host.say(f"{verdict.why}; nothing is changed (observe)")
            reason = f"rank {actor} stopped"
            self._host.judge.add(Trigger(FaultEvent.GPU_FAIL_STOP, actor, [evidence], reason))
            self._host.judge.observe()
            self._host.judge.triggers = [t for t in self._host.judge.triggers if t.subject != actor]
            return
        self._suspicions[actor] = evidence

    def _fence_stopped(self) -> None:
        for actor, verdict in self.stop_watch.standing.items():
            if self._host.walker.log and actor in self._host.walker.view.members:
                if self._host.config.mode == "enforce" and actor not in self._host.certified:
                    self._fence(actor, verdict)
            elif actor in self._newcomers:
                self._newcomers.fence(actor, verdict)
            elif actor not in self._told_stopped | self._host.fenced:
                self._told_stopped.add(actor)
                over = bool(self._host.walker.log)
                waits = "it has left the job" if over else "the job waits for it to attach"
                self._host.say(f"{verdict.why}; {waits}")

    def _fence(self, actor: Actor, verdict: Verdict) -> None:
        """It will never act in a later epoch, so the job goes on without it as after a death."""
        try:
            decided, issued = put_up(self._host.config.progress_path(actor), since_ns(verdict))
        except OSError:
            return
        self._host.certified.add(actor)
        self._host.fenced.add(actor)
        facts = Facts(decided=decided, issued=issued, dead=True, stopped=True)
        self._host.journal.append("dead", (actor, facts))
        evidence = self._suspicions.pop(actor, None) or self._host.rows.verdict(verdict)
        self._host.journal.append("evidence", (actor, evidence))
        self._host.rows.fenced(actor, verdict.value)
        if (writer := self._host.post.connections.pop(actor, None)) is not None:
            writer.close()
        self._host.rendezvous.give_up()
        self._host.say(f"{verdict.why}: fenced, the others go on without it")
        reason = f"rank {actor} stopped"
        told = Trigger(FaultEvent.GPU_FAIL_STOP, actor, [evidence], reason, certified=True)
        self._host.post.broadcast(told)
        self._host.walker.on_death(actor, facts)
        self._host.perform()
        self._host.tick()

    def on_exit(self, actor: Actor, status: int) -> None:
        """A fenced rank has ended: by itself, once it ran again, or killed."""
        self._host.fenced.discard(actor)
        self._host.journal.append("exited", (actor, status))
        self._host.say(
            f"rank {actor}, which had been stopped and fenced, ended ({describe_status(status)})"
        )
        self._newcomers.after_end(actor)
        self._host.tick()

    def end_all(self, now: float) -> None:
        """The job is over: fenced ranks that are still stopped have nothing to come back to."""
        self._over_since = self._over_since or now
        late = now - self._over_since > STOP_GRACE_S
        for process in self._host.ranks.values():
            stopped = process.actor in self.stop_watch.standing
            fenced = process.actor in self._host.fenced
            if process.status is None and ((stopped and fenced) or (late and (stopped or fenced))):
                process.signal(signal.SIGKILL)
