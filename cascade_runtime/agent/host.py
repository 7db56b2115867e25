"""The host agent's loop: performs what the walk asks for, certifies deaths, tells its ranks.

The protocol itself is in walk.py (pure) and plan.py (pure); reconcile.py keeps what members report.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

from cascade_runtime.agent.config import JobConfig
from cascade_runtime.agent.control_log import ControlLog
from cascade_runtime.agent.cpu_busy import PERIOD_S as CPU_PERIOD_S
from cascade_runtime.agent.cpu_busy import CpuBusy
from cascade_runtime.agent.fencing import LOOK_S, StopWatch, put_up, since_ns
from cascade_runtime.agent.gpu_samples import GpuSampler
from cascade_runtime.agent.hosts import BEAT_S, SUSPECT_S, HostWatch
from cascade_runtime.agent.journal import Journal
from cascade_runtime.agent.judge import Judge
from cascade_runtime.agent.links import PeerLink, read_frames
from cascade_runtime.agent.newcomers import Newcomers, Ways
from cascade_runtime.agent.patience import Patience, no_majority, not_answered, not_halted
from cascade_runtime.agent.plan import Awaits, Drains, Plan, plan_next
from cascade_runtime.agent.protocol import (
    LENGTH,
    Accepted,
    Acked,
    AgentHello,
    Answer,
    Attached,
    Beat,
    Commit,
    DebtNote,
    Drain,
    DrainRanks,
    Ended,
    Facts,
    Get,
    Halt,
    Halted,
    Hello,
    History,
    HostLost,
    Joining,
    Lag,
    Leave,
    Level,
    Lifeline,
    Message,
    Propose,
    Proposed,
    Put,
    Query,
    Reconciled,
    Rejected,
    Round,
    Serve,
    SettleOrder,
    StopJob,
    Stuck,
    Trigger,
    View,
    Waits,
    Welcome,
    pack_frame,
    unpack_frame,
)
from cascade_runtime.agent.rank_process import RankProcess, Spawner, describe_status
from cascade_runtime.agent.reconcile import Reconciler
from cascade_runtime.agent.refusals import Refusals
from cascade_runtime.agent.rendezvous import Rendezvous
from cascade_runtime.agent.rows import AgentRows
from cascade_runtime.agent.shipping.shipper import Shipper
from cascade_runtime.agent.trace_file import write_trace_end, write_trace_start
from cascade_runtime.agent.walk import (
    AskLocal,
    DrainLocal,
    Effect,
    HaltLocal,
    Installed,
    Persist,
    ProposedNow,
    Send,
    Walker,
)
from cascade_runtime.agent.watch import Watch
from cascade_runtime.detectors._base import Verdict
from cascade_runtime.progress import Fence, read_progress, read_standing
from cascade_runtime.recorder import Recorder
from cascade_runtime.vocabulary.fault import FaultEvent
from cascade_runtime.vocabulary.identity import Actor, EventRef
from cascade_runtime.vocabulary.policy import load_policy
from cascade_runtime.vocabulary.regime import Regime

TICK_S = 0.02
IDLE_TICK_S = 0.25
"""With nothing under way, time alone changes little: messages and deaths wake the agent by themselves."""

RETRY_S = 0.25
TAKEOVER_S = 1.0
STOP_GRACE_S = 5.0
_BEAT = pack_frame(Beat())
_WALK = (Query, Answer, Rejected, DrainRanks, Propose, Accepted, History, Lag)


class HostAgent:
    """One virtual or real host of a job."""

    def __init__(self, config: JobConfig, index: int) -> None:
        self.config = config
        self.index = index
        self.journal = Journal(config.journal_path(index))
        memory = self.journal.memory
        self.actor = Actor(config.agent_rank(index), memory.num_starts)
        self.recorder = Recorder(Path(config.trace_dir) / "spool", config.run_id, self.actor)
        self.control = ControlLog(self.recorder)
        self.walker = Walker(index, config.num_hosts, lambda a: config.host_of(a.rank), self._plan)
        self.walker.restore(
            memory.views, memory.promised, memory.accepted, memory.num_starts, memory.walking
        )
        self.reconciler = Reconciler(memory.debts.values())
        self.rows = AgentRows(self.recorder)
        self.judge = Judge(load_policy(config.policy), self.rows, self.reconciler)
        self.rendezvous = Rendezvous(self._tell)
        self.refusals = Refusals(config)
        self.shipper = Shipper(config, index)
        self.cpu_busy = CpuBusy()
        self.stop_watch = StopWatch(self.judge.policy.frozen)
        self.fenced = {a for a, facts in memory.dead if facts.stopped}
        """Local ranks that live and are not listened to."""
        self.gpus = GpuSampler()
        self.watch = Watch(config, index, self.judge, self.rows)
        self.ranks: dict[int, RankProcess] = {}
        self.spawner = Spawner(config, index)
        ways = Ways(
            tell=self._tell,
            send=self._send,
            broadcast=self._broadcast,
            say=self._say,
            start=self._start_newcomer,
            later=lambda *args: asyncio.get_running_loop().call_later(*args),
        )
        self.newcomers = Newcomers(config, index, self.walker, self.judge, ways)
        self.connections: dict[Actor, asyncio.StreamWriter] = {}
        self.attached: set[Actor] = set()
        self.peers: dict[int, PeerLink] = {}
        self.peer_actors: dict[int, Actor] = {}
        self.hosts = HostWatch()
        self.patience = Patience()
        self.stopping = False
        self._suspicions: dict[Actor, EventRef] = {}
        self._told_stopped: set[Actor] = set()
        self._over_since = 0.0
        self._last_said = 0.0
        self._walking_since = 0.0
        self._next_tick: asyncio.TimerHandle | None = None
        self._suspected: frozenset[int] = frozenset()
        self._finished = asyncio.Event()
        self._certified = {a for a, _ in memory.dead} | {a for a, _ in memory.exited}

    # ---- life ------------------------------------------------------------------------------------

    async def run(self) -> int:
        """Serve until the job is over; the exit code is the agent's, not the script's."""
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(_end_at_once)
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stop)
        if self.walker.log:
            self.recorder.set_view(self.walker.epoch, self.walker.view.regime)
        self.rows.introduce(self.config, self.index)
        self._tell_own_stop()
        path = self.config.socket_path(self.index)
        path.unlink(missing_ok=True)
        server = await asyncio.start_unix_server(self._on_connection, str(path), limit=1 << 20)
        for other in range(self.config.num_hosts):
            if other != self.index:
                self.peers[other] = PeerLink(
                    self.config.socket_path(other),
                    self._hello(),
                    partial(self._greet, other),
                    partial(self._forget_peer, other),
                )
        self._start_or_adopt()
        if self.walker.log:
            self.watch.install(self.walker.view, loop.time())
            self.judge.install(self.walker.view, self.walker.log, loop.time())
            self.shipper.start()
        self._remember_deaths()
        self._tick()
        self._sample_cpu()
        self._look_at_ranks()
        self._beat(loop.time())
        self.gpus.start()
        self._look()
        await self._finished.wait()
        await self._leave(server)
        return 0

    def _tell_own_stop(self) -> None:
        note = self.config.stopped_path(self.index)
        with contextlib.suppress(OSError, ValueError):
            stopped_s = float(note.read_text())
            note.unlink()
            before = Actor(self.actor.rank, max(0, self.actor.incarnation - 1))
            self.rows.agent_stopped(before, stopped_s)

    def _hello(self) -> bytes:
        return pack_frame(AgentHello(self.index, self.actor, self.walker.epoch))

    def _start_or_adopt(self) -> None:
        memory, spawner = self.journal.memory, self.spawner
        for rank in self.config.ranks_of(self.index):
            if rank in memory.spawned:
                process = spawner.adopt(*memory.spawned[rank])
            elif memory.views:
                continue  # the job runs without it
            else:
                process = spawner.spawn(Actor(rank))
                self.journal.append("spawned", (process.actor, process.pid))
            self.ranks[rank] = process
        exited = dict(memory.exited)
        for process in self.ranks.values():
            actor = process.actor
            if actor not in self._certified or (actor in self.fenced and actor not in exited):
                process.watch(self._on_exit)
            else:
                process.status = exited.get(actor, -signal.SIGKILL)
        if memory.views:
            self._remember_newcomers()

    def _remember_newcomers(self) -> None:
        """After a restart: who is on its way into the job, and who was to be started again."""
        lost = {actor for actor, facts in self.journal.memory.dead if not facts.leaving}
        for process in self.ranks.values():
            actor = process.actor
            if actor in self.walker.view.members:
                continue
            if process.status is None and actor.incarnation and actor not in self._certified:
                self.newcomers.started(process)
            elif process.status not in (None, 0) and actor in lost:
                self.newcomers.after_end(actor)

    def _start_newcomer(self, actor: Actor) -> None:
        """Start a lost rank's script again; it joins the job when it is level."""
        if self.stopping or self._finished.is_set():
            return
        process = self.spawner.spawn(actor)
        self.journal.append("spawned", (process.actor, process.pid))
        self.ranks[actor.rank] = process
        self.newcomers.started(process)
        process.watch(self._on_exit)

    def _sample_cpu(self) -> None:
        if self._finished.is_set():
            return  # the recorder may be closed already
        loop = asyncio.get_running_loop()
        running = [(p.actor, p.pid) for p in self.ranks.values() if p.status is None]
        for actor, percent in self.cpu_busy.sample(loop.time(), running):
            self.rows.cpu_busy(actor, percent)
        loop.call_later(CPU_PERIOD_S, self._sample_cpu)

    def _beat(self, last: float) -> None:
        now = asyncio.get_running_loop().time()
        if now - last > 3 * BEAT_S:
            self.hosts.slept()
        for peer in self.peers.values():
            peer.send(_BEAT)
        asyncio.get_running_loop().call_later(BEAT_S, self._beat, now)

    # ---- stopped ranks ---------------------------------------------------------------------------

    def _look_at_ranks(self) -> None:
        """Who is stopped by the kernel (SIGSTOP, a debugger)? However idle the agent is otherwise."""
        if self._finished.is_set():
            return
        loop = asyncio.get_running_loop()
        running = [(p.actor, p.pid) for p in self.ranks.values() if p.status is None]
        for verdict in self.stop_watch.look(loop.time(), running):
            self._on_stop_or_go(verdict)
        if self.stop_watch.standing:
            self._fence_stopped()
        loop.call_later(LOOK_S, self._look_at_ranks)

    def _on_stop_or_go(self, verdict: Verdict) -> None:
        """A local rank has been stopped for too long, or runs again."""
        assert verdict.subject is not None
        actor = verdict.subject
        if verdict.cleared and actor in self.fenced:
            with contextlib.suppress(OSError):
                Fence(self.config.progress_path(actor)).resumed(time.monotonic_ns())
        if not self.walker.log or actor not in self.walker.view.members:
            return
        evidence = self.rows.verdict(verdict)
        if verdict.cleared or actor in self._certified:
            return
        if self.config.mode == "observe":
            self._say(f"{verdict.why}; nothing is changed (observe)")
            reason = f"rank {actor} stopped"
            self.judge.add(Trigger(FaultEvent.GPU_FAIL_STOP, actor, [evidence], reason))
            self.judge.observe()
            self.judge.triggers = [t for t in self.judge.triggers if t.subject != actor]
            return
        self._suspicions[actor] = evidence

    def _fence_stopped(self) -> None:
        for actor, verdict in self.stop_watch.standing.items():
            if self.walker.log and actor in self.walker.view.members:
                if self.config.mode == "enforce" and actor not in self._certified:
                    self._fence(actor, verdict)
            elif actor in self.newcomers:
                self._fence_newcomer(actor, verdict)
            elif actor not in self._told_stopped | self.fenced:
                self._told_stopped.add(actor)
                over = bool(self.walker.log)
                waits = "it has left the job" if over else "the job waits for it to attach"
                self._say(f"{verdict.why}; {waits}")

    def _fence(self, actor: Actor, verdict: Verdict) -> None:
        """It will never act in a later epoch, so the job goes on without it as after a death."""
        try:
            decided, issued = put_up(self.config.progress_path(actor), since_ns(verdict))
        except OSError:
            return
        self._certified.add(actor)
        self.fenced.add(actor)
        facts = Facts(decided=decided, issued=issued, dead=True, stopped=True)
        self.journal.append("dead", (actor, facts))
        evidence = self._suspicions.pop(actor, None) or self.rows.verdict(verdict)
        self.journal.append("evidence", (actor, evidence))
        self.rows.fenced(actor, verdict.value)
        if (writer := self.connections.pop(actor, None)) is not None:
            writer.close()
        self.rendezvous.give_up()
        self._say(f"{verdict.why}: fenced, the others go on without it")
        reason = f"rank {actor} stopped"
        self._broadcast(Trigger(FaultEvent.GPU_FAIL_STOP, actor, [evidence], reason))
        self.walker.on_death(actor, facts)
        self._perform()
        self._tick()

    def _fence_newcomer(self, actor: Actor, verdict: Verdict) -> None:
        """A stopped newcomer: nobody waits for it, and it is not let in when it runs again."""
        with contextlib.suppress(OSError):
            put_up(self.config.progress_path(actor), since_ns(verdict))
        self._certified.add(actor)
        self.fenced.add(actor)
        facts = Facts(decided=0, dead=True, stopped=True)
        self.journal.append("dead", (actor, facts))
        self.rows.fenced(actor, verdict.value)
        if (writer := self.connections.pop(actor, None)) is not None:
            writer.close()
        self._say(f"{verdict.why}: fenced, it does not join")
        self.newcomers.lost(actor)
        self.walker.on_death(actor, facts)
        self._perform()
        self._tick()

    def _on_fenced_exit(self, actor: Actor, status: int) -> None:
        """A fenced rank has ended: by itself, once it ran again, or killed."""
        self.fenced.discard(actor)
        self.journal.append("exited", (actor, status))
        self._say(
            f"rank {actor}, which had been stopped and fenced, ended ({describe_status(status)})"
        )
        self.newcomers.after_end(actor)
        self._tick()

    def _end_fenced(self, now: float) -> None:
        """The job is over: fenced ranks that are still stopped have nothing to come back to."""
        self._over_since = self._over_since or now
        late = now - self._over_since > STOP_GRACE_S
        for process in self.ranks.values():
            stopped = process.actor in self.stop_watch.standing
            fenced = process.actor in self.fenced
            if process.status is None and ((stopped and fenced) or (late and (stopped or fenced))):
                process.signal(signal.SIGKILL)

    # ---- what the ranks do ----

    def _look(self) -> None:
        """Tell and hear how the ranks are doing, and what the detectors make of it."""
        if self._finished.is_set():
            return
        loop = asyncio.get_running_loop()
        if self.walker.log and not self.stopping:
            self._broadcast(self.watch.waits(loop.time()))
            observe = self.config.mode == "observe"
            pids = {p.pid: p.actor for p in self.ranks.values()}
            self.watch.on_gpus(self.gpus.take(), pids, loop.time())
            triggers = self.watch.decide(loop.time(), self._leader(), observe)
            for trigger in triggers:
                self._broadcast(trigger)
            if triggers:
                self._tick()
        loop.call_later(self.watch.look_s, self._look)

    def _stop(self) -> None:
        if self.stopping:
            return
        self.stopping = True
        for process in self.ranks.values():
            process.signal(signal.SIGTERM)
        asyncio.get_running_loop().call_later(STOP_GRACE_S, self._kill)

    def _kill(self) -> None:
        for process in self.ranks.values():
            process.signal(signal.SIGKILL)

    async def _leave(self, server: asyncio.Server) -> None:
        self.refusals.tell()
        self.gpus.stop()
        server.close()
        for writer in list(self.connections.values()):
            writer.close()
        for peer in self.peers.values():
            await peer.close()
        self.recorder.close()
        self.journal.close()
        self.shipper.finish()  # last: nobody needs the loop any more

    # ---- connections -----------------------------------------------------------------------------

    async def _on_connection(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        who: Actor | None = None
        agent: int | None = None
        lifeline: Actor | None = None
        try:
            async for frame, size in read_frames(reader):
                body = frame.body
                if who is None:
                    if isinstance(body, Hello) and body.actor in self.fenced:
                        break
                    if isinstance(body, Hello):
                        who = body.actor
                        self._on_hello(body, writer)
                    elif isinstance(body, Lifeline):
                        lifeline = body.actor
                        self.hosts.lifeline(lifeline, is_open=True)
                        continue
                    elif isinstance(body, AgentHello):
                        who, agent = body.actor, body.index
                        self._on_agent_hello(body)
                    else:
                        break
                    continue
                if who in self.fenced:
                    break  # whatever it says belongs to an epoch that has moved on
                self.control.incoming(who, frame.channel_seq, size)
                if agent is None:
                    self._on_rank_message(who, body)
                else:
                    self._on_agent_message(agent, body)
                self._perform()
                if not isinstance(body, Round | Put | Get | Beat | Waits):
                    self._tick()
        except (ValueError, OSError) as error:
            self._say(f"dropping a connection: {error}")
        except asyncio.CancelledError:
            return  # the job is over
        finally:
            writer.close()
            if lifeline is not None and not self._finished.is_set():
                self.hosts.lifeline(lifeline, is_open=False)
                self._tick()
            if who is not None and self.connections.get(who) is writer:
                del self.connections[who]

    def _tell(self, actor: Actor, message: Message) -> None:
        writer = self.connections.get(actor)
        if writer is not None:
            writer.write(self.control.outgoing(actor, message))

    def _send(self, index: int, message: Message) -> None:
        if index == self.index:
            self._on_agent_message(index, message)
            return
        peer = self.peers[index]
        if peer.up and index in self.peer_actors:
            peer.send(self.control.outgoing(self.peer_actors[index], message))

    def _broadcast(self, message: Message) -> None:
        """To every agent, this one too."""
        for index in range(self.config.num_hosts):
            self._send(index, message)

    def _on_agent_hello(self, hello: AgentHello) -> None:
        self.peer_actors[hello.index] = hello.actor
        if self.walker.log:
            self.walker.on_message(hello.index, Lag(hello.epoch))
        self._greet(hello.index)

    def _forget_peer(self, index: int) -> None:
        """Its connection ended; until it says hello again nobody knows which incarnation it is."""
        self.peer_actors.pop(index, None)
        self.hosts.down(index, asyncio.get_running_loop().time())
        if not self._finished.is_set():
            self._tick()

    def _greet(self, index: int) -> None:
        """A peer can be reached (again): tell it what this host knows and it may have missed."""
        if self.peers[index].up:
            self.hosts.up(index, asyncio.get_running_loop().time())
        if index not in self.peer_actors or not self.peers[index].up:
            return
        self.peers[index].send(pack_frame(Attached(self._local(self.attached))))
        for actor in self._local(self.judge.leaving):
            self._send(index, Leave(actor, 0))
        for trigger in self.judge.triggers:
            self._send(index, trigger)
        for report in self.reconciler.reports():
            if self.config.host_of(report.actor.rank) == self.index:
                self._send(index, report)
        opened, closed = list(self.reconciler.open.values()), sorted(self.reconciler.closed)
        if opened or closed:
            self._send(index, DebtNote(self.actor, opened=opened, closed=closed))
        self.newcomers.greet(index)
        self._perform()

    # ---- ranks -----------------------------------------------------------------------------------

    def _on_hello(self, hello: Hello, writer: asyncio.StreamWriter) -> None:
        actor = hello.actor
        self.connections[actor] = writer
        writer.write(self._hello())
        if actor not in self.attached:
            self.attached.add(actor)
            for peer in self.peers.values():
                peer.send(pack_frame(Attached([actor])))
        self._try_first_view()
        if not self.walker.log:
            return
        self.newcomers.attached(actor)
        if hello.epoch < 0:
            self._tell(actor, Welcome(self.walker.view, self.actor, self.config.mode))
            return
        for view in self.walker.log[hello.epoch + 1 :]:
            self._tell(actor, Commit(view))
        # A restarted agent finds its ranks where the old one left them: ask again.
        self.walker.on_hello(actor)
        self._perform()

    def _try_first_view(self) -> None:
        config = self.config
        everybody = [Actor(r) for r in range(config.num_ranks)]
        if self.walker.log or not self.attached.issuperset(everybody):
            return
        view = View(
            epoch=0,
            regime=Regime.STRONG,
            from_regime=Regime.STRONG,
            members=everybody,
            cohorts=[everybody],
            reason="the job started",
            proposer=Actor(config.agent_rank(0)),
            joined=everybody,
            member_reason="started",
        )
        if self.index == 0:
            write_trace_start(config, self.judge.policy, with_gpus=self.gpus.measured)
        self.walker.install_first(view)
        self._perform()
        if self.index == 0:
            self._say(f"{config.num_ranks} ranks attached: epoch 0, STRONG, {config.mode}")

    def _on_rank_message(self, actor: Actor, body: Message) -> None:
        match body:
            case Halted(facts=facts, ask=ask):
                self.walker.on_facts(actor, facts, ask)
            case Acked(epoch=epoch, ballot=ballot):
                self.walker.on_ack(actor, epoch, ballot)
            case Round() | Reconciled() | DebtNote() | Leave() | Stuck():
                self._broadcast(body)
            case Joining():
                self.newcomers.on_joining(body)
            case Level():
                self._broadcast(body)
            case Put(epoch=epoch, key=key, value=value):
                for peer in self.peers.values():
                    peer.send(pack_frame(body))
                self.rendezvous.put(epoch, key, value)
            case Get(epoch=epoch, key=key):
                current = epoch == self.walker.epoch and not self.walker.walking
                self.rendezvous.get(actor, epoch, key, current=current)
            case _:
                self._say(f"rank {actor} sent a {type(body).__name__}, which ranks do not send")

    def _on_exit(self, process: RankProcess) -> None:
        actor = process.actor
        self.shipper.actor_ended(actor)
        self.stop_watch.forget(actor)
        status = process.status if process.status is not None else 0
        if actor in self.fenced:
            self._on_fenced_exit(actor, status)
        if actor in self._certified:
            return
        self._certified.add(actor)
        self.journal.append("exited", (actor, status))
        self.connections.pop(actor, None)
        if not self.walker.log:
            self._on_early_exit(actor, status)
        elif actor in self.walker.view.members:
            self.refusals.note(actor)
            if status == 0 and actor in self.judge.leaving:
                self._note_left(actor)
            else:
                self._certify(actor, status)
                self.newcomers.after_end(actor)
        elif actor in self.newcomers:
            self._on_newcomer_exit(actor, status)
        self._perform()
        self._tick()

    def _on_newcomer_exit(self, actor: Actor, status: int) -> None:
        """It ended before it was a member; a view that lets it in may be proposed already."""
        facts = Facts(decided=0, dead=True)
        self.journal.append("dead", (actor, facts))
        self.refusals.note(actor)
        if status != 0:
            self._say(f"rank {actor} ended before it had joined ({describe_status(status)})")
        self.newcomers.lost(actor)
        if status != 0:
            self.newcomers.after_end(actor)
        self.walker.on_death(actor, facts)

    def _on_early_exit(self, actor: Actor, status: int) -> None:
        """A rank ended before there was a view: there is no state to protect, so all are stopped."""
        if status == 0 and actor not in self.attached:
            return
        if status == -signal.SIGTERM and self.stopping:
            return
        self.refusals.note_early_end(actor, status)
        for peer in self.peers.values():
            peer.send(pack_frame(StopJob()))
        self._stop()

    def _note_left(self, actor: Actor) -> None:
        """A rank said LEAVE and ended before the last view (observe mode does not wait for it long)."""
        progress = read_progress(self.config.progress_path(actor))
        decided = progress.decided if progress else 0
        facts = Facts(decided=decided, dead=True, leaving=True)
        self.journal.append("dead", (actor, facts))
        self.walker.on_death(actor, facts)

    def _certify(self, actor: Actor, status: int) -> None:
        """The death of a member, seen by the kernel of its own host."""
        decided, issued = read_standing(self.config.progress_path(actor))
        facts = Facts(decided=decided, issued=issued, dead=True)
        self.journal.append("dead", (actor, facts))
        how = describe_status(status)
        evidence = self.rows.dead(actor, status)
        self.journal.append("evidence", (actor, evidence))
        self.rendezvous.give_up()
        self._say(f"rank {actor} died ({how})")
        # Told before the walker knows: it may propose at once, and a proposal names its evidence.
        self._broadcast(
            Trigger(FaultEvent.GPU_FAIL_STOP, actor, [evidence], f"rank {actor} died ({how})")
        )
        self.walker.on_death(actor, facts)

    def _certify_joined(self, actor: Actor) -> None:
        """A newcomer was let in and had ended just before."""
        evidence = self.rows.dead(actor, None)
        self.journal.append("evidence", (actor, evidence))
        reason = f"rank {actor} died as it joined"
        self._broadcast(Trigger(FaultEvent.GPU_FAIL_STOP, actor, [evidence], reason))

    def _remember_deaths(self) -> None:
        """After a restart: deaths that were certified and perhaps never judged, or not yet certified."""
        if not self.walker.log:
            return
        memory = self.journal.memory
        for actor, facts in memory.dead:
            if actor in self.walker.view.members:
                evidence = memory.evidence.get(actor) or self.rows.dead(actor, None)
                reason = f"rank {actor} {'stopped' if facts.stopped else 'died'}"
                self.judge.add(Trigger(FaultEvent.GPU_FAIL_STOP, actor, [evidence], reason))
            self.walker.on_death(actor, facts)
        certified = {actor for actor, _ in memory.dead}
        for actor, status in memory.exited:
            if actor not in certified and actor in self.walker.view.members:
                self._certify(actor, status)

    # ---- agents ----------------------------------------------------------------------------------

    def _on_agent_message(self, index: int, body: Message) -> None:
        self.hosts.heard(index, asyncio.get_running_loop().time())
        match body:
            case Beat():
                pass
            case HostLost(index=lost):
                self.hosts.told_lost(lost)
            case Attached(actors=actors):
                self.attached.update(actors)
                self._try_first_view()
            case Trigger():
                self.judge.add(body)
            case Leave(actor=actor):
                self.judge.leaving.add(actor)
            case Round():
                self.reconciler.on_round(body)
            case Reconciled():
                self.reconciler.on_reconciled(body)
            case DebtNote():
                self._on_debt(body)
            case Serve() | Level() | Ended():
                self.newcomers.on_message(body)
            case Waits():
                if index in self.peer_actors or index == self.index:
                    agent = self.peer_actors.get(index, self.actor)
                    self.watch.on_waits(agent, body, asyncio.get_running_loop().time())
            case StopJob():
                if not self.walker.log:
                    self._stop()
            case Stuck(actor=actor, epoch=epoch, why=why):
                if epoch == self.walker.epoch and not self.walker.walking:
                    self.judge.add(Trigger(None, None, [], f"rank {actor} is stuck: {why}"))
            case SettleOrder(actor=actor, settle=settle):
                self._tell(actor, settle)
            case Put(epoch=epoch, key=key, value=value):
                self.rendezvous.put(epoch, key, value)
            case _ if isinstance(body, _WALK):
                self.walker.on_message(index, body)
            case _:
                self._say(f"agent {index} sent a {type(body).__name__}")

    def _on_debt(self, note: DebtNote) -> None:
        for debt in note.opened:
            self.journal.append("debt_opened", debt)
        for debt_id in note.closed:
            self.journal.append("debt_closed", debt_id)
        self.reconciler.on_debt(note)

    # ---- deciding --------------------------------------------------------------------------------

    def _leader(self) -> bool:
        """The lowest reachable agent drives the walk."""
        now = asyncio.get_running_loop().time()
        return not any(
            self.peers[i].up and not self.hosts.is_silent(i, now) for i in range(self.index)
        )

    def _tick(self) -> None:
        """Look at what wants doing now, and again when time may have changed it."""
        loop = asyncio.get_running_loop()
        now = loop.time()
        if self._next_tick is not None:
            self._next_tick.cancel()
        if self.walker.log and self.walker.view.members and not self.stopping:
            self._watch_agents(now)
            if self.peers and not any(peer.up for peer in self.peers.values()):
                self._read_history()
            self._perform()
            if self._leader() or self._leader_sleeps(now):
                self._lead(now)
            if self.patience.is_due(self.walker.epoch, self.walker.walking, now):
                self._tell_wait()
        self._perform()
        self._try_finish()
        self._next_tick = loop.call_later(TICK_S if self._busy() else IDLE_TICK_S, self._tick)

    def _busy(self) -> bool:
        """Something waits for time to go by: a walk, a fault event, a leaving, a climb."""
        if not self.walker.log:
            return False
        return bool(
            self.walker.walking
            or self.judge.triggers
            or self.judge.leaving
            or self.walker.view.regime is not Regime.STRONG
        )

    def _leader_sleeps(self, now: float) -> bool:
        """A walk is under way here, and whoever should lead it does not (it may know of none)."""
        if not self.walker.walking:
            self._walking_since = now
            return False
        return now - self._walking_since > TAKEOVER_S * (1 + self.index)

    def _watch_agents(self, now: float) -> None:
        gone = frozenset(
            index
            for index, peer in self.peers.items()
            if peer.ever_connected and self.hosts.is_gone(index, self._members_on(index), now)
        )
        for index in gone - self._suspected:
            self._suspect_host(index, now)
        self._suspected = gone
        self.walker.suspect(gone)

    def _members_on(self, index: int) -> list[Actor]:
        members = self.walker.view.members
        return [m for m in members if self.config.host_of(m.rank) == index]

    def _suspect_host(self, index: int, now: float) -> None:
        members = self._members_on(index)
        away_s = self.hosts.away_s(index, now)
        if lost := self.hosts.is_lost(index, members):
            for peer in self.peers.values():
                peer.send(pack_frame(HostLost(index)))
        for actor in members:
            why = "is lost" if lost else f"has been out of reach for {away_s:.1f} s"
            evidence = self.rows.unreachable(actor, away_s, 0.0 if lost else SUSPECT_S)
            reason = f"rank {actor}'s host {why}"
            self.judge.add(Trigger(FaultEvent.GPU_FAIL_STOP, actor, [evidence], reason))
        if members:
            names = ", ".join(str(m) for m in members)
            how = (
                "its agent and all its ranks have ended"
                if lost
                else f"nothing was heard of it for {away_s:.1f} s"
            )
            self._say(f"host {index} (ranks {names}) is suspected: {how}")

    def _tell_wait(self) -> None:
        """The walk stands still: say why, on stderr and in the trace."""
        walker, waiting = self.walker, self.walker.waiting
        fault = next((t.fault for t in self.judge.triggers if t.fault is not None), None)
        said: list[tuple[str, FaultEvent | None]] = []
        if waiting is not None:
            others = [i for i in waiting.agents if i != self.index]
            if others:
                said.append((not_answered(waiting, others), fault))
            elif not waiting.agents and 2 * len(waiting.heard) <= waiting.num_members:
                away = sorted(self._suspected)
                said.append((no_majority(waiting, away), FaultEvent.NO_MAJORITY))
        for actor in walker.not_halted:
            progress = read_progress(self.config.progress_path(actor))
            phase = progress.phase if progress else "starting"
            since = (time.monotonic_ns() - progress.mono_ns) / 1e9 if progress else 0.0
            said.append((not_halted(walker.epoch, str(actor), phase, since), fault))
        for text, about in said:
            self._say(text)
            regime = walker.view.regime
            evidence = [e for t in self.judge.triggers for e in t.evidence]
            self.rows.decision(Trigger(about, None, evidence, text), regime, regime, False, text)

    def _lead(self, now: float) -> None:
        walker, judge = self.walker, self.judge
        self.newcomers.look(now)
        if walker.coordinating:
            if judge.deaths and walker.graceful and not walker.proposing:
                walker.coordinate(graceful=False)
                self._last_said = now
            elif now - self._last_said > RETRY_S:
                walker.retry()
                self._last_said = now
            return
        stalled = walker.walking and now - self._last_said > RETRY_S
        if stalled or (not walker.walking and self._wants_walk(now)):
            walker.coordinate(graceful=not judge.deaths)
            self._last_said = now

    def _wants_walk(self, now: float) -> bool:
        if self.config.mode == "observe":
            self.judge.observe()
            return self.judge.wants_last_view()
        wanted, settle = self.judge.wants_walk(now)
        wanted = wanted or self.newcomers.wants_walk()
        if settle is not None:
            opener = min(self.walker.view.members)
            self._send(self.config.host_of(opener.rank), SettleOrder(opener, settle))
        return wanted

    def _plan(self, current: View, facts: dict[Actor, Facts]) -> Plan | Drains | Awaits:
        return plan_next(
            current,
            facts,
            self.judge.triggers,
            self.reconciler.relaxed(),
            self.judge.policy,
            self.actor,
            self.newcomers.ready(),
        )

    # ---- effects ---------------------------------------------------------------------------------

    def _perform(self) -> None:
        """Do what the walker asks, in its order, until it asks for nothing more."""
        while effects := self.walker.take():
            for effect in effects:
                self._do(effect)

    def _do(self, effect: Effect) -> None:
        match effect:
            case Persist(what=what, value=value):
                self.journal.append(what, value)
            case Send(to=to, message=message):
                self._send(to, message)
            case HaltLocal(graceful=graceful, ranks=ranks, ask=ask):
                self.rendezvous.give_up()
                for actor in ranks:
                    self._tell(actor, Halt(self.walker.epoch + 1, graceful, ask))
            case DrainLocal(step=step, ranks=ranks, ask=ask):
                for actor in ranks:
                    self._tell(actor, Drain(step, ask))
            case AskLocal(view=view, ballot=ballot, ranks=ranks):
                for actor in ranks:
                    self._tell(actor, Proposed(view, ballot))
            case ProposedNow(view=view, plan=plan):
                self._on_proposed(view, plan)
            case Installed(view=view):
                self._on_installed(view)

    def _on_proposed(self, view: View, plan: Plan | None) -> None:
        if plan is not None and plan.trigger is not None and plan.decision is not None:
            to, changed, reason = plan.decision
            self.rows.decision(plan.trigger, self.walker.view.regime, to, changed, reason)
        self.rows.transition("proposed", view)

    def _on_installed(self, view: View) -> None:
        now = asyncio.get_running_loop().time()
        self.watch.install(view, now)
        self.judge.install(view, self.walker.log, now)
        self.shipper.start()
        self.rendezvous.install(view.epoch)
        self.recorder.set_view(view.epoch, view.regime)
        if view.proposer == self.actor:
            if view.epoch > 0:
                self.rows.transition("committed", view)
                self._announce(view)
            if view.joined or view.departed:
                self.rows.membership(view)
        for peer in self.peers.values():
            peer.set_hello(self._hello())
        for actor in self._local({*view.members, *view.departed}):
            first = view.epoch == 0
            told = Welcome(view, self.actor, self.config.mode) if first else Commit(view)
            self._tell(actor, told)
        self.newcomers.installed(view)
        for actor in self._local(set(view.joined)):
            if actor in self.walker.dead:
                self._certify_joined(actor)
        if not view.members:
            self._leave_history()
        if not view.members and view.member_reason == "finished":
            lowest = min(view.departed)
            if self.config.host_of(lowest.rank) == self.index:
                write_trace_end(self.config, time.time_ns())
                self.shipper.run_ended()

    def _leave_history(self) -> None:
        """The job is over, and soon nobody is here who could tell an agent that was away."""
        path = self.config.over_path()
        draft = path.with_suffix(f".{self.index}")
        draft.write_bytes(pack_frame(History(self.walker.log)))
        draft.replace(path)

    def _read_history(self) -> None:
        """No other agent can be reached: perhaps they have ended, because the job is over."""
        with contextlib.suppress(OSError):
            body = unpack_frame(self.config.over_path().read_bytes()[LENGTH.size :]).body
            self.walker.on_message(self.index, body)

    def _announce(self, view: View) -> None:
        members = ", ".join(str(m) for m in view.members)
        if not view.members:
            self._say(f"the job is over in {view.regime}: {view.reason}")
        elif view.regime is view.from_regime:
            self._say(f"epoch {view.epoch}: {view.regime}, members {members} ({view.reason})")
        else:
            walk = f"{view.from_regime} -> {view.regime}"
            self._say(f"epoch {view.epoch}: {walk}, members {members} ({view.reason})")

    # ---- the end ---------------------------------------------------------------------------------

    def _try_finish(self) -> None:
        if self.walker.log and not self.walker.view.members and not self.stopping:
            self._end_fenced(asyncio.get_running_loop().time())
        if any(p.status is None for p in self.ranks.values()):
            return
        if self.stopping or not self.walker.log:
            self._finished.set()
            return
        lost = self.config.mode == "observe" and not self.judge.alive()
        if lost or not self.walker.view.members:
            self._finished.set()

    def _local(self, actors: set[Actor]) -> list[Actor]:
        return sorted(a for a in actors if self.config.host_of(a.rank) == self.index)

    def _say(self, text: str) -> None:
        sys.stderr.write(f"cascade agent {self.index}: {text}\n")
        sys.stderr.flush()


def _end_at_once(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """A fault of ours (a full disk under the journal, a bug): half an agent would hold up the job.

    The launcher starts it again from its journal.
    """
    loop.default_exception_handler(context)
    sys.stderr.flush()
    os._exit(70)
