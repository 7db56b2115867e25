"""Plans where cohorts part, and where there are several."""

from __future__ import annotations

import msgspec
import pytest

from cascade_runtime.agent.plan import Drains, Plan, plan_next
from cascade_runtime.agent.protocol import Cut, Facts, SumLevel, View
from cascade_runtime.vocabulary.fault import FaultEvent
from cascade_runtime.vocabulary.identity import Actor, Dot
from cascade_runtime.vocabulary.policy import CohortRules, load_policy
from cascade_runtime.vocabulary.regime import Regime
from tests.agent.facts import AGENT, actors, at, dead, death_of, told, view

POLICY = load_policy()
POLICY.cohorts = CohortRules(split=True)
SLOW = told(FaultEvent.RANK_SKEW_HIGH, subject=2)


def next_view(current, facts, *triggers, policy=POLICY) -> View:
    plan = plan_next(current, facts, triggers, [], policy, AGENT)
    assert isinstance(plan, Plan)
    return plan.view


def parted(**fields) -> View:
    return view(0, 1, 2, regime=Regime.CAUSAL, cohorts=[actors(0, 1), actors(2)], **fields)


def apart(decided: int, issued: int = 0, **sums: int) -> Facts:
    """Of a member with these sums, each named by its origin: ``o0=3``."""
    dots = [Dot(int(o[1:]), 0, upto) for o, upto in sums.items()]
    return Facts(decided=decided, issued=issued, is_apart=True, sums=dots, frontier=dots)


ALL = dict(zip(actors(0, 1, 2), (at(4),) * 3, strict=True))


def test_a_straggler_becomes_a_cohort() -> None:
    new = next_view(view(0, 1, 2), ALL, SLOW)
    assert (new.regime, new.fault) == (Regime.CAUSAL, FaultEvent.RANK_SKEW_HIGH)
    assert new.cohorts == [actors(0, 1), actors(2)]
    assert (new.levels, new.cuts, new.optim_from) == ([], [], None)


def test_the_author_as_straggler_and_two_ranks() -> None:
    slow = told(FaultEvent.RANK_SKEW_HIGH, subject=0)
    assert next_view(view(0, 1, 2), ALL, slow).cohorts == [actors(0), actors(1, 2)]
    two = {m: at(4) for m in actors(0, 1)}
    assert next_view(view(0, 1), two, slow).cohorts == [actors(0), actors(1)]


def test_in_causal_a_straggler_is_set_apart_without_a_fall() -> None:
    new = next_view(view(0, 1, 2, regime=Regime.CAUSAL), ALL, SLOW)
    assert (new.regime, new.fault) == (Regime.CAUSAL, None)
    assert new.cohorts == [actors(0, 1), actors(2)]
    assert new.evidence == SLOW.evidence


def test_in_eventual_nobody_parts() -> None:
    new = next_view(view(0, 1, 2, regime=Regime.EVENTUAL), ALL, SLOW)
    assert new.cohorts == [actors(0, 1, 2)]


def test_nobody_parts_on_the_way_to_eventual() -> None:
    """A policy of one's own may say so; members that hold there would never be equal."""
    policy = load_policy()
    policy.cohorts = CohortRules(split=True)
    policy._moves[Regime.CAUSAL, FaultEvent.RANK_SKEW_HIGH] = Regime.EVENTUAL
    new = next_view(view(0, 1, 2, regime=Regime.CAUSAL), ALL, SLOW, policy=policy)
    assert (new.regime, new.cohorts) == (Regime.EVENTUAL, [actors(0, 1, 2)])


@pytest.mark.parametrize("why", ["off", "bound"])
def test_all_stay_together(why: str) -> None:
    policy = load_policy() if why == "off" else POLICY
    facts = ALL | {Actor(1): msgspec.structs.replace(at(4), is_bound=why == "bound")}
    assert next_view(view(0, 1, 2), facts, SLOW, policy=policy).cohorts == [actors(0, 1, 2)]


def test_why_all_stay_together_is_said_once() -> None:
    facts = ALL | {Actor(1): msgspec.structs.replace(at(4), is_bound=True)}
    new = next_view(view(0, 1, 2, regime=Regime.CAUSAL), facts, SLOW)
    assert (new.cohorts, new.evidence) == ([actors(0, 1, 2)], SLOW.evidence)
    assert new.reason == "all stay together: rank 1 cannot step by itself"
    off = next_view(view(0, 1, 2, regime=Regime.CAUSAL), facts, SLOW, policy=load_policy())
    assert (off.evidence, off.reason) == ([], "nothing to change")


def test_nobody_parts_over_a_member_to_be_rolled_forward() -> None:
    facts = ALL | {Actor(1): at(3)}
    new = next_view(view(0, 1, 2, cut_step=4), facts, SLOW)
    assert new.cohorts == [actors(0, 1, 2)]
    assert new.behind == actors(1)


def test_a_rank_that_keeps_the_pace_again_comes_back_level() -> None:
    facts = {
        Actor(0): apart(9, 5, o0=5, o2=1),
        Actor(1): apart(9, 0, o0=5, o2=1),
        Actor(2): apart(6, 3, o0=3, o2=2),
    }
    new = next_view(parted(cut_step=4), facts, told(None, subject=2))
    assert new.cohorts == [actors(0, 1, 2)]
    assert (new.regime, new.fault, new.cut_step) == (Regime.CAUSAL, None, 9)
    assert new.levels == [
        SumLevel(Actor(0), 5, 3, Actor(0)), SumLevel(Actor(2), 2, 1, Actor(2))
    ]  # fmt: skip
    assert new.cuts == [Cut(actors(0, 1), 9), Cut(actors(2), 6)]
    assert new.optim_from == Actor(0)
    assert new.voided == [Dot(2, 0, 3)], "the open step has another author now"


def test_a_stuck_rank_changes_nothing_but_all_become_level() -> None:
    facts = {Actor(0): apart(9, o0=5), Actor(1): apart(9, o0=5), Actor(2): apart(6, o0=3)}
    new = next_view(parted(cut_step=4), facts, told(None))
    assert new.cohorts == [actors(0, 1), actors(2)]
    assert new.optim_from is None
    assert [(level.origin, level.source) for level in new.levels] == [(Actor(0), Actor(0))]


def test_each_cohort_is_drained_by_itself() -> None:
    facts = {Actor(0): apart(9), Actor(1): apart(8), Actor(2): apart(6)}
    plan = plan_next(parted(cut_step=4), facts, [], [], POLICY, AGENT)
    assert plan == Drains(9, actors(1))


def test_whose_collective_failed_is_rolled_forward_and_not_drained_for_ever() -> None:
    facts = {
        Actor(0): apart(9),
        Actor(1): msgspec.structs.replace(apart(8), broken=True),
        Actor(2): apart(6),
    }
    new = next_view(parted(cut_step=4), facts)
    assert new.cut_of(Actor(1)) == Cut(actors(0, 1), 9, Actor(0), actors(1))


def test_a_dead_straggler_leaves_what_was_folded_of_it() -> None:
    facts = {
        Actor(0): apart(9, 6, o0=5, o2=1), Actor(1): apart(9, o0=5), Actor(2): dead(6, issued=4)
    }  # fmt: skip
    new = next_view(parted(cut_step=4), facts, death_of(2))
    assert (new.regime, new.members) == (Regime.EVENTUAL, actors(0, 1))
    assert new.voided == [Dot(2, 0, c) for c in (2, 3, 4)]
    assert new.in_flight == [Dot(0, 0, 6), *new.voided]
    assert new.levels == [SumLevel(Actor(2), 1, 0, Actor(0))]


def test_a_dead_author_was_heard_by_the_straggler_alone() -> None:
    facts = {
        Actor(0): dead(9, issued=7),
        Actor(1): apart(8, o0=5),
        Actor(2): apart(6, 2, o0=6, o2=2),
    }
    new = next_view(parted(cut_step=4), facts, death_of(0))
    assert new.voided == [Dot(0, 0, 7)], "what anybody has folded is no open dot"
    assert SumLevel(Actor(0), 6, 5, Actor(2)) in new.levels


def test_nobody_leaves_before_all_step_together() -> None:
    facts = {Actor(0): apart(9, o0=5), Actor(1): apart(9, o0=5), Actor(2): apart(6)}
    facts[Actor(0)] = msgspec.structs.replace(facts[Actor(0)], leaving=True)
    new = next_view(parted(cut_step=4), facts)
    assert new.members == actors(0, 1, 2)
    assert new.cohorts == [actors(0, 1, 2)]
    assert "leave" in new.reason


def test_a_levelling_that_was_cut_short_is_done_again() -> None:
    """Who is level counts the steps of the one cohort; who is not, those of its own."""
    cuts = [Cut(actors(0, 1), 9), Cut(actors(2), 6)]
    now = view(0, 1, 2, regime=Regime.CAUSAL, cut_step=9, cuts=cuts)
    level = Facts(
        decided=9, sums=[Dot(0, 0, 5), Dot(2, 0, 2)], frontier=[Dot(0, 0, 5), Dot(2, 0, 2)]
    )
    facts = {Actor(0): level, Actor(1): apart(9, o0=5), Actor(2): apart(6, o0=3, o2=2)}
    new = next_view(now, facts)
    assert new.cuts == cuts
    assert (new.cut_step, new.optim_from) == (9, Actor(0))
    assert [(x.origin, x.least) for x in new.levels] == [(Actor(0), 3), (Actor(2), 0)]
