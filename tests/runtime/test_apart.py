"""Cohorts apart, level and one again: real sums, real channel, one process."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from cascade_runtime.agent.protocol import Reconciled
from cascade_runtime.delivery import Snapshot, Step
from cascade_runtime.rank import deltas
from cascade_runtime.rank.apart import KEPT_STEPS, Apart, Came
from cascade_runtime.rank.channel import BOUND
from cascade_runtime.rank.objects import ModelObjects
from cascade_runtime.rank.reducer import StepReducer
from cascade_runtime.vocabulary.fault import FaultEvent
from cascade_runtime.vocabulary.identity import Actor, Clock, Dot
from tests.agent.facts import told
from tests.runtime.apart_rig import World

PACE = told(None, subject=2)
K = 2
"""Objects: parameters and optimizer."""


@pytest.fixture(params=["sgd", "adam", "clamps"])
def world(request: pytest.FixtureRequest) -> Iterator[World]:
    made = World(adam=request.param == "adam", clamps=request.param == "clamps")
    made.step(0, 1, 2)
    made.step(0, 1, 2)
    yield made
    made.close()


def test_both_cohorts_hold_both_sums(world: World) -> None:
    world.part()
    for _ in range(6):
        world.step(0, 1)
        world.step(2)
        world.settle()
    assert world[0].bytes == world[1].bytes
    assert world[0].member.frontier == world[1].member.frontier
    for rank in (0, 1, 2):
        held = Clock(world[rank].apart.upto())
        assert held.upto(Actor(0)) > 2 * K and held.upto(Actor(2)) > 0


def test_a_fold_is_a_step_later_than_its_choice_and_acknowledged_a_step_after_that(
    world: World,
) -> None:
    world.part()
    world.step(2)
    world.settle()
    lone = world[2].channel
    folded = []
    for _ in range(4):
        world.step(0, 1)
        world.settle()
        folded.append((world[0].member.frontier.upto(Actor(2)), lone._deltas.acked[Actor(0)]))
    assert folded == [(0, 0), (K, 0), (K, K), (K, K)]


def test_rows_of_a_fold_are_of_parameters_and_name_their_causes(world: World) -> None:
    world.part()
    world.step(0, 1)
    world.settle()
    world.step(2)
    world.settle()
    world.step(2)
    issued = world[2].recorder.of("updates", action="issued", object="params/0")
    assert [u["deps"] for u in issued] == [[], world[0].member.last_dots[:1]]
    theirs = [
        (u["action"], u["object"], u["dot"].counter)
        for u in world[2].recorder.of("updates")
        if u["dot"].rank == 0 and u["dot"].counter > 2 * K
    ]
    assert theirs == [("applied", "params/0", 2 * K + 1), ("discarded", "optim", 2 * K + 2)]


def test_level_and_one_again(world: World) -> None:
    world.part()
    for _ in range(5):
        world.step(0, 1)
    world.settle()
    world.step(2)
    world.step(0, 1)
    new = world.walk(PACE)
    assert len(new.cohorts) == 1
    assert [level.origin for level in new.levels] == [Actor(0), Actor(2)]
    assert new.optim_from == Actor(0)
    before = world[2].bytes
    assert not world[2].apart.is_clear
    world.step(0, 1, 2)
    assert world[2].bytes != before
    assert len({world[r].bytes for r in (0, 1, 2)}) == 1
    digests = [r.member.objects.digest(K - 1) for r in world.ranks.values()]
    assert len(set(digests)) == 1, "optimizer state differs"
    assert all(r.apart.is_clear and r.apart.sums is None for r in world.ranks.values())
    assert {r.member.decided for r in world.ranks.values()} == {9}
    assert all(r.member.frontier == world[0].member.frontier for r in world.ranks.values())
    world.step(0, 1, 2)
    assert len({world[r].bytes for r in (0, 1, 2)}) == 1
    told_digests = {r.link.of(Reconciled)[-1].digest for r in world.ranks.values()}
    assert len(told_digests) == 1


def test_a_levelling_again_before_the_fold(world: World) -> None:
    """The same sums come once more, from whoever is level."""
    world.part()
    world.step(0, 1)
    world.step(2)
    first = world.walk(PACE)
    world[1].member.is_apart = True  # it had not become level before the next walk began
    world[1].member.decided = first.cuts[0].step
    again = world.walk()
    assert again.optim_from is not None
    world.step(0, 1, 2)
    assert len({world[r].bytes for r in (0, 1, 2)}) == 1


def test_cohorts_are_cut_as_they_were(world: World) -> None:
    world.part()
    world.step(0, 1)
    world.step(2)
    new = world.walk(told(None))
    assert len(new.cohorts) == 2
    assert new.levels
    for _ in range(6):
        world.step(2)
        world.step(0, 1)
        world.settle()
    assert world[0].bytes == world[1].bytes
    world.walk(PACE)
    world.step(0, 1, 2)
    assert len({world[r].bytes for r in (0, 1, 2)}) == 1


def test_the_bound(world: World) -> None:
    world.part()
    world.settle()
    for _ in range(BOUND):
        assert not world[0].channel.must_wait
        world.step(0, 1)
        world.settle()
    assert world[0].channel.must_wait
    world.step(2)
    world.settle()
    assert not world[0].channel.must_wait


def test_two_that_wait_for_each_other_go_on(world: World) -> None:
    """A cohort of one folds while it waits."""
    world.part(connected=False)
    for _ in range(BOUND):
        world.step(0, 1)
    for _ in range(BOUND):
        world.step(2)
    assert world[0].channel.must_wait and world[2].channel.must_wait
    world.connect()
    world.settle()
    world[2].channel.fold_more()
    world.settle()
    assert not world[0].channel.must_wait


def test_parted_and_one_again_before_anybody_has_a_base(world: World) -> None:
    world.part(connected=False)
    for rank in world.ranks.values():
        rank.apart.sums = None  # in the middle of a loop's turn: no step has begun since
    world[0].apart.ensure_base()
    world.step(0, 1)
    world.walk(PACE)
    world.step(0, 1, 2)
    assert len({world[r].bytes for r in (0, 1, 2)}) == 1


def test_a_dead_ranks_cohort_is_one_with_the_others_in_eventual(world: World) -> None:
    world.part()
    world.step(0, 1)
    world.step(2)
    dots = world[2].member.last_dots
    new = world.walk(told(FaultEvent.LINK_DELAY_HIGH))
    assert (len(new.cohorts), str(new.regime)) == (1, "EVENTUAL")
    for rank in world.ranks.values():
        rank.member.reconcile()
    reports = {r.link.of(Reconciled)[-1].digest for r in world.ranks.values()}
    assert len(reports) == 1, "what they are about to become is the same"
    assert all(d is not None for d in dots)


def test_a_job_that_keeps_copies_of_its_own_is_bound() -> None:
    world = World()
    assert not world[0].member.facts(launched_all=False).is_bound
    for rank in world.ranks.values():
        for parameter in rank.model.parameters():
            rank.optimizer.state[parameter]["master"] = parameter.detach().double().float()
    world[0].apart.look_at_optimizer()
    assert world[0].member.facts(launched_all=False).is_bound
    world[1].optimizer.state = torch.optim.SGD(world[1].model.parameters(), lr=0.1).state
    world[1].apart.look_at_optimizer()
    assert not world[1].member.is_bound


def _keep_masters(world: World, rank: int) -> None:
    for parameter in world[rank].model.parameters():
        world[rank].optimizer.state[parameter]["master"] = parameter.detach().clone()


def test_copies_that_begin_after_some_steps_are_found(world: World) -> None:
    """Look-ahead keeps its slow weights from its first k steps on."""
    world[0].apart.look_at_optimizer()
    assert not world[0].member.is_bound
    _keep_masters(world, 0)
    world[0].apart.look_at_optimizer()
    assert world[0].member.is_bound


def test_copies_that_begin_apart_bring_all_together(world: World) -> None:
    world.part()
    world.step(0, 1)
    world.step(2)
    said: list[str] = []
    world[2].apart.on_bound = said.append
    _keep_masters(world, 2)
    world[2].apart.look_at_optimizer()
    assert said == ["the optimizer keeps parameters of its own (master)"]
    new = world.walk(told(None))
    assert (len(new.cohorts), new.reason) == (1, "rank 2 cannot step by itself")


def test_whatever_an_optimizer_keeps_it_is_not_raised_into_a_step(world: World) -> None:
    parameter = next(iter(world[0].model.parameters()))
    world[0].optimizer.state[parameter] = {"odd": object()}
    world[0].apart.look_at_optimizer()
    assert world[0].member.is_bound


def test_parameters_that_cannot_be_exchanged_keep_the_job_together() -> None:
    world = World()
    rank = world[0]
    table = torch.nn.Parameter(torch.ones(2).int(), requires_grad=False)
    rank.model.register_parameter("table", table)
    rank.member.objects = ModelObjects(rank.model, rank.optimizer)
    Apart(rank.member, rank.apart._state, may_part=False)
    assert not rank.member.is_bound
    Apart(rank.member, rank.apart._state)
    assert rank.member.is_bound


@pytest.mark.parametrize("where", ["__init__", "connect", "pump"])
def test_a_channel_that_cannot_be_had_ends_being_apart_not_the_job(
    world: World, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    def fail(*ignored: object, **named: object) -> None:
        raise OSError("Too many open files")

    said: list[str] = []
    world[2].apart.on_bound = said.append
    with monkeypatch.context() as patch:
        patch.setattr(deltas.Deltas, where, fail)
        world.part(connected=False)
        world[2].channel.pump()
        world.step(0, 1)
        world.step(2)
    assert said and "Too many open files" in said[0]
    assert not world[2].channel.is_open and not world[2].channel.must_wait
    assert len(world.walk(told(None)).cohorts) == 1
    world.step(0, 1, 2)
    assert len({world[r].bytes for r in (0, 1, 2)}) == 1


def test_history_is_bounded_however_long_cohorts_are_apart(world: World) -> None:
    world.part()
    for _ in range(3 * KEPT_STEPS):
        world[2].apart._note(Actor(2), [Step(1, [])])
    assert len(world[2].apart._steps[Actor(2)]) <= 2 * KEPT_STEPS
    assert KEPT_STEPS > 2 * BOUND


def test_an_update_whose_cause_is_void_is_folded_all_the_same(world: World) -> None:
    world.part()
    world.step(2)
    sums = world[2].apart.sums
    assert sums is not None
    steps = [Step(3 * K, [Dot(7, 0, 1)])]
    came = Came(Snapshot(Actor(0), 3 * K, [], steps), bytearray(sums.num_sum_bytes))
    world[2].apart.fold([came])
    assert world[2].member.frontier.upto(Actor(0)) == 3 * K


@pytest.mark.parametrize("is_apart", [True, False])
def test_who_leaves_with_a_step_that_its_optimizer_skipped_answers_walks(is_apart: bool) -> None:
    """A decided step is in the sums once the optimizer has stepped, and only then is a walk answered."""
    reducer: Any = StepReducer.__new__(StepReducer)
    done: list[str] = []
    reducer.member = SimpleNamespace(is_apart=is_apart)
    reducer._step = SimpleNamespace(is_decided=True)
    reducer.end_step = lambda: done.append("ended")
    reducer._walking = SimpleNamespace(leave=lambda: done.append("left"))
    reducer.aside = SimpleNamespace(turn=nullcontext())
    reducer.leave()
    assert done == ["ended"] * is_apart + ["left"]


@pytest.mark.parametrize("served_by", ["answer_owed", "serve_pending", "hold_in_eventual"])
def test_cohorts_part_at_the_beginning_of_a_step_for_one_and_in_it_for_another(
    world: World, served_by: str
) -> None:
    """Both launch the same: a member without a base would leave out what the other waits for."""
    parted = world.parted_view()
    world[0].member.begin_step()
    world[0].member.commit(parted)
    world[0].apart.committed(parted, step_open=True)
    world[0].channel.open(parted)

    late = world[1]
    walking: Any = SimpleNamespace(
        answer_owed=lambda: None, serve_pending=lambda: None, hold_in_eventual=lambda: None
    )
    setattr(walking, served_by, lambda: late.commit(parted))
    reducer: Any = StepReducer.__new__(StepReducer)
    reducer.member, reducer._step, reducer._walking = late.member, late.open_step, walking
    reducer._apart, reducer._channel = late.apart, late.channel
    reducer._waiting = SimpleNamespace(feeds=None)
    reducer.begin_forward()

    labels = [[p.label for p in r.channel.parts(r.open_step)] for r in (world[0], late)]
    assert labels == [["folds"], ["folds"]]


def test_who_leaves_folds_before_the_others_are_level_and_is_made_level_once_more(
    world: World,
) -> None:
    """Random schedules found it: a walk came between, and both sums were folded twice."""
    world.part()
    world.step(0, 1)
    world.step(2)
    world[0].member.leaving = True
    first = world.walk(told(None))
    world[0].apart.fold_pending()  # no step of it comes in which to fold
    folded = world[0].bytes
    for rank in (1, 2):  # they had not become level before the next walk began
        world[rank].member.is_apart = True
    world[1].member.decided, world[2].member.decided = (cut.step for cut in first.cuts)
    assert world.walk(told(None)).optim_from is not None
    world[0].apart.fold_pending()
    assert world[0].bytes == folded
    applied = world[0].recorder.of("updates", action="applied", object="params/0")
    dots = [u["dot"] for u in applied]
    assert len(dots) == len(set(dots))
