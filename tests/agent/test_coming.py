"""Newcomers on their way: who a view has on record, when a walk tells of others, who joins by itself."""

from __future__ import annotations

import pytest

from cascade_runtime.agent.coming import GONE_S, UNCHANGED, Coming
from cascade_runtime.agent.joins import Joins
from cascade_runtime.agent.plan import Plan, plan_next
from cascade_runtime.agent.protocol import Level, View
from cascade_runtime.vocabulary.identity import Actor, Dot
from cascade_runtime.vocabulary.policy import CohortRules, load_policy
from cascade_runtime.vocabulary.regime import Regime
from tests.agent.facts import AGENT, actors, at, view

NOW = 100.0
NEW = Actor(5)
C = Regime.CAUSAL


def coming(*told: Actor) -> Coming:
    made = Coming()
    made.look(told, NOW)
    return made


def named(found: Coming, new: View) -> View:
    return found.named(new, view(0, 1, regime=C, coming=[Actor(9)]))


def test_a_newcomer_is_a_cohort_on_record_and_no_member():
    told = named(coming(NEW), view(0, 1, regime=C))
    assert (told.members, told.cohorts) == (actors(0, 1), [actors(0, 1)])
    assert told.recorded_cohorts == [actors(0, 1), [NEW]]


@pytest.mark.parametrize("regime", [Regime.STRONG, Regime.EVENTUAL])
def test_where_all_are_one_cohort_nobody_is_named(regime):
    assert named(coming(NEW), view(0, 1, regime=regime)).coming == []


def test_who_is_a_member_by_then_is_not_on_its_way():
    back = Actor(1, 2)
    assert named(coming(NEW, back, Actor(1, 1)), view(0, 5, regime=C)).coming == [back]


def test_a_walk_tells_of_another_newcomer_once():
    now = view(0, 1, regime=C)
    found = coming(NEW)
    assert found.is_news(now)
    assert not found.is_news(named(found, now))
    assert not found.is_news(view(0, 1)), "in STRONG the policy's move comes first"
    apart = view(0, 1, regime=C, cohorts=[actors(0), actors(1)])
    assert not found.is_news(apart), "a walk would make all level"


def test_a_newcomer_that_ended_is_taken_off_the_record():
    found = coming(NEW)
    now = named(found, view(0, 1, regime=C))
    found.forget([NEW])
    assert found.is_news(now)
    assert named(found, now).coming == []


def test_who_takes_back_that_it_is_level_has_not_gone_meanwhile():
    found = coming(NEW)
    now = named(found, view(0, 1, regime=C))
    found.look([], NOW + GONE_S / 2)
    assert not found.is_news(now)
    found.look([], NOW + GONE_S * 2)
    assert found.is_news(now)


def test_a_walk_for_nothing_else_says_who_is_on_the_way():
    same = view(0, 1, regime=C, reason=UNCHANGED)
    assert named(coming(NEW), same).reason == "rank 5 is on its way, a cohort of its own"
    both = named(coming(NEW, Actor(6)), same)
    assert both.reason == "ranks 5, 6 are on their way, each a cohort of its own"
    assert named(coming(), same).reason == "rank 9 will not come"
    assert coming().named(same, same).reason == UNCHANGED
    assert named(coming(NEW), view(0, 1, regime=C, reason="rank 2 died")).reason == "rank 2 died"


# ---- joining ---------------------------------------------------------------------------------------


def join(current, *newcomers: Actor, split: bool = True, **facts):
    policy = load_policy()
    policy.cohorts = CohortRules(split=split)
    told = {m: at(4, issued=5, author=1, **facts) for m in current.members}
    ready = [Level(n, current.members[0], current.epoch, 4) for n in newcomers]
    plan = plan_next(current, told, [], [], policy, AGENT, ready)
    assert isinstance(plan, Plan)
    assert plan.view.joined == list(newcomers)
    return plan.view


def test_below_strong_a_newcomer_steps_by_itself_first():
    new = join(view(1, 2, regime=C), NEW, Actor(6))
    assert new.members == actors(1, 2, 5, 6)
    assert new.cohorts == [actors(1, 2), [NEW], [Actor(6)]]
    assert new.reason == "ranks 5, 6 joined, stepping by themselves"


def test_the_author_of_the_others_stays_so_beside_a_lower_newcomer():
    apart = join(view(1, 2, regime=C), Actor(0, 1))
    assert (apart.in_flight, apart.voided) == ([Dot(1, 0, 5)], [])
    together = join(view(1, 2, regime=C), Actor(0, 1), split=False)
    assert together.voided == [Dot(1, 0, 5)]


@pytest.mark.parametrize(
    ("regime", "split", "facts"),
    [
        (Regime.STRONG, True, {}),
        (C, False, {}),
        (C, True, {"is_bound": True}),
    ],
    ids=[
        "STRONG is one cohort",
        "the policy parts nobody",
        "an optimizer keeps its own parameters",
    ],
)
def test_else_it_steps_with_all(regime, split, facts):
    new = join(view(1, 2, regime=regime), NEW, split=split, **facts)
    assert new.cohorts == [actors(1, 2, 5)]
    assert new.reason == "rank 5 joined"


# ---- held back -------------------------------------------------------------------------------------


def test_why_nobody_is_served_while_cohorts_are_apart_is_told_once_a_view():
    joins = Joins()
    apart = view(0, 1, 2, regime=C, epoch=3, cohorts=[actors(0, 1), actors(2)])
    assert joins.held_back(NEW, apart) == (
        "rank 5 waits to join: rank 2 steps by itself, and nobody joins before all step together"
    )
    assert joins.held_back(NEW, apart) is None
    assert joins.held_back(Actor(6), apart) is not None
    several = view(0, 1, 2, 3, regime=C, epoch=4, cohorts=[actors(0, 1), actors(2), actors(3)])
    assert "ranks 2, 3 step by themselves" in (joins.held_back(NEW, several) or "")
    assert joins.held_back(NEW, view(0, 1, 2, regime=C, epoch=5)) is None
