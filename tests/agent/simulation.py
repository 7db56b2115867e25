"""A simulated cluster around the Walker: agents, queues, journals, crashes; nothing here is timed.

Messages of one pair of agents keep their order, those of different pairs do not. A crash loses what
was under way to the agent, a cut also what was under way from it; a new connection begins with a
hello, as in host.py. ``moves`` lists what could happen now, so a schedule is a list of choices.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable

from cascade_runtime.agent.protocol import AgentHello, Ballot, Message, View
from cascade_runtime.vocabulary.fault import FaultEvent
from cascade_runtime.vocabulary.identity import Actor
from cascade_runtime.vocabulary.regime import Regime
from tests.agent.sim_agent import POLICY, WHOLE, Agent, Disk
from tests.agent.sim_fabric import Fabric
from tests.agent.sim_laws import Laws
from tests.agent.sim_newcomer import Newcomer
from tests.agent.sim_rank import Rank

Move = tuple[str, int, int | str]
Hook = Callable[[str, int, int, Message], None]
"""Called with (point, sender, receiver, message); points: send, sent, handle, handled."""


MOST = 1000


def number_of(actor: Actor) -> int:
    """Of a first incarnation, its rank."""
    return actor.incarnation * MOST + actor.rank


class Cluster:
    """``num_agents`` agents, ``num_ranks`` ranks in blocks, all in epoch 0 and running."""

    def __init__(
        self, num_agents: int, num_ranks: int, hook: Hook | None = None, *, splits: bool = True
    ) -> None:
        self.policy = POLICY if splits else WHOLE
        self.num_agents, self.num_ranks = num_agents, num_ranks
        self.fabric = Fabric()
        self.ranks: dict[Actor, Rank] = {}
        for number in range(num_ranks):
            self.ranks[Actor(number)] = Rank(Actor(number), self.fabric, self.ranks)
        self.laws = Laws(self.policy, self.fabric, self.ranks)
        self.disks = [Disk() for _ in range(num_agents)]
        self.installed = [-1] * num_agents
        self.ballots: set[Ballot] = set()
        self.hook: Hook | None = None
        self.is_even = False
        """No rank is slower than another any more."""
        self.queues: dict[tuple[int, int], deque[Message]] = {
            (i, j): deque() for i in range(num_agents) for j in range(num_agents) if i != j
        }
        self.severed: set[frozenset[int]] = set()
        self.for_ever: set[Actor] = set()
        """Ranks that nobody continues."""
        self.held: set[tuple[int, int]] = set()
        """Channels whose messages take their time."""
        self.agents: list[Agent | None] = [None] * num_agents
        for index in range(num_agents):
            self.restart(index)
        self.fabric.limit = 3
        everybody = list(self.ranks)
        first = View(
            epoch=0,
            regime=Regime.STRONG,
            from_regime=Regime.STRONG,
            members=everybody,
            cohorts=[everybody],
            proposer=Actor(num_ranks),
            joined=everybody,
        )
        for agent in self.live():
            agent.walker.install_first(first)
            agent.perform()
        self.flow(ticks=False)
        self.hook = hook

    def host_of(self, actor: Actor) -> int:
        return actor.rank * self.num_agents // self.num_ranks

    def live(self) -> list[Agent]:
        return [a for a in self.agents if a is not None]

    def linked(self, one: int, other: int) -> bool:
        return self.agents[other] is not None and frozenset((one, other)) not in self.severed

    # ---- the network -----------------------------------------------------------------------------

    def send(self, sender: int, to: int, message: Message) -> None:
        agent = self.agents[sender]
        if agent is None or to not in agent.known or not self.linked(sender, to):
            return
        self._at("send", sender, to, message)
        if agent.up and self.linked(sender, to):
            self.queues[sender, to].append(message)
            self._at("sent", sender, to, message)

    def _at(self, point: str, sender: int, to: int, message: Message) -> None:
        if self.hook is not None:
            self.hook(point, sender, to, message)

    def _deliver(self, sender: int, to: int) -> None:
        message = self.queues[sender, to].popleft()
        agent = self.agents[to]
        assert agent is not None
        self._at("handle", sender, to, message)
        if agent.up:
            agent.hear(sender, message)
            self._at("handled", sender, to, message)

    def _connect(self, one: int, other: int) -> None:
        for sender, to in ((one, other), (other, one)):
            agent = self.agents[sender]
            assert agent is not None
            self.queues[sender, to].append(AgentHello(sender, agent.actor, agent.walker.epoch))

    def _disconnect(self, one: int, other: int) -> None:
        for sender, to in ((one, other), (other, one)):
            agent = self.agents[sender]
            if agent is not None:
                agent.known.discard(to)
            self.queues[sender, to].clear()

    # ---- faults ----------------------------------------------------------------------------------

    def kill(self, actor: Actor, breaks: bool = False) -> None:
        """SIGKILL; ``breaks``: collectives that are under way end in an error everywhere."""
        rank = self.ranks[actor]
        rank.alive = False
        if breaks and actor in rank.view.members:
            self.fabric.broken.add(rank.view.epoch)

    def can_come_back(self) -> list[Actor]:
        """Ranks that ended, as their agent knows, and were not started again yet."""
        newest: dict[int, Actor] = {}
        for actor in self.ranks:
            newest[actor.rank] = max(actor, newest.get(actor.rank, actor))
        able = []
        for actor in newest.values():
            agent, rank = self.agents[self.host_of(actor)], self.ranks[actor]
            ended = not rank.alive or (rank.left and rank.fenced)
            if ended and agent is not None and actor in agent.walker.dead:
                able.append(actor)
        return able

    def start_again(self, actor: Actor) -> None:
        """Its script runs anew, as the next incarnation."""
        coming = Actor(actor.rank, actor.incarnation + 1)
        newcomer = self.ranks[coming] = Newcomer(coming, self.fabric, self.ranks)
        newcomer.connect()

    def freeze(self, actor: Actor, for_ever: bool = False) -> None:
        """SIGSTOP: its agent may fence it from now on. Unless ``for_ever``, ``heal`` lets it go on."""
        self.ranks[actor].frozen = True
        self.for_ever.update([actor] if for_ever else [])

    def thaw(self, actor: Actor) -> None:
        """SIGCONT."""
        self.ranks[actor].frozen = False

    def freeze_agent(self, index: int) -> None:
        """It hears and does nothing; its connections stay open."""
        agent = self.agents[index]
        assert agent is not None
        agent.frozen = True

    def thaw_agent(self, index: int) -> None:
        agent = self.agents[index]
        assert agent is not None
        agent.frozen = False

    def crash(self, index: int) -> None:
        self.agents[index] = None
        for other in range(self.num_agents):
            if other != index:
                arriving = list(self.queues[index, other])  # the kernel still delivers it
                self._disconnect(index, other)
                self.queues[index, other].extend(arriving)

    def restart(self, index: int) -> None:
        agent = self.agents[index] = Agent(self, index)
        for rank in agent.local():
            if rank.alive and not rank.left:
                rank.connect()
        for other in range(self.num_agents):
            if other != index and self.linked(index, other):
                self.queues[index, other].clear()  # of the old connection, unread
                self._connect(index, other)

    def cut(self, one: int, other: int) -> None:
        self.severed.add(frozenset((one, other)))
        self._disconnect(one, other)

    def mend(self, one: int, other: int) -> None:
        self.severed.discard(frozenset((one, other)))
        for here, there in ((one, other), (other, one)):
            agent = self.agents[here]
            if agent is not None:
                agent.suspects -= {there}
        if self.agents[one] is not None and self.agents[other] is not None:
            self._connect(one, other)

    def suspect(self, index: int) -> None:
        """For an agent, those out of reach have been so for long enough."""
        agent = self.agents[index]
        assert agent is not None
        others = set(range(self.num_agents)) - {index}
        agent.suspects = frozenset(
            i for i in others if not (self.linked(index, i) and self.awake(i))
        )

    # ---- running ---------------------------------------------------------------------------------

    def moves(self) -> list[Move]:
        """What could happen next, without faults and without time going by."""
        able: list[Move] = []
        for (sender, to), queue in self.queues.items():
            if queue and self.awake(to) and (sender, to) not in self.held:
                able.append(("deliver", sender, to))
        for actor, rank in self.ranks.items():
            able += [("rank", number_of(actor), what) for what in rank.moves()]
            if rank.outbox and self.awake(self.host_of(actor)):
                able.append(("hear", number_of(actor), 0))
        for agent in self.live():
            if not agent.frozen:
                lost = [*agent.uncertified(), *agent.fenced_unread()]
                able += [("certify", agent.index, number_of(actor)) for actor in lost]
                able += [("fence", agent.index, number_of(a)) for a in agent.to_fence()]
        return able

    def rank(self, number: int) -> Rank:
        """By ``number_of`` its actor."""
        return self.ranks[Actor(number % MOST, number // MOST)]

    def awake(self, index: int) -> bool:
        agent = self.agents[index]
        return agent is not None and not agent.frozen

    def move(self, move: Move) -> None:
        self.laws.now += 1
        what, first, second = move
        match what:
            case "deliver":
                self._deliver(first, int(second))
            case "rank":
                self.rank(first).move(str(second))
            case "hear":
                rank = self.rank(first)
                agent = self.agents[self.host_of(rank.actor)]
                assert agent is not None
                agent.hear_rank(rank)
            case "certify":
                agent = self.agents[first]
                assert agent is not None
                agent.certify(self.rank(int(second)).actor)
            case "fence":
                agent = self.agents[first]
                assert agent is not None
                agent.fence(self.rank(int(second)).actor)

    def flow(self, chance: random.Random | None = None, ticks: bool = True) -> None:
        """Let everything happen that can, in rounds, until only time could change anything."""
        for _ in range(2000):
            able = self.moves()
            if not able:
                break
            self.move(chance.choice(able) if chance else able[0])
        else:
            raise AssertionError("messages never end")
        if ticks:
            for agent in self.live():
                self.laws.now += 1
                if not agent.frozen:
                    agent.tick()

    def heal(self) -> None:
        """Faults stop: agents are back, links whole, and the job has some steps to do."""
        self.held.clear()
        self.is_even = True
        for pair in list(self.severed):
            self.mend(*pair)
        for index, agent in enumerate(self.agents):
            if agent is None:
                self.restart(index)
            elif agent.frozen:
                self.thaw_agent(index)
        for actor in self.ranks.keys() - self.for_ever:
            self.thaw(actor)
            for other in self.live():
                other.suspects = frozenset()
        self.fabric.limit = max(r.decided for r in self.ranks.values()) + 2

    def run_to_calm(self, chance: random.Random | None = None, rounds: int = 40) -> None:
        """After ``heal``: the liveness law."""
        for _ in range(rounds):
            self.flow(chance)
            if self.calm():
                self.laws.one_update_a_name()
                return
        raise AssertionError("; ".join(self.unsettled()))

    def calm(self) -> bool:
        return not self.unsettled()

    def unsettled(self) -> list[str]:
        wrong = self.laws.settled()
        for agent in self.live():
            if agent.walker.walking:
                wrong.append(f"agent {agent.index} walks")
            if agent.walker.epoch != len(self.laws.history) - 1:
                wrong.append(f"agent {agent.index} is in epoch {agent.walker.epoch}")
            deaths = [t for t in agent.triggers if t.fault is FaultEvent.GPU_FAIL_STOP]
            if self.laws.history[-1].members and ((agent.leads() and agent.triggers) or deaths):
                wrong.append(f"agent {agent.index} has triggers pending: {agent.triggers}")
        return wrong
