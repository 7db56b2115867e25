"""Any schedule that Hypothesis thinks of, against the history that is legal (sim_laws.py)."""

from __future__ import annotations

import random

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from cascade_runtime.vocabulary.fault import FaultEvent
from tests.agent.simulation import Cluster

FAULTS = (FaultEvent.LINK_DELAY_HIGH, FaultEvent.STABLE_SYNC, FaultEvent.RECOVERY_DETECTED)


class Job(RuleBasedStateMachine):
    """Rules are faults, time, and runs of moves; the laws are asserted inside the cluster."""

    cluster: Cluster

    @initialize(num_agents=st.integers(1, 4), more=st.integers(0, 4))
    def start(self, num_agents, more):
        self.cluster = Cluster(num_agents, max(2, num_agents) + more)

    @rule(choices=st.lists(st.integers(0, 999), min_size=1, max_size=25))
    def go_on(self, choices):
        for choice in choices:
            if able := self.cluster.moves():
                self.cluster.move(able[choice % len(able)])

    @rule()
    def next_step(self):
        self.cluster.fabric.limit += 1

    @precondition(lambda self: self.cluster.live())
    @rule(which=st.integers(0, 3), times=st.integers(1, 3))
    def tick(self, which, times):
        for _ in range(times):
            if not self.agent(which).frozen:
                self.agent(which).tick()

    @precondition(lambda self: sum(r.alive for r in self.cluster.ranks.values()) > 1)
    @rule(which=st.integers(0, 7), breaks=st.booleans())
    def kill(self, which, breaks):
        alive = [a for a, r in self.cluster.ranks.items() if r.alive]
        self.cluster.kill(alive[which % len(alive)], breaks)

    @precondition(lambda self: self.cluster.can_come_back())
    @rule(which=st.integers(0, 7))
    def start_again(self, which):
        able = self.cluster.can_come_back()
        self.cluster.start_again(able[which % len(able)])

    @precondition(lambda self: sum(r.alive for r in self.cluster.ranks.values()) > 1)
    @rule(which=st.integers(0, 7), for_ever=st.booleans())
    def freeze_or_thaw(self, which, for_ever):
        alive = [a for a, r in self.cluster.ranks.items() if r.alive]
        rank = alive[which % len(alive)]
        if self.cluster.ranks[rank].frozen:
            self.cluster.thaw(rank)
        else:
            self.cluster.freeze(rank, for_ever)

    @precondition(lambda self: self.cluster.live())
    @rule(which=st.integers(0, 3))
    def freeze_or_thaw_agent(self, which):
        agent = self.agent(which)
        (self.cluster.thaw_agent if agent.frozen else self.cluster.freeze_agent)(agent.index)

    @rule(which=st.integers(0, 7))
    def leave(self, which):
        able = [r for r in self.cluster.ranks.values() if r.can_leave()]
        if able:
            able[which % len(able)].leave()

    @precondition(lambda self: self.cluster.live())
    @rule(which=st.integers(0, 3))
    def crash(self, which):
        self.cluster.crash(self.agent(which).index)

    @precondition(lambda self: None in self.cluster.agents)
    @rule()
    def restart(self):
        self.cluster.restart(self.cluster.agents.index(None))

    @precondition(lambda self: self.cluster.num_agents > 1)
    @rule(one=st.integers(0, 3), other=st.integers(0, 3))
    def cut_or_mend(self, one, other):
        one, other = one % self.cluster.num_agents, other % self.cluster.num_agents
        if one != other:
            severed = frozenset((one, other)) in self.cluster.severed
            (self.cluster.mend if severed else self.cluster.cut)(one, other)

    @precondition(lambda self: self.cluster.live())
    @rule(which=st.integers(0, 3))
    def suspect(self, which):
        if not self.agent(which).frozen:
            self.cluster.suspect(self.agent(which).index)

    @precondition(lambda self: self.cluster.live())
    @rule(which=st.integers(0, 3), fault=st.sampled_from(FAULTS))
    def fault(self, which, fault):
        agent = self.agent(which)
        if not agent.frozen:
            agent.fire(fault)
            agent.perform()

    @precondition(lambda self: self.cluster.live())
    @rule(which=st.integers(0, 3))
    def settle(self, which):
        if self.agent(which).walker.view.members and not self.agent(which).frozen:
            self.agent(which).settle()

    def agent(self, which):
        live = self.cluster.live()
        return live[which % len(live)]

    @invariant()
    def logs_are_prefixes_of_one_history(self):
        for agent in self.cluster.live():
            log = agent.walker.log
            assert log == self.cluster.laws.history[: len(log)]

    def teardown(self):
        if hasattr(self, "cluster"):
            self.cluster.heal()
            self.cluster.run_to_calm()


Job.TestCase.settings = settings(
    deadline=None,
    derandomize=True,
    max_examples=60,
    stateful_step_count=30,
    suppress_health_check=list(HealthCheck),
)
TestJob = Job.TestCase


def shake(cluster: Cluster, chance: random.Random, share: float, again: int = 0) -> None:
    """One random event: mostly a move, sometimes time, in ``share`` of the cases a fault."""
    drawn, live = chance.random(), [a for a in cluster.live() if not a.frozen]
    if drawn > share + 0.1 and (able := cluster.moves()):
        cluster.move(chance.choice(able))
    elif drawn > share and live:
        chance.choice(live).tick()
    else:
        one, other = chance.choices(range(cluster.num_agents), k=2)
        rank = chance.choice(list(cluster.ranks.values()))
        what = chance.choice(
            ["kill", "leave", "agent", "agent", "link", "suspect", "fault", "debt", "stop", "doze"]
            + ["again"] * again
        )
        if what == "kill" and sum(r.alive for r in cluster.ranks.values()) > 1:
            cluster.kill(rank.actor, breaks=chance.random() < 0.5)
        elif what == "stop" and sum(r.alive for r in cluster.ranks.values()) > 1:
            if rank.frozen:
                cluster.thaw(rank.actor)
            else:
                cluster.freeze(rank.actor, for_ever=chance.random() < 0.5)
        elif what == "doze" and (agent := cluster.agents[one]) is not None:
            (cluster.thaw_agent if agent.frozen else cluster.freeze_agent)(one)
        elif what == "leave" and rank.can_leave():
            rank.leave()
        elif what == "agent":
            (cluster.crash if cluster.agents[one] else cluster.restart)(one)
        elif what == "link" and one != other:
            severed = frozenset((one, other)) in cluster.severed
            (cluster.mend if severed else cluster.cut)(one, other)
        elif what == "suspect" and live:
            cluster.suspect(chance.choice(live).index)
        elif what == "fault" and live:
            chance.choice(live).fire(chance.choice(FAULTS))
        elif what == "again" and (able := cluster.can_come_back()):
            cluster.start_again(chance.choice(able))
        elif what == "debt" and live and live[0].walker.view.members:
            live[0].settle()
        cluster.fabric.limit += chance.random() < 0.2


@pytest.mark.parametrize("block", range(8))
def test_long_random_schedules(block):
    for seed in range(60 * block, 60 * block + 60):
        chance = random.Random(seed)
        num_agents = chance.choice([1, 2, 2, 3, 3, 4])
        cluster = Cluster(num_agents, chance.randint(max(2, num_agents), 8))
        share = chance.choice([0.02, 0.05, 0.1, 0.2])
        for _ in range(chance.choice([30, 80, 200])):
            shake(cluster, chance, share)
        cluster.heal()
        cluster.run_to_calm(chance)
