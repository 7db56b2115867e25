"""Any process may die at any message of the walk: the laws hold, and the job goes on."""

from __future__ import annotations

import random
from itertools import product

import pytest

from cascade_runtime.agent.protocol import History, Message
from cascade_runtime.vocabulary.fault import FaultEvent
from cascade_runtime.vocabulary.identity import Actor
from tests.agent.simulation import Cluster

POINTS = {
    ("sender", "before"): "send",
    ("sender", "after"): "sent",
    ("receiver", "before"): "handle",
    ("receiver", "after"): "handled",
}
SCENARIO = {
    **dict.fromkeys(("Query", "Answer", "Propose", "Accepted", "History"), "death"),
    "DrainRanks": "spread",
    "Rejected": "duel",
    "Lag": "lag",
}
VICTIMS = ("agent", "rank", "stopped agent", "stopped rank", "thawed rank")
CASES = [
    (kind, *where, victim, num_agents)
    for kind, where, victim, num_agents in product(SCENARIO, POINTS, VICTIMS, (2, 3))
    if (kind, num_agents) != ("Lag", 2)  # two agents cannot hear of a commit from different ones
]


class Strike:
    """Crashes or freezes an agent, or a rank of its host, at the first message of a kind."""

    def __init__(self, cluster: Cluster, kind: str, side: str, when: str, victim: str) -> None:
        self.cluster, self.kind, self.victim = cluster, kind, victim
        self.side, self.point = side, POINTS[side, when]
        self.struck: int | None = None

    def __call__(self, point: str, sender: int, to: int, message: Message) -> None:
        if self.struck is not None or point != self.point or type(message).__name__ != self.kind:
            return
        self.struck = sender if self.side == "sender" else to
        if self.victim == "agent":
            self.cluster.crash(self.struck)
        elif self.victim == "stopped agent":
            self.cluster.freeze_agent(self.struck)
        else:
            local = [a for a, r in self.cluster.ranks.items() if r.alive and not r.left]
            rank = max(a for a in local if self.cluster.host_of(a) == self.struck)
            if self.victim == "rank":
                self.cluster.kill(rank)
            else:
                self.cluster.freeze(rank, for_ever=self.victim == "stopped rank")


def death(cluster: Cluster) -> None:
    cluster.kill(max(cluster.ranks))


def spread(cluster: Cluster) -> None:
    """One rank has decided a step that the others have under way; then a graceful walk."""
    cluster.fabric.limit += 1
    for what in ("launch",) * len(cluster.ranks) + ("claim", "decide"):
        cluster.move(next(m for m in cluster.moves() if m[2] == what))
    agent = cluster.agents[0]
    assert agent is not None
    agent.fire(FaultEvent.LINK_DELAY_HIGH)
    agent.tick()


def duel(cluster: Cluster) -> None:
    """Two agents that cannot hear each other both lead."""
    death(cluster)
    cluster.cut(0, 1)
    cluster.flow()
    cluster.flow()
    cluster.mend(0, 1)


def lag(cluster: Cluster) -> None:
    """Agent 1 hears of a commit and begins the next walk; agent 2 has not heard of it yet."""
    death(cluster)

    def hold(point: str, sender: int, to: int, message: Message) -> None:
        if isinstance(message, History) and to == 2:
            cluster.held.add((sender, to))

    cluster.hook = hold
    while len(cluster.laws.history) == 1:
        cluster.flow()
    cluster.kill(Actor(3))
    cluster.cut(0, 1)


def run(kind: str, strike: Strike, cluster: Cluster, chance: random.Random | None) -> None:
    {"death": death, "spread": spread, "duel": duel, "lag": lag}[SCENARIO[kind]](cluster)
    cluster.hook = strike
    for _ in range(30):
        if strike.struck is not None:
            break
        cluster.flow(chance if kind in ("Query", "Answer") else None)
    assert strike.struck is not None, f"no {kind} was ever sent"
    if chance is not None:  # away for long: the others do without it
        for _ in range(3):
            for agent in cluster.live():
                cluster.suspect(agent.index)
            cluster.flow(chance)
    cluster.heal()
    cluster.run_to_calm(chance)


def test_a_commit_that_one_agent_heard_of_stands():
    """Coordinator and the only listener die; the others, restarted, must come to the same view."""
    cluster = Cluster(3, 6)
    cluster.kill(Actor(5))

    def strike(point: str, sender: int, to: int, message: Message) -> None:
        if isinstance(message, History) and point == "sent":
            cluster.crash(sender)
        elif isinstance(message, History) and point == "handled":
            cluster.crash(to)

    cluster.hook = strike
    while len(cluster.laws.history) == 1:
        cluster.flow()
    assert [a is None for a in cluster.agents] == [True, True, False]
    cluster.hook = None
    cluster.crash(2)
    cluster.kill(Actor(4))  # a plan made from today's facts would be another
    for index in (0, 2):
        cluster.restart(index)
    for _ in range(4):
        for index in (0, 2):
            cluster.suspect(index)
        cluster.flow()
    assert len(cluster.laws.history) > 2, "two of three agents should go on"
    cluster.heal()
    cluster.run_to_calm()


def alone(cluster: Cluster, victim: int, until: str) -> None:
    """All have the open step under way; the victim goes on with it up to a move."""
    cluster.fabric.limit += 1
    for what in ("launch",) * len(cluster.ranks):
        cluster.move(next(m for m in cluster.moves() if m[2] == what))
    for what in ("claim", "decide")[: 1 + (until == "decide")]:
        cluster.move(("rank", victim, what))
    cluster.fabric.broken.add(0)


@pytest.mark.parametrize("until", ["claim", "decide"])
@pytest.mark.parametrize("how", ["kill", "stop", "stop and go"])
@pytest.mark.parametrize("victim", [0, 1, 3])
@pytest.mark.parametrize("seed", [None, 1])
def test_what_a_lost_rank_decided_alone_keeps_its_name(victim, how, until, seed):
    """The survivors reduce the step again without it, so theirs is another update: another dot."""
    cluster = Cluster(2, 4)
    alone(cluster, victim, until)
    (cluster.kill if how == "kill" else cluster.freeze)(Actor(victim))
    chance = None if seed is None else random.Random(seed)
    for _ in range(5):
        if how != "stop and go":
            cluster.flow(chance)
        elif able := [m for m in cluster.moves() if m[0] in ("fence", "certify")]:
            cluster.move(able[0])
            if able[0][0] == "fence":
                cluster.thaw(Actor(victim))  # between the fence and the agent's look at the word
    cluster.heal()
    cluster.run_to_calm(chance)
    assert Actor(victim) not in cluster.laws.history[-1].members
    made = [dot for dot, made in cluster.fabric.content.items() if len(made) > 1]
    assert made == [], "one name, two updates"
    void = {dot for v in cluster.laws.history for dot in v.voided}
    assert len(void) == 1, "the open step's dot is void: it may have been used"


@pytest.mark.parametrize("seed", [None, 1, 2])
@pytest.mark.parametrize(("kind", "side", "when", "victim", "num_agents"), CASES)
def test_survives(kind, side, when, victim, num_agents, seed):
    cluster = Cluster(num_agents, 3 * num_agents if kind == "Lag" else 2 * num_agents)
    run(
        kind,
        Strike(cluster, kind, side, when, victim),
        cluster,
        None if seed is None else random.Random(seed),
    )
    dead = {a for a, r in cluster.ranks.items() if not r.alive or r.fenced}
    assert not dead & set(cluster.laws.history[-1].members)
    assert len(cluster.laws.history) > 1
