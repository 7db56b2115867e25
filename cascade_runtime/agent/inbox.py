"""Messages in: what each kind from a rank or from an agent is for."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from cascade_runtime.agent.host_state import HostState
from cascade_runtime.agent.newcomers import Newcomers
from cascade_runtime.agent.protocol import (
    Accepted,
    Acked,
    Answer,
    Attached,
    Beat,
    DebtNote,
    DrainRanks,
    Ended,
    Get,
    Halted,
    History,
    HostLost,
    Joining,
    Lag,
    Leave,
    Level,
    Message,
    Propose,
    Put,
    Query,
    Reconciled,
    Rejected,
    Round,
    Serve,
    SettleOrder,
    StateAsk,
    StateStand,
    StateUpdate,
    StopJob,
    Stuck,
    Trigger,
    View,
    Waits,
    pack_frame,
)
from cascade_runtime.agent.states import States
from cascade_runtime.agent.trace_file import write_trace_start
from cascade_runtime.vocabulary.identity import Actor
from cascade_runtime.vocabulary.regime import Regime

_WALK = (Query, Answer, Rejected, DrainRanks, Propose, Accepted, History, Lag)


class Inbox:
    """Hands every message to the part that it is for."""

    def __init__(self, host: HostState, newcomers: Newcomers, stop_job: Callable[[], None]) -> None:
        self._host = host
        self._newcomers = newcomers
        self._stop_job = stop_job
        self.states = States(host)

    def on_rank_message(self, actor: Actor, body: Message) -> None:
        """A rank of this host said something."""
        match body:
            case Halted(facts=facts, ask=ask):
                self._host.walker.on_facts(actor, facts, ask)
            case Acked(epoch=epoch, ballot=ballot):
                self._host.walker.on_ack(actor, epoch, ballot)
            case Joining():
                self._newcomers.on_joining(body)
            case Round() | Reconciled() | DebtNote() | Leave() | Stuck() | Level():
                self._host.post.broadcast(body)
            case Put(epoch=epoch, key=key, value=value):
                for peer in self._host.post.peers.values():
                    peer.send(pack_frame(body))
                self._host.rendezvous.put(epoch, key, value)
            case StateUpdate() | StateAsk() | StateStand():
                self.states.on_rank(actor, body)
            case Get(epoch=epoch, key=key):
                current, walking = epoch == self._host.walker.epoch, self._host.walker.walking
                self._host.rendezvous.get(actor, epoch, key, current=current, walking=walking)
            case _:
                self._host.say(
                    f"rank {actor} sent a {type(body).__name__}, which ranks do not send"
                )

    def on_agent_message(self, index: int, body: Message) -> None:
        """An agent (this one too) said something."""
        self._host.hosts.heard(index, asyncio.get_running_loop().time())
        match body:
            case Beat():
                pass
            case HostLost(index=lost):
                self._host.hosts.told_lost(lost)
            case Attached(actors=actors):
                self._host.attached.update(actors)
                self.try_first_view()
            case Trigger():
                self._host.judge.add(body)
            case Leave(actor=actor):
                self._host.judge.leaving.add(actor)
            case Round():
                self._host.reconciler.on_round(body)
            case Reconciled():
                self._host.reconciler.on_reconciled(body)
            case DebtNote():
                self._on_debt(body)
            case Serve() | Level() | Ended():
                self._newcomers.on_message(body)
            case Waits():
                if index in self._host.post.peer_actors or index == self._host.index:
                    agent = self._host.post.peer_actors.get(index, self._host.actor)
                    self._host.watch.on_waits(agent, body, asyncio.get_running_loop().time())
            case StopJob():
                if not self._host.walker.log:
                    self._stop_job()
            case Stuck(actor=actor, epoch=epoch, why=why):
                if epoch == self._host.walker.epoch and not self._host.walker.walking:
                    self._host.judge.add(Trigger(None, None, [], f"rank {actor} is stuck: {why}"))
            case StateUpdate() | StateAsk() | StateStand():
                self.states.on_agent(index, body)
            case SettleOrder(actor=actor, settle=settle):
                self._host.post.tell(actor, settle)
            case Put(epoch=epoch, key=key, value=value):
                self._host.rendezvous.put(epoch, key, value)
            case _ if isinstance(body, _WALK):
                self._host.walker.on_message(index, body)
            case _:
                self._host.say(f"agent {index} sent a {type(body).__name__}")

    def _on_debt(self, note: DebtNote) -> None:
        for debt in note.opened:
            self._host.journal.append("debt_opened", debt)
        for debt_id in note.closed:
            self._host.journal.append("debt_closed", debt_id)
        self._host.reconciler.on_debt(note)

    def try_first_view(self) -> None:
        """The job begins once all its ranks have attached."""
        config = self._host.config
        everybody = [Actor(r) for r in range(config.num_ranks)]
        if self._host.walker.log or not self._host.attached.issuperset(everybody):
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
        if self._host.index == 0:
            write_trace_start(config, self._host.judge.policy, with_gpus=self._host.gpus.measured)
        self._host.walker.install_first(view)
        self._host.perform()
        if self._host.index == 0:
            self._host.say(f"{config.num_ranks} ranks attached: epoch 0, STRONG, {config.mode}")
