"""The parts of a rejoin alone: bucket maps, training states, who serves, who is waited for."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn

from cascade_runtime.agent.joins import TRIES, Joins, source_for
from cascade_runtime.agent.plan import Awaits, Plan, plan_next
from cascade_runtime.agent.protocol import Facts, Level
from cascade_runtime.agent.respawn import Respawn
from cascade_runtime.rank.bucket_map import BucketMap
from cascade_runtime.rank.objects import ModelObjects
from cascade_runtime.rank.snapshot import TrainingState
from cascade_runtime.rank.told_buckets import ToldBuckets
from cascade_runtime.vocabulary.errors import NotSupported
from cascade_runtime.vocabulary.identity import Actor, Dot
from cascade_runtime.vocabulary.policy import load_policy
from cascade_runtime.vocabulary.regime import Regime
from tests.agent.facts import actors, view
from tests.runtime import rejoin_job
from tests.runtime.rejoin_job import Recipe

# ---- bucket maps ---------------------------------------------------------------------------------

SIZES = {"a": 2, "b": 3, "c": 1}


def test_gradients_are_packed_as_the_members_pack_them_and_back() -> None:
    own = [torch.tensor([1.0, 2, 10, 20, 30]), torch.tensor([5.0])]
    told = [["c", "b"], ["a"]]
    mapped = BucketMap(told, [["a", "b"], ["c"]], own, SIZES)
    assert [t.tolist() for t in mapped.packed] == [[5, 10, 20, 30], [1, 2]]
    back = mapped.unpack([t * 2 for t in mapped.packed])
    assert [t.tolist() for t in back] == [[2, 4, 20, 40, 60], [10]]


def test_other_parameters_are_refused() -> None:
    with pytest.raises(NotSupported, match="not of the same parameters"):
        BucketMap([["a"]], [["b"]], [torch.zeros(3)], SIZES)


def test_places_of_parameters_are_those_in_the_members_buckets() -> None:
    parameters = {"a": torch.zeros(2), "b": torch.zeros(3), "c": torch.zeros(1)}
    told = ToldBuckets([["c", "b"], ["a"]], parameters)
    future = told.add(["a", "b"], torch.tensor([1.0, 2, 10, 20, 30]))
    told.add(["c"], torch.tensor([5.0]))
    packed = told.packed()
    for bucket, values in enumerate(packed):
        assert told.parameters_of(bucket)() == [p for p, _ in told.offsets(bucket)]
        for parameter, first in told.offsets(bucket):
            found = values[first : first + parameter.numel()].tolist()
            assert found == {2: [1, 2], 3: [10, 20, 30], 1: [5]}[parameter.numel()]
    assert not told.resolve(packed)
    assert future.value().tolist() == [1, 2, 10, 20, 30]


# ---- training states -----------------------------------------------------------------------------


def made(recipe: str, seed: int = 0) -> tuple[nn.Module, Recipe, TrainingState]:
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(6, 5), nn.BatchNorm1d(5), nn.Linear(5, 2))
    built = Recipe(recipe, model)
    objects = ModelObjects(model, built.optimizer)
    return model, built, TrainingState(model, built.optimizer, lambda: built._schedulers, objects)


def trained(model: nn.Module, recipe: Recipe, steps: int, log: TrainingState | None = None):
    entries = []
    handle = recipe.optimizer.register_step_pre_hook(
        lambda *_: log and entries.append((log.tell_groups(), log.tell_gradients()))
    )
    for step in range(steps):
        torch.manual_seed(step)
        recipe.optimizer.zero_grad()
        model(torch.randn(8, 6)).square().sum().backward()
        recipe.step()
    handle.remove()
    return entries


@pytest.mark.parametrize("name", rejoin_job.RECIPES)
def test_a_snapshot_and_the_log_give_the_same_state(name: str) -> None:
    model, recipe, state = made(name)
    trained(model, recipe, 13)
    other, other_recipe, taken = made(name, seed=1)
    taken.take(copy.deepcopy(state.tell()))
    everything = range(len(state.objects.names))
    assert taken.digests(everything) == state.digests(everything)
    for groups, gradients in trained(model, recipe, 9, log=state):
        taken.replay(groups, gradients)
    taken.take_rest(state.tell_rest())
    assert taken.digests(everything) == state.digests(everything)
    trained(model, recipe, 5)  # the same learning rates from here on
    trained(other, other_recipe, 5)
    assert taken.digests(everything) == state.digests(everything)
    assert [g["lr"] for g in other_recipe.optimizer.param_groups] == [
        g["lr"] for g in recipe.optimizer.param_groups
    ]


def test_what_is_frozen_and_gradients_that_are_added_to_come_along() -> None:
    model, recipe, state = made("sgd")
    trained(model, recipe, 3)
    recipe.optimizer.zero_grad()
    model[0].requires_grad_(False)
    model(torch.randn(8, 6)).square().sum().backward()
    other, _, taken = made("sgd", seed=1)
    other(torch.randn(8, 6)).square().sum().backward()
    taken.take(copy.deepcopy(state.tell()))
    assert taken.trained == state.trained == ["1.weight", "1.bias", "2.weight", "2.bias"]
    for mine, theirs in zip(other.parameters(), model.parameters(), strict=True):
        assert (mine.grad is None) == (theirs.grad is None)
        assert mine.grad is None or mine.grad.equal(theirs.grad)


def test_a_loss_scaler_goes_on_where_the_others_are() -> None:
    model, recipe, state = made("sgd")
    scaler = torch.amp.GradScaler("cpu", init_scale=16.0, growth_interval=3)
    state._schedulers = lambda: [scaler]
    for _ in range(4):
        recipe.optimizer.zero_grad()
        scaler.scale(model(torch.randn(8, 6)).square().sum()).backward()
        scaler.step(recipe.optimizer)
        scaler.update()
    _, _, taken = made("sgd", seed=1)
    fresh = torch.amp.GradScaler("cpu", init_scale=16.0, growth_interval=3)
    with pytest.raises(NotSupported, match="the others"):
        taken.take(state.tell())
    taken._schedulers = lambda: [fresh]
    taken.take(state.tell())
    assert fresh.state_dict() == scaler.state_dict()
    assert (fresh.get_scale(), fresh._get_growth_tracker()) == (32.0, 1)


def test_what_was_told_does_not_change_with_the_teller() -> None:
    model, recipe, state = made("adamw")
    trained(model, recipe, 2)
    told = state.tell()
    before = copy.deepcopy(told)
    trained(model, recipe, 2)
    assert all(told["params"][n].equal(before["params"][n]) for n in told["params"])
    assert all(a[2]["exp_avg"].equal(b[2]["exp_avg"]) for a, b in zip(
        told["state"], before["state"], strict=True))  # fmt: skip


@pytest.mark.parametrize(("theirs", "why"), [("chained", "schedulers"), ("one_cycle", "groups")])
def test_another_script_is_refused_and_nothing_is_changed(theirs: str, why: str) -> None:
    model, recipe, state = made(theirs)
    trained(model, recipe, 2)
    mine, _, taken = made("adamw", seed=1)
    before = copy.deepcopy(mine.state_dict())
    with pytest.raises(NotSupported, match=why):
        taken.take(state.tell())
    assert all(v.equal(before[k]) for k, v in mine.state_dict().items())


def test_an_optimizer_of_more_than_the_model_cannot_be_told() -> None:
    model = nn.Linear(2, 2)
    optimizer = torch.optim.SGD([*model.parameters(), nn.Parameter(torch.ones(1))], lr=0.1)
    state = TrainingState(model, optimizer, list, ModelObjects(model, optimizer))
    with pytest.raises(NotSupported, match="not the model's"):
        state.tell()


# ---- who serves, who is waited for ---------------------------------------------------------------


def test_the_author_serves_only_when_nobody_else_is_there() -> None:
    now = view(0, 1, 2)
    assert [source_for(now, set(), attempt) for attempt in range(3)] == [
        Actor(1), Actor(2), Actor(1),
    ]  # fmt: skip
    assert source_for(now, {Actor(1), Actor(2)}, 5) == Actor(0)
    assert source_for(now, set(actors(0, 1, 2)), 0) is None


def level(decided: int = 7, epoch: int = 0, source: int | None = 1, incarnation: int = 1) -> Level:
    told = None if source is None else Actor(source)
    return Level(Actor(3, incarnation), told, epoch, decided)


def test_who_is_level_by_the_log_of_a_member_is_ready() -> None:
    joins, now = Joins(), view(0, 1, 2)
    joins.on_level(level())
    assert joins.ready(now, set()) == [level()]
    assert joins.ready(now, {Actor(1)}) == [], "its source is lost"
    assert joins.ready(view(0, 2), set()) == [], "its source is gone"
    assert joins.ready(view(0, 1, 2, epoch=1), set()) == [], "it stands in an epoch that is over"
    assert joins.ready(view(0, 1, 3), set()) == [], "its rank is a member still"
    assert joins.ready(view(0, 1, 2, regime=Regime.EVENTUAL), set()) == []
    joins.on_level(level(source=None))
    assert joins.ready(now, set()) == []


def test_only_the_newest_of_a_rank_is_ready() -> None:
    joins = Joins()
    joins.on_level(level(incarnation=2))
    joins.on_level(level(incarnation=1))
    assert [n.actor.incarnation for n in joins.ready(view(0, 1), set())] == [2]
    joins.ended(Actor(3, 2))
    assert joins.told() == []


def test_who_holds_everybody_up_is_not_waited_for_for_ever() -> None:
    joins = Joins()
    for epoch in range(TRIES):
        joins.on_level(level(epoch=epoch))
        now = view(0, 1, 2, epoch=epoch)
        assert joins.ready(now, set())
        joins.give_up([Actor(3, 1)], epoch)
        assert joins.ready(now, set()) == []
    joins.on_level(level(epoch=TRIES))
    assert joins.ready(view(0, 1, 2, epoch=TRIES), set()) == []


# ---- the plan ------------------------------------------------------------------------------------


def planned(newcomers: list[Level], decided=(7, 7, 7), **more):
    facts = {
        a: Facts(decided=d, **more) for a, d in zip(actors(0, 1, 2), decided, strict=True)
    }  # fmt: skip
    return plan_next(view(0, 1, 2), facts, [], [], load_policy(), Actor(9), newcomers)


def test_who_stands_at_the_cut_joins_and_the_regime_stays() -> None:
    plan = planned([level()])
    assert isinstance(plan, Plan)
    assert plan.view.members == [*actors(0, 1, 2), Actor(3, 1)]
    assert plan.view.joined == [Actor(3, 1)]
    assert plan.view.cohorts == [plan.view.members]
    assert plan.view.regime is plan.view.from_regime
    assert (plan.view.fault, plan.view.member_reason) == (None, "joined")
    assert plan.view.reason == "rank 3.1 came back"
    assert plan.view.cut_step == 7


def test_who_is_a_step_behind_is_waited_for() -> None:
    assert planned([level(decided=6)]) == Awaits(7, [Actor(3, 1)])


@pytest.mark.parametrize("decided", [0, 5, 8])
def test_who_is_elsewhere_does_not_join(decided: int) -> None:
    plan = planned([level(decided=decided)])
    assert isinstance(plan, Plan)
    assert plan.view.joined == []


def test_nobody_joins_while_ranks_leave() -> None:
    plan = planned([level()], leaving=True)
    assert isinstance(plan, Plan)
    assert plan.view.joined == []


def test_a_newcomer_that_becomes_the_author_voids_what_is_open() -> None:
    facts = {
        Actor(1): Facts(decided=7, issued=9, frontier=[Dot(1, 0, 8)]),
        Actor(2): Facts(decided=7),
    }
    first = Level(Actor(0, 1), Actor(2), 0, 7)
    plan = plan_next(view(1, 2), facts, [], [], load_policy(), Actor(9), [first])
    assert isinstance(plan, Plan)
    assert plan.view.voided == plan.view.in_flight == [Dot(1, 0, 9)]
    last = Level(Actor(3, 1), Actor(2), 0, 7)
    plan = plan_next(view(1, 2), facts, [], [], load_policy(), Actor(9), [last])
    assert isinstance(plan, Plan)
    assert plan.view.voided == []


# ---- starting again ------------------------------------------------------------------------------


def test_a_rank_is_started_again_as_often_as_was_said_and_ever_later() -> None:
    rule = Respawn(3, 1.0)
    assert [rule.after(Actor(2, n)) for n in range(4)] == [
        (Actor(2, 1), 1.0), (Actor(2, 2), 2.0), (Actor(2, 3), 4.0), None,
    ]  # fmt: skip
    assert Respawn(100, 1.0).after(Actor(0, 50)) == (Actor(0, 51), 60.0)
    assert Respawn(0, 1.0).after(Actor(0)) is None
