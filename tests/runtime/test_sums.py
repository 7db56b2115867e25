"""Bytes of the canonical fold: in any order of arrival the same, and those that numpy says."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from cascade_runtime.rank.objects import raw_bytes
from cascade_runtime.rank.sums import Own, Sums
from tests.runtime.sums_rig import BF16, F16, F32, F64, ORIGINS, SHAPES, Side, make, stir, told

each = pytest.mark.parametrize("kind", SHAPES)


# ---- against numpy -------------------------------------------------------------------------------


def half(array, dtype):
    """Rounded to a half type and back."""
    return torch.from_numpy(array).to(dtype).to(F32).numpy()


class Brute:
    """The definition, an element at a time; half types as float32 that were rounded."""

    def __init__(self, parameters):
        self.dtypes = [p.dtype for p in parameters]
        self.base = self.read(parameters)
        self.sums = {}
        self.last = self.base

    def read(self, parameters):
        return [
            p.detach().to(F64 if p.dtype == F64 else F32).numpy().astype(float) for p in parameters
        ]

    def wide(self, i, x):
        return np.float64(x) if self.dtypes[i] == F64 else np.float32(x)

    def step(self, parameters, origin, weight):
        mine = self.sums.setdefault(origin, [[0.0] * len(b) for b in self.base])
        for i, now in enumerate(self.read(parameters)):
            for j, x in enumerate(now):
                delta = self.wide(i, x) - self.wide(i, self.last[i][j])
                mine[i][j] = float(self.wide(i, mine[i][j]) + delta * self.wide(i, weight))
        self.fold()

    def fold(self):
        self.last = []
        for i, base in enumerate(self.base):
            out = []
            for j, x in enumerate(base):
                value = self.wide(i, x)
                for origin in sorted(self.sums):
                    value = value + self.wide(i, self.sums[origin][i][j])
                out.append(float(value))
            array = np.array(out, dtype=np.float64 if self.dtypes[i] == F64 else np.float32)
            if self.dtypes[i] in (F16, BF16):
                array = half(array, self.dtypes[i])
            self.last.append(array.astype(float))


@each
@pytest.mark.parametrize("chunk", [4, 64, None])
def test_it_is_the_definition_element_by_element(kind, chunk):
    parameters = make(kind)
    sums, brute = Sums(parameters, chunk), Brute(parameters)
    for step, origin in enumerate([ORIGINS[1], ORIGINS[0], ORIGINS[1], ORIGINS[3]]):
        stir(parameters, step, size=0.1)
        brute.step(parameters, origin, 0.3)
        sums.advance(Own(origin, step + 1, 0.3))
        for mine, expected in zip(brute.read(parameters), brute.last, strict=True):
            assert mine.tolist() == expected.tolist()


# ---- order of arrival ----------------------------------------------------------------------------


@each
def test_any_order_of_arrival_gives_the_same_bytes(kind):
    sides = [Side(kind, origin) for origin in ORIGINS]
    for i, side in enumerate(sides):
        for step in range(3):
            side.step(10 * i + step)
    all_told = [told(s.sums, s.origin) for s in sides]
    seen = set()
    for order in itertools.permutations(all_told):
        fresh = Side(kind, ORIGINS[0])
        for one in order:
            fresh.sums.advance(None, [one])
        seen.add(fresh.bytes)
    at_once = Side(kind, ORIGINS[0])
    at_once.sums.advance(None, all_told)
    assert seen == {at_once.bytes}
    for side in sides:  # whoever went on by itself until now, too
        side.sums.advance(None, [t for t in all_told if t.origin != side.origin])
        assert side.bytes == at_once.bytes
        assert side.sums.upto == at_once.sums.upto


@settings(max_examples=25, deadline=None)
@given(st.data())
def test_equal_frontiers_equal_bytes_in_any_schedule(data):
    kind = data.draw(st.sampled_from(list(SHAPES)))
    sides = [
        Side(kind, o, data.draw(st.sampled_from([4, 33, 1 << 12])))
        for o in ORIGINS[: data.draw(st.integers(2, 4))]
    ]
    seen = {}
    for seed in range(data.draw(st.integers(1, 20))):
        side = data.draw(st.sampled_from(sides))
        others = data.draw(st.lists(st.sampled_from(sides), unique_by=id, max_size=3))
        newest = [
            told(o.sums, o.origin) for o in others if o is not side and o.origin in o.sums.upto
        ]
        if data.draw(st.booleans()):
            side.step(seed, others=newest)
        else:
            side.sums.advance(None, newest)
        frontier = tuple(sorted(side.sums.upto.items()))
        assert seen.setdefault(frontier, side.bytes) == side.bytes


def test_members_of_one_cohort_compute_the_same_bytes_without_a_message():
    one, other = Side("mixed", ORIGINS[0], 16), Side("mixed", ORIGINS[0], 70)
    for step in range(5):
        one.step(step)
        other.step(step)
    assert one.bytes == other.bytes
    assert bytes(one.sums.payload(ORIGINS[0])) == bytes(other.sums.payload(ORIGINS[0]))


def test_what_is_not_newer_changes_nothing():
    there = Side("fp32", ORIGINS[1])
    there.step(1)
    old = told(there.sums, ORIGINS[1])
    there.step(2)
    here = Side("fp32", ORIGINS[0])
    here.sums.advance(None, [told(there.sums, ORIGINS[1])])
    before = here.bytes
    here.sums.advance(None, [old])
    assert here.bytes == before and here.sums.upto == {ORIGINS[1]: 2}


def test_an_origin_that_moved_nothing_still_counts():
    """-0.0 + 0.0 is 0.0: whoever has folded its update has other bytes than who has not."""
    parameter = nn.Parameter(torch.tensor([-0.0, 1.0]))
    sums = Sums([parameter])
    assert bytes(raw_bytes(parameter))[3] == 0x80
    sums.advance(Own(ORIGINS[0], 1, 1.0))
    assert bytes(raw_bytes(parameter))[3] == 0
    other = nn.Parameter(torch.tensor([-0.0, 1.0]))
    Sums([other]).advance(None, [told(sums, ORIGINS[0])])
    assert bytes(raw_bytes(other)) == bytes(raw_bytes(parameter))


# ---- weights and precision -----------------------------------------------------------------------


def test_weights_of_a_round_make_the_average():
    sides = [Side("fp64", o) for o in ORIGINS]
    start = [p.detach().clone() for p in sides[0].parameters]
    moved = []
    for i, side in enumerate(sides):
        stir(side.parameters, i)
        moved.append([p.detach() - s for p, s in zip(side.parameters, start, strict=True)])
        side.sums.advance(Own(side.origin, 1, 0.25))
    everything = [told(s.sums, s.origin) for s in sides]
    sides[0].sums.advance(None, everything[1:])
    for i, (p, s) in enumerate(zip(sides[0].parameters, start, strict=True)):
        torch.testing.assert_close(p.detach(), s + sum(m[i] for m in moved) / 4)


@pytest.mark.parametrize("dtype", [BF16, F16])
def test_small_deltas_of_half_parameters_are_not_lost(dtype):
    """A quarter of a last place, forty times: in the parameters' own type it would stay at none."""
    parameter = nn.Parameter(torch.full((8,), 1.0, dtype=dtype))
    place = torch.finfo(dtype).eps
    sums = Sums([parameter])
    for step in range(40):
        with torch.no_grad():
            parameter.add_(place)
        sums.advance(Own(ORIGINS[0], step + 1, 0.25))
    assert parameter.tolist() == [1.0 + 10 * place] * 8


def test_what_was_written_after_a_fold_is_in_the_next_delta():
    side = Side("fp32", ORIGINS[0])
    side.step(1, weight=1.0)
    with torch.no_grad():
        for p in side.parameters:
            p.clamp_(-0.5, 0.5)
    side.step(2, weight=1.0)
    assert all(float(p.detach().abs().max()) < 0.51 for p in side.parameters)


def test_drift_is_what_the_fold_moved():
    sides = [Side("mixed", o) for o in ORIGINS[:2]]
    sides[1].step(3)
    before = [p.detach().double().clone() for p in sides[0].parameters]
    drift = sides[0].sums.advance(None, [told(sides[1].sums, ORIGINS[1])], measure=True)
    far = torch.cat(
        [p.detach().double() - b for p, b in zip(sides[0].parameters, before, strict=True)]
    )
    assert drift is not None
    assert drift.l2 == pytest.approx(float(far.norm()), rel=1e-6)
    assert drift.largest == pytest.approx(float(far.abs().max()), rel=1e-6)
