"""One simulated host agent: the parts of the agent that the walk depends on, and its journal."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import msgspec

from cascade_runtime.agent import journal
from cascade_runtime.agent.joins import Joins
from cascade_runtime.agent.journal import Memory
from cascade_runtime.agent.plan import Awaits, Drains, Plan, judged, plan_next
from cascade_runtime.agent.protocol import (
    Acked,
    AgentHello,
    Ballot,
    Commit,
    DebtInfo,
    DebtNote,
    Drain,
    Ended,
    Facts,
    Halt,
    Halted,
    Hello,
    Lag,
    Leave,
    Level,
    Message,
    Proposed,
    Trigger,
    View,
    Welcome,
)
from cascade_runtime.agent.reconcile import Reconciler
from cascade_runtime.agent.walk import Walker
from cascade_runtime.agent.walk_effects import (
    AskLocal,
    DrainLocal,
    Effect,
    HaltLocal,
    Installed,
    Persist,
    Send,
)
from cascade_runtime.vocabulary.fault import FaultEvent
from cascade_runtime.vocabulary.identity import Actor, EventRef
from cascade_runtime.vocabulary.policy import CohortRules, load_policy
from tests.agent.sim_newcomer import Newcomer
from tests.agent.sim_rank import Rank

if TYPE_CHECKING:
    from tests.agent.simulation import Cluster

POLICY = load_policy()
POLICY.cohorts = CohortRules(split=True)
WHOLE = load_policy()
WHOLE.cohorts = CohortRules(split=False)
PATIENCE = 4
"""A walk that stands still for so many ticks is taken over by an agent that does not lead."""


AWAITED = 2
"""So many ticks everybody stands halted for a newcomer that is not level."""


class Disk:
    """A journal that outlives its agent; records are encoded, as on a real disk."""

    def __init__(self) -> None:
        self.records: list[bytes] = []

    def append(self, what: str, value: object) -> None:
        self.records.append(msgspec.msgpack.encode((what, value)))

    def memory(self) -> Memory:
        memory = Memory()
        for record in self.records:
            journal._apply(memory, record)
        return memory


class Agent:
    """One host agent: the parts of the agent that the walk depends on."""

    def __init__(self, cluster: Cluster, index: int) -> None:
        self.cluster, self.index, self.disk = cluster, index, cluster.disks[index]
        memory = self.disk.memory()
        self.disk.append("started", None)
        self.actor = Actor(cluster.num_ranks + index, memory.num_starts)
        self.walker = Walker(index, cluster.num_agents, cluster.host_of, self._plan)
        self.walker.restore(
            memory.views, memory.promised, memory.accepted, memory.num_starts, memory.walking
        )
        self.reconciler = Reconciler(memory.debts.values(), memory.closed_debts)
        self.triggers: list[Trigger] = []
        self.joins = Joins()
        self._awaited = 0
        self.leaving: set[Actor] = set()
        self.known: set[int] = set()
        """Agents whose hello arrived: the others cannot be sent to."""
        self.suspects: frozenset[int] = frozenset()
        self.suspected = self.suspects
        """Those that the walker was told of at the last tick."""
        self._began: dict[Ballot, int] = {}
        self.frozen = False
        self._num_rows = 0
        self._still = 0
        self._stood: tuple[int, Ballot] | None = None
        for view in self.walker.log:
            self.reconciler.install(view)
        for actor, facts in memory.dead:
            if self.walker.log:
                self.walker.on_death(actor, facts)
                if actor in self.walker.view.members:
                    self._trigger(FaultEvent.GPU_FAIL_STOP, actor, memory.evidence.get(actor))

    @property
    def up(self) -> bool:
        return self.cluster.agents[self.index] is self

    def local(self) -> Iterable[Rank]:
        host_of = self.cluster.host_of
        return (r for r in self.cluster.ranks.values() if host_of(r.actor) == self.index)

    # ---- deciding, as agent/leading.py ----------------------------------------------------------

    def leads(self) -> bool:
        return all(not self.cluster.linked(self.index, i) for i in range(self.index))

    def tick(self) -> None:
        """RETRY_S has gone by."""
        walker = self.walker
        if not walker.log or not walker.view.members:
            return
        self.suspected = self.suspects
        walker.suspect(self.suspected)
        self.perform()  # a view may be committed by now, and judge triggers
        if self.cluster.is_even and self.leads() and not walker.walking:
            self.fire_pace()
        stands = (walker.epoch, walker.promised)
        self._still = self._still + 1 if stands == self._stood else 0
        self._stood = stands
        self._awaited = self._awaited + 1 if walker.awaits is not None else 0
        if walker.awaits is not None and self._awaited > AWAITED:
            self.joins.give_up(walker.awaits.newcomers, walker.epoch)
            walker.replan()
        if self.leads() or (walker.walking and self._still > PATIENCE * (1 + self.index)):
            self._still = 0
            deaths = any(t.fault is FaultEvent.GPU_FAIL_STOP for t in self.triggers)
            if walker.coordinating:
                if deaths and walker.graceful and not walker.proposing:
                    walker.coordinate(graceful=False)
                else:
                    walker.retry()
            else:
                moves = any(t.fault is not FaultEvent.GPU_FAIL_STOP for t in self.triggers)
                members = set(walker.view.members)
                leaves = bool(self.leaving & members)
                if leaves and self.leaving >= members and self.reconciler.open:
                    self.settle()  # as the Judge orders it before the last view
                joins = not leaves and bool(self._ready())
                if deaths or leaves or moves or joins or walker.walking:
                    walker.coordinate(graceful=not deaths)
        self.perform()

    def fire(self, fault: FaultEvent | None, subject: Actor | None = None) -> None:
        """A signal was judged to be a fault event here; None: ``subject`` keeps the pace again."""
        self._trigger(fault, subject, certified=False)

    def fire_pace(self) -> None:
        """All that step by themselves keep the pace again."""
        view = self.walker.view
        if len(view.cohorts) > 1 and not any(t.fault is None for t in self.triggers):
            for cohort in view.cohorts:
                if len(cohort) == 1:
                    self.fire(None, cohort[0])

    def _trigger(
        self,
        fault: FaultEvent | None,
        subject: Actor | None,
        told: EventRef | None = None,
        certified: bool = True,
    ) -> None:
        self._num_rows += 1
        ref = EventRef(self.actor.rank, self.actor.incarnation, self._num_rows)
        if certified and subject is not None and told is None:
            self.disk.append("evidence", (subject, ref))
        evidence = [ref] if told is None else [told, ref]
        certified = certified and subject is not None
        self._broadcast(Trigger(fault, subject, evidence, f"{fault} of {subject}", certified))

    def certify(self, actor: Actor) -> None:
        """The kernel told that a local rank died."""
        rank = self.cluster.ranks[actor]
        decided = max(rank.decided, rank.claimed)
        facts = Facts(decided=decided, issued=rank.issued, dead=True, stopped=rank.alive)
        rank.certified = facts
        self.disk.append("dead", (actor, facts))
        if isinstance(rank, Newcomer) and not rank.is_member:
            self.cluster.laws.certified.setdefault(actor, self.cluster.laws.now)
            if actor not in self.walker.view.members:
                self._broadcast(Ended(actor))
                self.walker.on_death(actor, facts)
                self.perform()
                return
        self.cluster.laws.certified.setdefault(actor, self.cluster.laws.now)
        self._trigger(FaultEvent.GPU_FAIL_STOP, actor)  # first: on_death may propose at once
        self.walker.on_death(actor, facts)
        self.perform()

    def uncertified(self) -> list[Actor]:
        if not self.walker.log:
            return []
        members = self.walker.view.members
        return [
            r.actor
            for r in self.local()
            if not r.alive
            and r.actor not in self.walker.dead
            and (r.actor in members or (isinstance(r, Newcomer) and not r.is_member))
        ]

    def fence(self, actor: Actor) -> None:
        """A local rank has been stopped for too long; what it may have done is read after this."""
        self.cluster.ranks[actor].fenced = True

    def to_fence(self) -> list[Actor]:
        return [r.actor for r in self._stopped() if not r.fenced]

    def fenced_unread(self) -> list[Actor]:
        return [r.actor for r in self._stopped(running_too=True) if r.fenced]

    def _stopped(self, running_too: bool = False) -> list[Rank]:
        if not self.walker.log:
            return []
        members = self.walker.view.members
        return [
            r
            for r in self.local()
            if r.alive
            and (r.frozen or running_too)
            and (r.actor in members or (isinstance(r, Newcomer) and not r.is_member))
            and r.actor not in self.walker.dead
        ]

    def _ready(self) -> list[Level]:
        lost = {t.subject for t in self.triggers if t.fault is FaultEvent.GPU_FAIL_STOP}
        return self.joins.ready(self.walker.view, {a for a in lost if a is not None})

    def _plan(self, current: View, facts: dict[Actor, Facts]) -> Plan | Drains | Awaits:
        relaxed = self.reconciler.relaxed()
        policy = self.cluster.policy
        plan = plan_next(current, facts, self.triggers, relaxed, policy, self.actor, self._ready())
        began = self._began.get(self.walker.promised, 0)
        self.cluster.laws.planned(current, facts, plan, began)
        return plan

    # ---- messages ------------------------------------------------------------------------------

    def hear(self, sender: int, message: Message) -> None:
        match message:
            case AgentHello(index=index, epoch=epoch):
                self.known.add(index)
                if self.walker.log:
                    self.walker.on_message(index, Lag(epoch))
                for rank in self.local():
                    if rank.actor in self.leaving:
                        self.cluster.send(self.index, index, Leave(rank.actor, 0))
                for trigger in self.triggers:
                    self.cluster.send(self.index, index, trigger)
                for level in self.joins.told():
                    if self.cluster.host_of(level.actor) == self.index:
                        self.cluster.send(self.index, index, level)
            case Trigger():
                if message not in self.triggers and not judged(message, self.walker.log):
                    self.triggers.append(message)
            case Leave(actor=actor):
                self.leaving.add(actor)
            case DebtNote():
                self._on_debt(message)
            case Level():
                self.joins.on_level(message)
                self.walker.replan()
            case Ended(actor=actor):
                self.joins.ended(actor)
                self.walker.replan()
            case _:
                self.walker.on_message(sender, message)
        self.perform()

    def hear_rank(self, rank: Rank) -> None:
        message, ask = rank.outbox.popleft()
        if rank.actor in self.walker.dead and rank.alive:
            return  # whatever a fenced rank says belongs to an epoch that has moved on
        match message:
            case Hello(actor=actor, epoch=epoch):
                self._on_hello(rank, actor, epoch)
            case Halted(facts=facts):
                self.walker.on_facts(rank.actor, facts, ask)
            case Acked(epoch=epoch, ballot=ballot):
                self.walker.on_ack(rank.actor, epoch, ballot)
            case _:
                self._broadcast(message)
        self.perform()

    def _on_hello(self, rank: Rank, actor: Actor, epoch: int) -> None:
        walker = self.walker
        if not walker.log:
            return
        if epoch < 0:
            rank.hear(Welcome(walker.view, self.actor, "enforce"))
            return
        for view in walker.log[epoch + 1 :]:
            rank.hear(Commit(view))
        walker.on_hello(actor)

    def _broadcast(self, message: Message) -> None:
        for index in range(self.cluster.num_agents):
            if index != self.index:
                self.cluster.send(self.index, index, message)
        self.hear(self.index, message)

    def _on_debt(self, note: DebtNote) -> None:
        for debt in note.opened:
            self.disk.append("debt_opened", debt)
        for debt_id in note.closed:
            self.disk.append("debt_closed", debt_id)
        self.reconciler.on_debt(note)

    # ---- effects -------------------------------------------------------------------------------

    def perform(self) -> None:
        while self.up and (effects := self.walker.take()):
            for effect in effects:
                if self.up:
                    self._do(effect)

    def _do(self, effect: Effect) -> None:
        ranks = self.cluster.ranks
        match effect:
            case Persist(what=what, value=value):
                self.disk.append(what, value)
                if isinstance(value, Ballot) and value.agent == self.index:
                    assert value not in self.cluster.ballots, "a ballot was used twice"
                    self.cluster.ballots.add(value)
                    self._began[value] = self.cluster.laws.now
            case Send(to=to, message=message):
                assert to != self.index
                self.cluster.send(self.index, to, message)
            case HaltLocal(graceful=graceful, ranks=actors, ask=ask):
                for actor in actors:
                    ranks[actor].hear(Halt(self.walker.epoch + 1, graceful), ask)
            case DrainLocal(step=step, ranks=actors, ask=ask):
                for actor in actors:
                    ranks[actor].hear(Drain(step), ask)
            case AskLocal(view=view, ballot=ballot, ranks=actors):
                for actor in actors:
                    ranks[actor].hear(Proposed(view, ballot))
            case Installed(view=view):
                self._on_installed(view)

    def _on_installed(self, view: View) -> None:
        cluster = self.cluster
        suspects = [a for a in cluster.ranks if cluster.host_of(a) in self.suspected]
        cluster.laws.installed(view, cluster.installed[self.index], frozenset(suspects))
        cluster.installed[self.index] = view.epoch
        self.reconciler.install(view)
        self.joins.install(view)
        self.triggers = [t for t in self.triggers if not self._judged(t, view)]
        first = view.epoch == 0
        told: Message = Welcome(view, self.actor, "enforce") if first else Commit(view)
        for rank in self.local():
            newcomer = isinstance(rank, Newcomer) and not rank.is_member
            if rank.actor in {*view.members, *view.departed} or newcomer:
                rank.hear(told)
            if rank.actor in view.joined and rank.actor in self.walker.dead:
                cluster.laws.certified.setdefault(rank.actor, cluster.laws.now)
                self._trigger(FaultEvent.GPU_FAIL_STOP, rank.actor)
        if not first and view.regime < view.from_regime and view.members:
            self._open_debt(view)

    def _open_debt(self, view: View) -> None:
        """The lowest member's note, which its agent passes on."""
        opener = min(view.members)
        if self.cluster.host_of(opener) == self.index:
            debt = DebtInfo(
                debt_id=f"{view.epoch}",
                relaxed=view.from_regime,
                new_epoch=view.epoch,
                object=None,
            )
            self._broadcast(DebtNote(opener, opened=[debt]))

    def _judged(self, trigger: Trigger, view: View) -> bool:
        return judged(trigger, [view]) or trigger.fault is not FaultEvent.GPU_FAIL_STOP

    def settle(self) -> None:
        """All open debts are settled."""
        opener = min(self.walker.view.members)
        self._broadcast(DebtNote(opener, closed=list(self.reconciler.open)))
