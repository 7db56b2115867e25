"""The proposer's part of the walk: it drives a ballot through both phases to the commit."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import NamedTuple

from cascade_runtime.agent.plan import Awaits, Drains, Plan
from cascade_runtime.agent.protocol import (
    NO_BALLOT,
    Accepted,
    Answer,
    Ballot,
    DrainRanks,
    Facts,
    History,
    Message,
    Propose,
    Query,
    Rejected,
    View,
)
from cascade_runtime.agent.walk_effects import ProposedNow
from cascade_runtime.agent.walk_state import WalkState
from cascade_runtime.vocabulary.identity import Actor


class Waiting(NamedTuple):
    """What a ballot waits for."""

    epoch: int
    num_members: int
    heard: set[Actor]
    """Members that were heard of (dead ones too, when certified) in this phase."""
    agents: list[int]
    """Voters that have not said anything in this phase."""


Planner = Callable[[View, dict[Actor, Facts]], Plan | Drains | Awaits]


class Proposer(WalkState):
    """Begins ballots, gathers answers and acknowledgements, commits."""

    def __init__(
        self, index: int, num_agents: int, host_of: Callable[[Actor], int], planner: Planner
    ) -> None:
        super().__init__(index, num_agents, host_of)
        self._planner = planner
        self._ballot: Ballot | None = None
        self._graceful = True
        self._answers: dict[int, Answer] = {}
        self._proposal: View | None = None
        self._accepts: dict[int, set[Actor]] = {}
        self._suspects: frozenset[int] = frozenset()
        self._drained = False
        self._awaits: Awaits | None = None

    # ---- reading ---------------------------------------------------------------------------------

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

    # ---- starting --------------------------------------------------------------------------------

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

    # ---- phase 1 ---------------------------------------------------------------------------------

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

    # ---- phase 2 ---------------------------------------------------------------------------------

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

    def _end_ballot(self) -> None:
        """Somebody else drives now, or the view is committed."""
        self._ballot = None
        self._proposal = None

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

    def _broadcast(self, message: Message) -> None:
        # Itself first: its own promise is in the journal before anybody else hears the ballot.
        self._send(self.index, message)
        for index in self._voters():
            if index != self.index:
                self._send(index, message)
