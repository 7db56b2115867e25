"""Ranks that come back, under random faults at every message of the walk that lets them in."""

from __future__ import annotations

import random

import pytest

from cascade_runtime.vocabulary.fault import FaultEvent
from cascade_runtime.vocabulary.identity import Actor
from cascade_runtime.vocabulary.regime import Regime
from tests.agent.sim_newcomer import Newcomer
from tests.agent.simulation import Cluster, number_of


def lose_and_start_again(cluster: Cluster, chance: random.Random, number: int) -> None:
    """Some ranks die, their deaths are walked for, and they are started again."""
    alive = [a for a, r in cluster.ranks.items() if r.alive and not r.left]
    lost = chance.sample(alive, min(number, (len(alive) - 1) // 2))
    for actor in lost:
        cluster.kill(actor)
    for _ in range(12):
        cluster.flow(chance)
    recover(cluster, chance)
    for actor in cluster.can_come_back():
        cluster.start_again(actor)


def recover(cluster: Cluster, chance: random.Random) -> None:
    """Nobody joins in EVENTUAL: settle and climb."""
    for _ in range(3):
        leading = cluster.live()[0]
        if leading.walker.view.regime is Regime.EVENTUAL:
            leading.settle()
            leading.fire(FaultEvent.RECOVERY_DETECTED)
            for _ in range(4):
                cluster.flow(chance)


def disturb(cluster: Cluster, chance: random.Random, share: float) -> None:
    """A move, or time, or in ``share`` of the cases a fault at whoever it hits."""
    drawn, live = chance.random(), [a for a in cluster.live() if not a.frozen]
    cluster.fabric.limit += chance.random() < 0.1
    if drawn > share + 0.1 and (able := cluster.moves()):
        cluster.move(chance.choice(able))
    elif drawn > share and live:
        chance.choice(live).tick()
    else:
        one = chance.randrange(cluster.num_agents)
        rank = chance.choice(list(cluster.ranks.values()))
        running = sum(r.alive and not r.left and not r.frozen for r in cluster.ranks.values())
        what = chance.choice(["kill", "stop", "go on", "agent", "agent", "doze", "again"])
        if what == "kill" and running > 2:
            cluster.kill(rank.actor, breaks=chance.random() < 0.5)
        elif what == "stop" and running > 2:
            cluster.freeze(rank.actor)
        elif what == "go on":
            cluster.thaw(rank.actor)
        elif what == "agent":
            (cluster.crash if cluster.agents[one] else cluster.restart)(one)
        elif what == "doze" and (agent := cluster.agents[one]) is not None:
            (cluster.thaw_agent if agent.frozen else cluster.freeze_agent)(one)
        elif what == "again" and (able_to := cluster.can_come_back()):
            cluster.start_again(chance.choice(able_to))


def play(seed: int) -> Cluster:
    """One schedule, to its end in calm."""
    chance = random.Random(seed)
    num_agents = chance.choice([1, 2, 2, 3, 3, 4])
    size = chance.randint(max(3, num_agents), 7)
    cluster = Cluster(num_agents, size, splits=seed % 2 == 0)
    lose_and_start_again(cluster, chance, chance.choice([1, 1, 1, 2]))
    for _ in range(chance.choice([30, 80, 150])):
        disturb(cluster, chance, chance.choice([0.0, 0.01, 0.03, 0.06]))
    cluster.heal()
    cluster.run_to_calm(chance)
    return cluster


@pytest.mark.parametrize("block", range(8))
def test_random_schedules_around_a_join(block):
    joins = 0
    for seed in range(60 * block, 60 * block + 60):
        joins += sum(bool(v.joined) for v in play(seed).laws.history[1:])
    assert joins >= 30, "hardly anybody ever joined"


@pytest.mark.parametrize("splits", [False, True])
@pytest.mark.parametrize("num_agents", [1, 2, 3])
@pytest.mark.parametrize("lost", [[0], [2], [0, 3], [1, 2]])
def test_without_faults_everybody_is_back(num_agents, lost, splits):
    cluster = Cluster(num_agents, 5, splits=splits)
    everybody = len(cluster.ranks)
    for number in lost:
        cluster.kill(list(cluster.ranks)[number])
    for _ in range(12):
        cluster.flow()
    recover(cluster, random.Random(1))
    for actor in cluster.can_come_back():
        cluster.start_again(actor)
    cluster.heal()
    cluster.run_to_calm()
    assert len(cluster.laws.history[-1].members) == everybody
    back = [r for r in cluster.ranks.values() if isinstance(r, Newcomer)]
    assert [r.actor.rank for r in back] == lost
    assert all(r.is_member and r.decided == cluster.fabric.limit for r in back)
    joins = [v for v in cluster.laws.history[1:] if v.joined and v.regime is Regime.CAUSAL]
    assert all((len(v.cohorts) > 1) is splits for v in joins)


def test_a_step_that_a_lost_source_decided_alone_is_not_joined_with():
    """Its log had told of it; the others made another step of that number, without its gradients."""
    cluster = Cluster(1, 4, splits=False)
    cluster.kill(Actor(3))
    for _ in range(6):
        cluster.flow()
    cluster.start_again(Actor(3))
    coming = cluster.ranks[Actor(3, 1)]
    while cluster.moves():
        cluster.move(cluster.moves()[0])
        if coming.view.epoch >= 0:
            break
    cluster.fabric.limit += 1
    for number in (0, 1, 2):
        cluster.move(("rank", number, "launch"))
    for what in ("claim", "decide"):
        cluster.move(("rank", 1, what))
    cluster.move(("rank", number_of(coming.actor), "take 1"))
    alone = coming.decided
    assert alone == cluster.ranks[Actor(0)].decided + 1
    cluster.kill(Actor(1), breaks=True)
    cluster.flow()
    cluster.flow()
    recover(cluster, random.Random(0))
    cluster.heal()
    cluster.run_to_calm()
    assert coming.actor in cluster.laws.history[-1].members
    assert coming.decided > alone
    assert coming.applied == cluster.ranks[Actor(0)].applied
