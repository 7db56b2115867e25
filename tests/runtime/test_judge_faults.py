"""Fault events that go on for a while: one walk, no climb while they last, a word where none follows."""

from __future__ import annotations

import pytest

from cascade_runtime.agent.protocol import Trigger
from cascade_runtime.vocabulary.events import Decisions
from cascade_runtime.vocabulary.fault import FaultEvent
from cascade_runtime.vocabulary.identity import EventRef
from cascade_runtime.vocabulary.regime import Regime
from tests.agent.facts import told, view
from tests.runtime.test_judge import CALM, INTERVAL, NOW, WALK, Agent

S, C, E = Regime.STRONG, Regime.CAUSAL, Regime.EVENTUAL
SKEW, LINK = FaultEvent.RANK_SKEW_HIGH, FaultEvent.LINK_DELAY_HIGH
NONE = (False, None, None)
each_fault = pytest.mark.parametrize("fault", [SKEW, LINK, FaultEvent.NODE_CHURN_HIGH])


@each_fault
def test_in_strong_a_walk_is_asked_for_but_not_right_after_another(fault):
    agent = Agent(S)
    assert agent.judge.consider(told(fault, 1))
    agent.judge.add(told(fault, 1))
    assert agent.wants(NOW + INTERVAL - 0.01) == NONE
    assert agent.wants(NOW + INTERVAL) == WALK


@each_fault
def test_while_it_stands_nobody_climbs_and_calm_is_counted_from_its_end(fault):
    agent = Agent(C).report("a", "a")
    for _ in range(5):
        agent.rounds(10 * CALM)
        agent.judge.stands([told(fault, 1)])
        assert agent.wants() == NONE
    agent.judge.stands([])
    assert agent.wants() == NONE
    agent.rounds(CALM - 1)
    assert agent.wants() == NONE
    agent.rounds(CALM)
    assert agent.wants() == WALK


def test_debts_are_settled_while_it_stands():
    from tests.runtime.test_judge import DS

    agent = Agent(C, (DS,)).report("a", "a")
    agent.judge.stands([told(SKEW, 1)])
    assert agent.wants() == (False, ["s"], True)


@pytest.mark.parametrize("regime", [C, E])
def test_without_a_move_it_is_decided_and_nothing_follows(regime):
    agent = Agent(regime)
    assert not agent.judge.consider(told(SKEW, 1))
    (row,) = agent.rows.of(Decisions)
    assert (row["fault"], row["to_regime"], row["changed"]) == (SKEW, regime, False)
    assert agent.wants() == NONE


def test_observe_says_what_would_have_been_decided():
    agent = Agent(S)
    assert not agent.judge.consider(told(LINK), observe=True)
    (row,) = agent.rows.of(Decisions)
    assert (row["to_regime"], row["changed"]) == (C, True)
    assert agent.judge.triggers == []


def test_a_corrupt_member_holds_nobody_up_while_it_cannot_be_resynchronised():
    agent = Agent(S)
    assert not agent.judge.consider(told(FaultEvent.STATE_CORRUPTION, 1))
    (row,) = agent.rows.of(Decisions)
    assert (row["to_regime"], row["changed"]) == (S, False)
    assert row["reason"] == "no member can be resynchronised yet, so the job goes on in STRONG"


def test_what_began_during_a_climb_is_walked_on_after_it():
    agent = Agent(C).report("a", "a").rounds(CALM)
    assert agent.wants() == WALK  # STABLE_SYNC is pending
    begun = told(SKEW, 1)
    agent.judge.stands([begun])
    agent.judge.add(begun)
    assert [t.fault for t in agent.judge.triggers] == [SKEW], "the calm is over"
    agent.install(view(0, 1, regime=S, epoch=2))  # the climb was on its way all the same
    assert agent.wants() == WALK
    assert agent.judge.triggers == [begun]


def test_one_walk_for_a_fault_that_stands():
    agent = Agent(S)
    begun = told(SKEW, 1)
    agent.judge.stands([begun])
    agent.judge.add(begun)
    agent.install(view(0, 1, regime=C, epoch=2, from_regime=S, evidence=begun.evidence))
    agent.judge.add(begun)  # told again, by a greeting
    assert agent.judge.triggers == []
    agent.report("a", "a").rounds(10 * CALM)
    assert agent.wants() == NONE


def test_what_stands_without_a_row_is_no_ground_for_a_walk():
    """An agent that does not lead has recorded nothing."""
    agent = Agent(C)
    agent.judge.stands([Trigger(SKEW, None, [], "it is late")])
    agent.install(view(0, 1, regime=S, epoch=2))
    assert agent.judge.triggers == []


def test_a_death_goes_first_and_at_once():
    agent = Agent(S)
    agent.judge.add(told(SKEW, 1))
    agent.judge.add(Trigger(FaultEvent.GPU_FAIL_STOP, None, [EventRef(9, 0, 7)], "dead"))
    assert agent.wants(NOW) == WALK


def test_a_climb_after_a_fault_that_went_on_says_after_which():
    agent = Agent(C).report("a", "a")
    agent.judge.stands([told(FaultEvent.NODE_CHURN_HIGH, 1)])
    agent.judge.stands([])
    agent.rounds(CALM)
    assert agent.wants() == (True, None, None)
    (climb,) = agent.judge.triggers
    assert climb.reason == f"{CALM} steps after NODE_CHURN_HIGH, clocks and digests equal"
    agent.install(agent.view)
    agent.judge.triggers.clear()
    agent.report("a", "a").rounds(CALM)
    assert agent.wants() == (True, None, None)
    (climb,) = agent.judge.triggers
    assert climb.reason == f"{CALM} steps without a fault event, clocks and digests equal"
