"""The walk: ballots, commits and catch-up among agents, as a state machine without I/O.

One instance of single-decree Paxos (Lamport, "Paxos made simple", 2001) an epoch, with two additions:
a ballot is answered only when every local member of the current view has halted (or is certified
dead), and a commit needs the acknowledgements of all members that are not suspect and of a majority
of the current view (a certified death counts as that member's). Inputs are method calls, outputs are
``Effect`` objects in ``take()``; the host loop performs them. Nothing here reads a clock.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple

from cascade_runtime.agent.plan import Awaits, Drains, Plan
from cascade_runtime.agent.protocol import (
    Accepted,
    Answer,
    Ballot,
    DrainRanks,
    Facts,
    History,
    Lag,
    Message,
    Propose,
    Query,
    Rejected,
    View,
)
from cascade_runtime.vocabulary.identity import Actor

NO_BALLOT = Ballot(0, -1)


class Send(NamedTuple):
    """Send ``message`` to agent ``to`` (never to itself)."""

    to: int
    message: Message


class HaltLocal(NamedTuple):
    """Halt these local members; tell their facts with ``on_facts``, and ``ask`` with them."""

    graceful: bool
    ranks: list[Actor]
    ask: int = 0


class DrainLocal(NamedTuple):
    """Let these local members finish ``step``, then they answer again."""

    step: int
    ranks: list[Actor]
    ask: int = 0


class AskLocal(NamedTuple):
    """Ask these local members to acknowledge; tell with ``on_ack``."""

    view: View
    ballot: Ballot
    ranks: list[Actor]


class Installed(NamedTuple):
    """A view was committed; local ranks must be told, in this order."""

    view: View


class ProposedNow(NamedTuple):
    """This agent proposes ``plan`` (None: it adopts a view that another had got accepted)."""

    view: View
    plan: Plan | None


class Persist(NamedTuple):
    """Write to the journal before any later effect is performed."""

    what: str
    value: object


class Waiting(NamedTuple):
    """What a ballot waits for."""

    epoch: int
    num_members: int
    heard: set[Actor]
    """Members that were heard of (dead ones too, when certified) in this phase."""
    agents: list[int]
    """Voters that have not said anything in this phase."""


Effect = Send | HaltLocal | DrainLocal | AskLocal | Installed | ProposedNow | Persist

Planner = Callable[[View, dict[Actor, Facts]], Plan | Drains | Awaits]


class Walker:
    """One agent's part in every walk of the job.

    Args:
        index: this agent's index, 0 ... num_agents - 1.
        num_agents: how many agents the job has.
        host_of: the index of the agent that hosts an actor.
        planner: what to propose, given the current view and everybody's facts.
    """

    def __init__(
        self, index: int, num_agents: int, host_of: Callable[[Actor], int], planner: Planner
    ) -> None:
        self.index = index
        self.num_agents = num_agents
        self.log: list[View] = []
        self.promised = NO_BALLOT
        self.accepted: tuple[Ballot, View] | None = None
        self.halted: dict[Actor, Facts] = {}
        """Facts of the local members that stand still."""
        self.dead: dict[Actor, Facts] = {}
        """Local members certified dead."""
        self._host_of = host_of
        self._planner = planner
        self._effects: list[Effect] = []
        self._query: Query | None = None
        self._query_from = -1
        self._acks: set[Actor] = set()
        self._asked = False
        # Every halt and drain has a number: an answer to one from before the last drain, or from
        # before this epoch, says where the rank was and not where it is.
        self._last_ask = 0
        self._first_ask = 0
        self._drain_asks: dict[Actor, int] = {}
        # As coordinator:
        self._ballot: Ballot | None = None
        self._graceful = True
        self._answers: dict[int, Answer] = {}
        self._proposal: View | None = None
        self._accepts: dict[int, set[Actor]] = {}
        self._suspects: frozenset[int] = frozenset()
        self._drained = False
        self._awaits: Awaits | None = None
        self._interrupted = False

    # ---- reading ---------------------------------------------------------------------------------

    @property
    def epoch(self) -> int:
        """Of the newest committed view; -1 before the first."""
        return len(self.log) - 1

    @property
    def view(self) -> View:
        """The newest committed view."""
        return self.log[-1]

    @property
    def walking(self) -> bool:
        """A ballot for the next epoch is under way here, or local members stand halted by one."""
        under_way = self._query or self._ballot or self.accepted or self.halted
        return bool(under_way or self._interrupted)

    @property
    def coordinating(self) -> bool:
        """This agent drives the current ballot."""
        return self._ballot is not None

    @property
    def graceful(self) -> bool:
        """The ballot that this agent drives was begun without a death."""
        return self._graceful

    @property
    def proposing(self) -> bool:
        """Phase 2 has begun: the proposal can no longer change."""
        return self._proposal is not None

    def take(self) -> list[Effect]:
        """The effects since the last call, in order."""
        effects, self._effects = self._effects, []
        return effects

    @property
    def waiting(self) -> Waiting | None:
        """What the ballot that this agent drives waits for; None when it drives none."""
        if self._ballot is None:
            return None
        told: Collection[int]
        if self._proposal is not None:
            told, heard = self._accepts, {a for ranks in self._accepts.values() for a in ranks}
        else:
            told, heard = self._answers, {a for w in self._answers.values() for a, _ in w.facts}
        agents = [i for i in self._voters() if i not in told]
        return Waiting(self.epoch, len(self.view.members), heard, agents)

    @property
    def awaits(self) -> Awaits | None:
        """The newcomers that the ballot driven by this agent waits for, with everybody halted."""
        return self._awaits if self._ballot is not None and self._proposal is None else None

    @property
    def not_halted(self) -> list[Actor]:
        """Local members that were asked to halt and have not answered."""
        if self._query is None:
            return []
        return [m for m in self.local_members() if m not in self.halted and m not in self.dead]

    def local_members(self) -> list[Actor]:
        """Members of the current view on this host."""
        return [m for m in self.view.members if self._host_of(m) == self.index]

    # ---- starting --------------------------------------------------------------------------------

    def restore(
        self,
        log: Sequence[View],
        promised: Ballot,
        accepted: tuple[Ballot, View] | None,
        num_starts: int = 0,
        walking: bool = False,
    ) -> None:
        """State from the journal, before anything else is called.

        ``walking``: the last life ended inside a walk, and its reason may have ended with it.
        """
        self._interrupted = walking
        self.log = list(log)
        self.promised = promised
        self._last_ask = self._first_ask = num_starts << 32  # above those of earlier lives
        if accepted is not None and accepted[1].epoch == len(self.log):
            self.accepted = accepted

    def install_first(self, view: View) -> None:
        """Epoch 0, the same on every agent by construction, needs no ballot."""
        if not self.log:
            self._install(view)

    def coordinate(self, graceful: bool) -> None:
        """Begin a ballot for the next epoch, above any seen (not after the last view: nobody votes)."""
        if not self.view.members:
            return
        highest = max(self.promised, self._ballot or NO_BALLOT)
        self._begin(Ballot(highest.number + 1, self.index), graceful)

    def _begin(self, ballot: Ballot, graceful: bool) -> None:
        self._ballot = ballot
        self._graceful = graceful
        self._answers.clear()
        self._accepts.clear()
        self._proposal = None
        self._drained = False
        self._awaits = None
        self._broadcast(Query(ballot, self.epoch + 1, graceful))

    def retry(self) -> None:
        """Say again what has not been answered (messages are idempotent)."""
        if self._ballot is None:
            return
        if self._proposal is not None:
            message: Message = Propose(self._ballot, self._proposal)
            waiting = [i for i in self._voters() if i not in self._accepts]
        else:
            message = Query(self._ballot, self.epoch + 1, self._graceful)
            waiting = [i for i in self._voters() if i not in self._answers]
        for index in waiting:
            self._send(index, message)

    def replan(self) -> None:
        """A newcomer told where it stands, or is not waited for any more."""
        if self._awaits is not None:
            self._try_propose()

    def suspect(self, agents: frozenset[int]) -> None:
        """Agents not to wait for; a majority of the current view is needed all the same."""
        self._suspects = agents
        self._try_propose()
        self._try_commit()

    # ---- local members ---------------------------------------------------------------------------

    def on_facts(self, actor: Actor, facts: Facts, ask: int | None = None) -> None:
        """A local member halted (or answers again); ``ask`` is that of the effect it answers."""
        if actor in self.dead:
            return
        if ask is not None and ask < max(self._first_ask, self._drain_asks.get(actor, 0)):
            return
        self.halted[actor] = facts
        self._try_answer()

    def on_hello(self, actor: Actor) -> None:
        """A local member is connected anew; what it was asked before may be lost."""
        if self.accepted is not None and self._query is None:
            self._effects.append(AskLocal(self.accepted[1], self.accepted[0], [actor]))
        elif self.walking and actor not in self.halted:
            self._halt(False, [actor])

    def on_death(self, actor: Actor, facts: Facts) -> None:
        """A local member is certified dead."""
        self.dead[actor] = facts
        self.halted.pop(actor, None)
        self._try_answer()
        self._try_accept()

    def on_ack(self, actor: Actor, epoch: int, ballot: Ballot) -> None:
        """A local member acknowledged the accepted proposal."""
        if self.accepted and self.accepted[0] == ballot and epoch == self.epoch + 1:
            self._acks.add(actor)
            self._try_accept()

    # ---- messages --------------------------------------------------------------------------------

    def on_message(self, sender: int, message: Message) -> None:
        """A message of the walk from another agent (or from this one)."""
        match message:
            case Query():
                self._on_query(sender, message)
            case Answer():
                self._on_answer(sender, message)
            case Rejected():
                self._on_rejected(message)
            case DrainRanks():
                self._on_drain(sender, message)
            case Propose():
                self._on_propose(sender, message)
            case Accepted():
                self._on_accepted(sender, message)
            case History():
                for view in message.views:
                    self._install(view)
                if message.views and message.views[-1].epoch > self.epoch:
                    self._send(sender, Lag(self.epoch))
            case Lag():
                self._teach(sender, message.epoch)
            case _:
                raise TypeError(f"not a message of the walk: {type(message).__name__}")

    def _on_query(self, sender: int, query: Query) -> None:
        if not self._current(sender, query.epoch):
            return
        if query.ballot < self.promised:
            self._send(sender, Rejected(query.ballot, query.epoch, self.promised))
            return
        fresh = query.ballot > self.promised
        if fresh:
            self._promise(query.ballot)
        self._query, self._query_from = query, sender
        missing = [m for m in self.local_members() if m not in self.halted and m not in self.dead]
        if missing:
            self._halt(query.graceful, missing)
        self._try_answer()

    def _halt(self, graceful: bool, ranks: list[Actor]) -> None:
        self._last_ask += 1
        self._effects.append(HaltLocal(graceful, ranks, self._last_ask))

    def _try_answer(self) -> None:
        if self._query is None:
            return
        members = self.local_members()
        facts = [(m, self.dead.get(m) or self.halted.get(m)) for m in members]
        known = [(m, f) for m, f in facts if f is not None]
        if len(known) == len(members):
            answer = Answer(self._query.ballot, self._query.epoch, self.accepted, known)
            self._send(self._query_from, answer)

    def _on_answer(self, sender: int, answer: Answer) -> None:
        if answer.ballot != self._ballot or self._proposal is not None:
            return
        if answer.epoch != self.epoch + 1:
            return
        self._answers[sender] = answer
        self._try_propose()

    def _on_rejected(self, message: Rejected) -> None:
        if message.ballot == self._ballot and message.epoch == self.epoch + 1:
            self._begin(Ballot(message.promised.number + 1, self.index), self._graceful)

    def _try_propose(self) -> None:
        if self._ballot is None or self._proposal is not None:
            return
        if any(i not in self._answers for i in self._voters()):
            return
        facts = {a: f for answer in self._answers.values() for a, f in answer.facts}
        if not self._majority(facts.keys()):
            return
        accepted = [a.accepted for a in self._answers.values() if a.accepted is not None]
        if accepted:
            # Some agent accepted a view before: it may be committed somewhere, so it is the one.
            view = max(accepted, key=lambda pair: pair[0])[1]
            self._propose(view, None)
            return
        if self._drained and any(m not in facts or facts[m].dead for m in self.view.members):
            # Members that were let go may have moved since they answered: ask all of them again.
            self._begin(Ballot(self._ballot.number + 1, self.index), graceful=False)
            return
        plan = self._planner(self.view, facts)
        self._awaits = plan if isinstance(plan, Awaits) else None
        match plan:
            case Drains():
                self._drain(plan)
            case Plan():
                self._propose(plan.view, plan)

    def _propose(self, view: View, plan: Plan | None) -> None:
        assert self._ballot is not None
        self._proposal = view
        self._accepts.clear()
        self._effects.append(ProposedNow(view, plan))
        self._broadcast(Propose(self._ballot, view))

    def _drain(self, drains: Drains) -> None:
        assert self._ballot is not None
        self._drained = True
        for index in sorted({self._host_of(r) for r in drains.ranks}):
            ranks = [r for r in drains.ranks if self._host_of(r) == index]
            self._answers.pop(index, None)
            self._send(index, DrainRanks(self._ballot, self.epoch + 1, drains.step, ranks))

    def _on_drain(self, sender: int, message: DrainRanks) -> None:
        if not self._current(sender, message.epoch) or message.ballot != self.promised:
            return
        ranks = [
            r for r in message.ranks if r in self.halted and self.halted[r].decided < message.step
        ]
        for rank in ranks:
            del self.halted[rank]
        if ranks:
            self._last_ask += 1
            self._drain_asks.update(dict.fromkeys(ranks, self._last_ask))
            self._effects.append(DrainLocal(message.step, ranks, self._last_ask))
        self._try_answer()

    def _on_propose(self, sender: int, message: Propose) -> None:
        if not self._current(sender, message.view.epoch):
            return
        if message.ballot < self.promised:
            # Whoever holds the higher ballot may be gone, so the sender must learn of it.
            self._send(sender, Rejected(message.ballot, message.view.epoch, self.promised))
            return
        again = self.accepted is not None and self.accepted[0] == message.ballot
        if not again:
            self._promise(message.ballot)
            self.accepted = (message.ballot, message.view)
            self._acks.clear()
            self._asked = False
            self._effects.append(Persist("accepted", self.accepted))
        self._query = None
        self._query_from = sender
        if not self._asked:
            self._asked = True
            ranks = [m for m in self._local_of(message.view) if m not in self.dead]
            if ranks:
                self._effects.append(AskLocal(message.view, message.ballot, ranks))
        self._try_accept()

    def _try_accept(self) -> None:
        if self.accepted is None or not self._asked:
            return
        ballot, view = self.accepted
        members = self._local_of(view)
        if all(m in self._acks or m in self.dead for m in members):
            self._send(ballot.agent, Accepted(ballot, view.epoch, members))

    def _on_accepted(self, sender: int, message: Accepted) -> None:
        if message.ballot != self._ballot or message.epoch != self.epoch + 1:
            return
        self._accepts[sender] = set(message.ranks)
        self._try_commit()

    def _try_commit(self) -> None:
        if self._proposal is None:
            return
        if any(i not in self._accepts for i in self._voters()):
            return
        acked = {a for ranks in self._accepts.values() for a in ranks}
        if not self._majority(acked):
            return
        view = self._proposal
        for index in range(self.num_agents):
            if index != self.index:
                self._send(index, History([view]))
        self._install(view)

    # ---- helpers ---------------------------------------------------------------------------------

    def _local_of(self, proposal: View) -> list[Actor]:
        """Who must acknowledge here: members of the current view, and who joins by this one."""
        joining = [m for m in proposal.joined if self._host_of(m) == self.index]
        return [*self.local_members(), *joining]

    def _voters(self) -> list[int]:
        """Agents that host a member of the current view, or one that joins, and are not suspect.

        Of a newcomer only the acknowledgement is waited for: the majority is the current view's.
        """
        joining = self._proposal.joined if self._proposal is not None else []
        hosts = {self._host_of(m) for m in [*self.view.members, *joining]}
        return sorted(hosts - self._suspects)

    def _majority(self, actors: Collection[Actor]) -> bool:
        members = self.view.members
        return 2 * sum(1 for m in members if m in actors) > len(members)

    def _current(self, sender: int, epoch: int) -> bool:
        """True when ``epoch`` is the next one here; else teach the sender, or ask to be taught."""
        if epoch <= self.epoch:
            self._teach(sender, epoch - 1)
            return False
        if epoch > self.epoch + 1:
            self._send(sender, Lag(self.epoch))
            return False
        return True

    def _teach(self, sender: int, epoch: int) -> None:
        if epoch < self.epoch:
            self._send(sender, History(self.log[epoch + 1 :]))

    def _promise(self, ballot: Ballot) -> None:
        if ballot > self.promised:
            self.promised = ballot
            self._effects.append(Persist("promised", ballot))
            if self._ballot is not None and ballot != self._ballot:
                self._ballot = None  # somebody else drives now
                self._proposal = None

    def _install(self, view: View) -> None:
        if view.epoch != len(self.log):
            return
        self.log.append(view)
        self.accepted = None
        self.halted.clear()
        self._acks.clear()
        self._asked = False
        self._first_ask = self._last_ask + 1
        self._drain_asks.clear()
        self._interrupted = False
        self._query = None
        self._ballot = None
        self._proposal = None
        self._answers.clear()
        self._accepts.clear()
        self._effects.append(Persist("committed", view))
        self._effects.append(Installed(view))

    def _broadcast(self, message: Message) -> None:
        # Itself first: its own promise is in the journal before anybody else hears the ballot.
        self._send(self.index, message)
        for index in self._voters():
            if index != self.index:
                self._send(index, message)

    def _send(self, to: int, message: Message) -> None:
        if to == self.index:
            self.on_message(to, message)
        else:
            self._effects.append(Send(to, message))
