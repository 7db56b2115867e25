"""The walk: ballots, commits and catch-up among agents, as a state machine without I/O.

One instance of single-decree Paxos (Lamport, "Paxos made simple", 2001) an epoch, with two additions:
a ballot is answered only when every local member of the current view has halted (or is certified
dead), and a commit needs the acknowledgements of all members that are not suspect and of a majority
of the current view (a certified death counts as that member's). Inputs are method calls, outputs are
``Effect`` objects in ``take()``; the host loop performs them. Nothing here reads a clock.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

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
from cascade_runtime.agent.walk_effects import (
    AskLocal,
    DrainLocal,
    HaltLocal,
    Installed,
    Persist,
)
from cascade_runtime.agent.walk_proposer import Planner, Proposer
from cascade_runtime.vocabulary.identity import Actor


class Walker(Proposer):
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
        super().__init__(index, num_agents, host_of, planner)
        self._query: Query | None = None
        self._query_from = -1
        self._acks: set[Actor] = set()
        self._asked = False
        # Every halt and drain has a number: an answer to one from before the last drain, or from
        # before this epoch, says where the rank was and not where it is.
        self._last_ask = 0
        self._first_ask = 0
        self._drain_asks: dict[Actor, int] = {}
        self._interrupted = False

    # ---- reading ---------------------------------------------------------------------------------

    @property
    def walking(self) -> bool:
        """A ballot for the next epoch is under way here, or local members stand halted by one."""
        under_way = self._query or self._ballot or self.accepted or self.halted
        return bool(under_way or self._interrupted)

    @property
    def not_halted(self) -> list[Actor]:
        """Local members that were asked to halt and have not answered."""
        if self._query is None:
            return []
        return [m for m in self.local_members() if m not in self.halted and m not in self.dead]

    @property
    def not_acknowledged(self) -> list[Actor]:
        """Local members that were asked about the accepted proposal and have not acknowledged it."""
        if self.accepted is None or not self._asked:
            return []
        members = self._local_of(self.accepted[1])
        return [m for m in members if m not in self._acks and m not in self.dead]

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

    # ---- helpers ---------------------------------------------------------------------------------

    def _local_of(self, proposal: View) -> list[Actor]:
        """Who must acknowledge here: members of the current view, and who joins by this one."""
        joining = [m for m in proposal.joined if self._host_of(m) == self.index]
        return [*self.local_members(), *joining]

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
                self._end_ballot()

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
        self._end_ballot()
        self._answers.clear()
        self._accepts.clear()
        self._effects.append(Persist("committed", view))
        self._effects.append(Installed(view))
