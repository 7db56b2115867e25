"""What CAUSAL with several cohorts computes: the same bytes everywhere, and training that still learns."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from dashboard.demo import train
from tests.runtime.causal_reference import Timeline, World, values_of

SEED = 7


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def build():
    return train.build_model(SEED)


def build_tiny():
    torch.manual_seed(SEED)
    return nn.Sequential(nn.Linear(64, 6), nn.Tanh(), nn.Linear(6, train.CLASSES))


def batches(rank, step):
    return train.batch_of(SEED, rank, step)


def sgd(model):
    return torch.optim.SGD(model.parameters(), lr=0.05)


def adamw(model):
    return torch.optim.AdamW(model.parameters(), lr=0.003, weight_decay=0.1)


OPTIMIZERS = {"sgd": sgd, "momentum": train.build_optimizer, "adamw": adamw}


# ---- bytes ---------------------------------------------------------------------------------------


@settings(max_examples=12, deadline=None)
@given(st.data())
def test_any_schedule_gives_the_bytes_of_the_definition(data):
    cohorts = data.draw(st.sampled_from([[[0], [1]], [[0, 1], [2]], [[1, 2], [0], [3]]]))
    optimize = OPTIMIZERS[data.draw(st.sampled_from(list(OPTIMIZERS)))]
    world = World(cohorts, build_tiny, optimize, batches)
    which = st.integers(0, len(cohorts) - 1)
    for _ in range(data.draw(st.integers(1, 25))):
        if data.draw(st.booleans()):
            world.step(data.draw(which))
        else:
            source, target = data.draw(st.tuples(which, which))
            if source != target:
                world.deliver(source, target)
    for cohort in world.cohorts:
        assert cohort.bytes == world.expected(cohort)
    world.level()
    assert {c.bytes for c in world.cohorts} == {world.expected(world.cohorts[0])}
    assert len({tuple(c.frontier.dots()) for c in world.cohorts}) == 1


# ---- weights -------------------------------------------------------------------------------------


@pytest.mark.parametrize("cohorts", [[[0], [1], [2], [3]], [[0, 1, 2], [3]], [[0, 3], [1, 2]]])
def test_one_round_of_plain_sgd_is_one_averaged_step(cohorts):
    """Losses here are means over equal batches, and without BatchNorm nothing else is local."""
    apart = World(cohorts, build_tiny, sgd, batches)
    together = World([[0, 1, 2, 3]], build_tiny, sgd, batches)
    for _ in range(20):
        together.step(0)
        for i in range(len(cohorts)):
            apart.step(i)
        apart.level()
    start = apart.replay.base
    for mine, theirs, first in zip(
        values_of(apart.cohorts[0].model), values_of(together.cohorts[0].model), start, strict=True
    ):
        moved = np.abs(theirs - first).max()
        assert np.abs(mine - theirs).max() < 1e-5 * max(moved, 0.1)


# ---- learning ------------------------------------------------------------------------------------


def held_out_loss(model):
    model.eval()
    pairs = [train.batch_of(SEED, 99, s) for s in range(8)]
    with torch.no_grad():
        losses = [float(nn.CrossEntropyLoss()(model(x), y)) for x, y in pairs]
    model.train()
    return sum(losses) / len(losses)


SAMPLES = 4 * train.BATCH * 60


def trained(cohorts, step_s, optimize):
    timeline = Timeline(World(cohorts, build, optimize, batches), step_s, bound=16)
    timeline.run(SAMPLES, train.BATCH)
    return timeline


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_rank_six_times_slower_costs_time_no_more_and_the_loss_stays_near(name):
    """At equal samples; each optimizer with its own state in each cohort."""
    start = held_out_loss(build())
    lock_step = trained([[0, 1, 2, 3]], [0.6], OPTIMIZERS[name])
    apart = trained([[0, 1, 2], [3]], [0.1, 0.6], OPTIMIZERS[name])
    assert lock_step.now / apart.now > 2, "samples a second"
    assert apart.furthest <= 16
    expected = held_out_loss(lock_step.world.cohorts[0].model)
    apart.world.level()
    loss = held_out_loss(apart.world.cohorts[0].model)
    assert loss < expected + 0.1 * (start - expected), (name, start, expected, loss)
    assert {c.bytes for c in apart.world.cohorts} == {apart.world.expected(apart.world.cohorts[0])}
