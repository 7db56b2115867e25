"""plan_next by table: which view follows from which facts."""

from __future__ import annotations

import msgspec
import pytest

from cascade_runtime.agent.plan import Drains, Plan, judged, plan_next
from cascade_runtime.agent.protocol import Facts
from cascade_runtime.vocabulary.fault import FaultEvent
from cascade_runtime.vocabulary.identity import Actor, Dot, EventRef
from cascade_runtime.vocabulary.policy import load_policy
from cascade_runtime.vocabulary.regime import Regime
from tests.agent.facts import AGENT, actors, at, dead, death_of, told, view

S, C, E = Regime.STRONG, Regime.CAUSAL, Regime.EVENTUAL
POLICY = load_policy()


def plan(current, facts, triggers=(), debts=()):
    by_actor = {Actor(r): f for r, f in facts.items()}
    return plan_next(current, by_actor, triggers, debts, POLICY, AGENT)


@pytest.mark.parametrize(("regime", "then", "fault"), [
    (S, C, FaultEvent.GPU_FAIL_STOP), (C, E, FaultEvent.GPU_FAIL_STOP), (E, E, None),
])  # fmt: skip
def test_a_death_walks_by_the_policy(regime, then, fault):
    current = view(0, 1, 2, regime=regime)
    found = plan(current, {0: at(5, 5), 1: at(5), 2: dead(5)}, [death_of(2, seq=7)])
    assert (found.view.regime, found.view.from_regime, found.view.fault) == (then, regime, fault)
    assert (found.view.members, found.view.departed) == (actors(0, 1), actors(2))
    assert (found.view.cut_step, found.view.source, found.view.behind) == (5, None, [])
    assert found.view.evidence == [EventRef(AGENT.rank, 0, 7)]
    assert found.view.member_reason == "failed"
    assert found.decision.to is then


def test_whoever_did_not_answer_is_lost():
    found = plan(view(0, 1, 2), {0: at(1), 1: at(1)})
    assert found.view.departed == actors(2)
    assert found.view.evidence == []


def test_two_deaths_leave_at_once_and_are_judged_one_by_one():
    facts = {0: at(3, 3), 1: dead(3), 2: dead(3), 3: at(3)}
    triggers = [death_of(2, seq=1), death_of(1, seq=2)]
    first = plan(view(0, 1, 2, 3), facts, triggers).view
    assert (first.regime, first.departed) == (C, actors(1, 2))
    assert [judged(t, [first]) for t in triggers] == [True, False]
    second = plan(first, {0: at(3, 3), 3: at(3)}, triggers[1:]).view
    assert (second.regime, second.fault) == (E, FaultEvent.GPU_FAIL_STOP)
    assert judged(triggers[1], [second])


def test_a_death_that_moves_nothing_is_judged_too():
    # Else its trigger would ask for one walk after the other, forever.
    found = plan(view(0, 1, regime=E), {0: at(3), 1: at(3)}, [death_of(2)])
    assert (found.view.regime, found.view.members) == (E, actors(0, 1))
    assert judged(death_of(2), [found.view])


def test_one_death_told_twice_is_judged_once():
    # The agent that certified it came back and told it again, pointing at a new row.
    triggers = [death_of(2, seq=1), death_of(2, seq=9)]
    found = plan(view(0, 1, 2), {0: at(3), 1: at(3), 2: dead(3)}, triggers)
    assert all(judged(t, [found.view]) for t in triggers)


def test_a_death_met_before_it_was_told_is_judged_by_the_view_that_removes_it():
    found = plan(view(0, 1, 2), {0: at(3), 1: at(3), 2: dead(3)})
    assert judged(death_of(2), [found.view])
    assert not judged(death_of(1), [found.view])


@pytest.mark.parametrize(("issued", "decided", "voided"), [
    (3, 3, []),
    (4, 3, [Dot(0, 0, 4)]),
    (5, 3, [Dot(0, 0, 4), Dot(0, 0, 5)]),  # an update an object
    (4, 4, []),
])  # fmt: skip
def test_open_dots_of_a_dead_author_are_void(issued, decided, voided):
    facts = {0: dead(3, issued), 1: at(decided), 2: at(decided)}
    found = plan(view(0, 1, 2), facts, [death_of(0)]).view
    assert found.voided == voided
    assert found.in_flight == voided


def test_open_dots_of_a_living_author_are_in_flight_and_stay():
    found = plan(view(0, 1, 2), {0: at(3, 4), 1: at(3), 2: dead(3)}, [death_of(2)]).view
    assert (found.voided, found.in_flight) == ([], [Dot(0, 0, 4)])


def test_members_behind_are_rolled_forward_by_the_lowest_at_the_cut():
    facts = {0: dead(4, 5), 1: at(4), 2: at(5), 3: at(5), 4: at(4)}
    found = plan(view(0, 1, 2, 3, 4), facts, [death_of(0)]).view
    assert (found.cut_step, found.source, found.behind) == (5, Actor(2), actors(1, 4))
    assert found.voided == []  # decided by 2 and 3


def test_what_only_the_dead_decided_does_not_count():
    found = plan(view(0, 1, 2), {0: at(4), 1: at(4), 2: dead(5)}, [death_of(2)]).view
    assert (found.cut_step, found.source, found.behind) == (4, None, [])


def test_all_dead():
    found = plan(view(0, 1), {0: dead(3, 4), 1: dead(3)}, [death_of(0)]).view
    assert (found.members, found.cohorts, found.voided) == ([], [], [])


def test_late_members_are_drained_while_nobody_died():
    assert plan(view(0, 1, 2), {0: at(6), 1: at(5), 2: at(6)}) == Drains(6, actors(1))


def test_whose_collective_failed_is_not_waited_for_but_rolled_forward():
    # It would answer the same for ever: what it waits for never completes there.
    facts = {0: at(6), 1: at(5, broken=True), 2: at(6)}
    found = plan(view(0, 1, 2), facts).view
    assert (found.cut_step, found.source, found.behind) == (6, Actor(0), actors(1))
    assert found.members == actors(0, 1, 2)


def test_nobody_drains_a_step_that_an_earlier_epoch_left_to_roll_forward():
    # The roll-forward of this epoch was cut short: its group will never finish the step.
    current = view(0, 1, 2, regime=C, epoch=3, cut_step=6, source=Actor(0), behind=actors(1))
    facts = {0: at(6), 1: at(5), 2: at(6)}
    for triggers in [], [told(FaultEvent.STABLE_SYNC)]:
        found = plan(current, facts, triggers).view
        assert (found.epoch, found.regime, found.members) == (4, C, actors(0, 1, 2))
        assert (found.cut_step, found.source, found.behind) == (6, Actor(0), actors(1))
    assert plan(current, facts, [death_of(9)]).view.behind == actors(1)
    climbing = view(0, 1, regime=E, cut_step=6)
    found = plan(climbing, {0: at(6), 1: at(5)}, [told(FaultEvent.RECOVERY_DETECTED)]).view
    assert (found.regime, found.source, found.behind) == (C, Actor(0), actors(1))


def test_leaving():
    facts = {0: at(6, leaving=True), 1: at(6), 2: at(6, leaving=True)}
    found = plan(view(0, 1, 2), facts, [told(FaultEvent.LINK_DELAY_HIGH)])
    assert (found.view.members, found.view.departed) == (actors(1), actors(0, 2))
    assert (found.view.member_reason, found.view.fault, found.view.regime) == ("finished", None, S)
    assert (found.trigger, found.decision) == (None, None)


def test_all_leave():
    found = plan(view(0, 1), {0: at(6, leaving=True), 1: at(6, leaving=True)}).view
    assert (found.members, found.cohorts, found.departed) == ([], [], actors(0, 1))


def test_a_leave_waits_for_late_members_and_a_death_goes_before_it():
    facts = {0: at(6, leaving=True), 1: at(5), 2: at(6)}
    assert plan(view(0, 1, 2), facts) == Drains(6, actors(1))
    found = plan(view(0, 1, 2, 3), {**facts, 3: dead()}, [death_of(3)]).view
    assert (found.members, found.behind, found.source) == (actors(0, 1, 2), actors(1), Actor(0))


@pytest.mark.parametrize(("staying_at", "regime", "left", "source"), [
    (6, C, True, Actor(1)),
    (5, C, False, Actor(0)),  # only the one that leaves knows step 6: it helps first
    (5, E, True, None),
])  # fmt: skip
def test_leaving_while_a_roll_forward_is_due(staying_at, regime, left, source):
    current = view(0, 1, 2, regime=regime, cut_step=6)
    found = plan(current, {0: at(6, leaving=True), 1: at(staying_at), 2: at(5)}).view
    assert found.departed == (actors(0) if left else [])
    assert found.source == source
    assert all(m in found.members for m in found.behind)


@pytest.mark.parametrize(("regime", "fault", "debts", "then"), [
    (S, FaultEvent.LINK_DELAY_HIGH, [], C),
    (C, FaultEvent.LINK_DELAY_HIGH, [S], E),
    (C, FaultEvent.STABLE_SYNC, [], S),
    (C, FaultEvent.STABLE_SYNC, [S], C),
    (C, FaultEvent.STABLE_SYNC, [C], C),
    (E, FaultEvent.RECOVERY_DETECTED, [S], C),
    (E, FaultEvent.RECOVERY_DETECTED, [S, C], E),
    (E, FaultEvent.STABLE_SYNC, [], E),
])  # fmt: skip
def test_open_debts_hold_back_climbs_only(regime, fault, debts, then):
    found = plan(view(0, 1, regime=regime), {0: at(3), 1: at(3)}, [told(fault)], iter(debts))
    assert found.view.regime is then
    assert found.view.fault is (fault if then is not regime else None)
    assert (found.decision is not None) == (then is not regime)


@pytest.mark.parametrize(("regime", "fault", "voided"), [
    (C, FaultEvent.STABLE_SYNC, [Dot(0, 0, 4)]),
    (S, FaultEvent.LINK_DELAY_HIGH, []),
])  # fmt: skip
def test_a_climb_voids_what_is_in_flight(regime, fault, voided):
    found = plan(view(0, 1, regime=regime), {0: at(3, 4), 1: at(3)}, [told(fault)]).view
    assert (found.voided, found.in_flight) == (voided, [Dot(0, 0, 4)])


@pytest.mark.parametrize("triggers", [[], [told(None)], [told(FaultEvent.STABLE_SYNC)]])
def test_no_change_gives_the_same_view_again(triggers):
    found = plan(view(0, 1, epoch=4), {0: at(3, 4), 1: at(3)}, triggers)
    assert isinstance(found, Plan)
    same = view(0, 1, epoch=5, cut_step=3, in_flight=[Dot(0, 0, 4)], reason="nothing to change")
    assert found == Plan(same, None, None)


def test_the_last_to_leave_settle_their_debts_first():
    """Some were known to leave when the ballot began, all are when they answer, and a debt stands."""
    current = view(0, 1, regime=C)
    facts = {0: at(5, 5, leaving=True), 1: at(5, leaving=True)}
    first = plan(current, facts, debts=[S]).view
    assert (first.members, first.regime) == (actors(0, 1), C)
    assert plan(current, facts).view.members == []


# ---- who was stopped, and what may have been decided ------------------------------------------------


def stopped(decided: int = 0, issued: int = 0) -> Facts:
    return Facts(decided=decided, issued=issued, dead=True, stopped=True)


def test_the_view_says_who_was_stopped_and_who_died():
    facts = {Actor(0): at(5), Actor(1): stopped(5), Actor(2): at(5)}
    found = plan_next(view(0, 1, 2), facts, [], [], POLICY, AGENT)
    assert (found.view.member_reason, found.view.reason) == ("stopped", "rank 1 stopped")
    facts[Actor(2)] = dead(5)
    found = plan_next(view(0, 1, 2), facts, [], [], POLICY, AGENT)
    assert (found.view.member_reason, found.view.reason) == (
        "failed",
        "rank 2 died, rank 1 stopped",
    )
    del facts[Actor(2)]
    found = plan_next(view(0, 1, 2), facts, [], [], POLICY, AGENT)
    assert found.view.reason == "rank 1 stopped, rank 2 did not answer"


@pytest.mark.parametrize(
    ("lost", "void"),
    [(dead(5), False), (dead(6), True), (stopped(6), True), (stopped(5), False)],
    ids=["died before", "died with it", "stopped with it", "stopped before"],
)
def test_a_living_author_s_dot_is_void_if_the_lost_rank_may_have_decided_its_step(lost, void):
    facts = {Actor(0): at(5, issued=6), Actor(1): at(5), Actor(2): lost}
    found = plan_next(view(0, 1, 2), facts, [], [], POLICY, AGENT)
    assert found.view.in_flight == [Dot(0, 0, 6)]
    assert found.view.voided == ([Dot(0, 0, 6)] if void else [])


def test_a_step_that_a_survivor_decided_keeps_its_dot():
    facts = {Actor(0): at(6, issued=6), Actor(1): at(5), Actor(2): dead(6)}
    found = plan_next(view(0, 1, 2), facts, [], [], POLICY, AGENT)
    assert (found.view.cut_step, found.view.voided, found.view.behind) == (6, [], [Actor(1)])


@pytest.mark.parametrize("launched", [True, False])
def test_a_rank_of_which_nothing_is_known_may_have_decided_what_all_had_launched(launched):
    facts = {
        Actor(0): at(5, issued=6, launched_all=True),
        Actor(1): at(5, launched_all=launched),
    }
    found = plan_next(view(0, 1, 2), facts, [], [], POLICY, AGENT)
    assert found.view.voided == ([Dot(0, 0, 6)] if launched else [])


# ---- a death that is newer than the facts ---------------------------------------------------------


@pytest.mark.parametrize("regime", [S, C, E])
def test_a_member_that_ended_after_it_had_answered_is_judged_by_the_view_that_removes_it(regime):
    """Else its death would pass for judged, and it would be a member for ever."""
    current = view(0, 1, 2, regime=regime)
    certified = msgspec.structs.replace(death_of(2), certified=True)
    found = plan(current, {0: at(3), 1: at(3), 2: at(3)}, [certified])
    assert (found.view.regime, found.view.members) == (regime, actors(0, 1, 2))
    assert not judged(certified, [found.view])
    after = plan(found.view, {0: at(3), 1: at(3), 2: dead(3)}, [certified])
    assert after.view.departed == actors(2)
    assert judged(certified, [after.view])


def test_a_host_that_was_suspected_and_answers_is_judged():
    found = plan(view(0, 1, 2), {0: at(3), 1: at(3), 2: at(3)}, [death_of(2)])
    assert (found.view.regime, found.view.members) == (C, actors(0, 1, 2))
    assert judged(death_of(2), [found.view])
