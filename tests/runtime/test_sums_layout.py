"""Where parameters lie and in what form sums come makes no difference; what is refused; memory."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from cascade_runtime.rank.sums import Own, Sums, Told
from cascade_runtime.vocabulary.errors import NotSupported
from tests.runtime.sums_rig import ORIGINS, Side, all_bytes, stir


def test_layout_in_memory_makes_no_difference():
    plain = nn.Conv2d(4, 6, 3)
    last = nn.Conv2d(4, 6, 3)
    last.load_state_dict(plain.state_dict())
    last.to(memory_format=torch.channels_last)
    assert not last.weight.is_contiguous()
    sums = [Sums(m.parameters(), 50) for m in (plain, last)]
    for model, one in zip((plain, last), sums, strict=True):
        for step in range(3):
            stir(model.parameters(), step)
            one.advance(Own(ORIGINS[0], step + 1, 0.5))
    assert bytes(sums[0].payload(ORIGINS[0])) == bytes(sums[1].payload(ORIGINS[0]))
    assert all_bytes(plain.parameters()) == all_bytes(last.parameters())


def test_parameters_may_move_to_other_storage():
    side = Side("fp32", ORIGINS[0])
    side.step(1)
    for p in side.parameters:
        p.data = p.data.clone()
    twin = Side("fp32", ORIGINS[0])
    twin.step(1)
    side.step(2)
    twin.step(2)
    assert side.bytes == twin.bytes


def test_a_sum_is_taken_from_tensors_and_from_any_bytes():
    there = Side("mixed", ORIGINS[1])
    there.step(1)
    data = bytes(there.sums.payload(ORIGINS[1]))
    shifted = memoryview(bytearray(b"x" + data))[1:]
    seen = set()
    for form in (data, bytearray(data), shifted, there.sums.flat(ORIGINS[1])):
        here = Side("mixed", ORIGINS[0])
        here.sums.advance(None, [Told(ORIGINS[1], 1, form)])
        seen.add(here.bytes)
    assert seen == {there.bytes}


def test_a_sum_of_another_size_changes_nothing():
    side = Side("mixed", ORIGINS[0])
    side.step(1)
    before, upto = side.bytes, dict(side.sums.upto)
    with pytest.raises(ValueError, match="a sum of 7 bytes from rank 2"):
        side.sums.advance(Own(ORIGINS[0], 2, 1.0), [Told(ORIGINS[3], 1, bytes(7))])
    own = Told(ORIGINS[0], 2, bytes(side.sums.num_sum_bytes))
    with pytest.raises(ValueError, match="its own sum"):
        side.sums.advance(Own(ORIGINS[0], 2, 1.0), [own])
    assert side.bytes == before and side.sums.upto == upto


@pytest.mark.parametrize("dtype", [torch.int64, torch.bool])
def test_integers_are_refused(dtype):
    with pytest.raises(NotSupported, match="cannot be exchanged between cohorts"):
        Sums([torch.zeros(3, dtype=dtype)])


def test_a_model_without_parameters_is_no_special_case():
    sums = Sums([])
    sums.advance(Own(ORIGINS[0], 1, 1.0), [Told(ORIGINS[1], 1, b"")])
    assert (sums.num_sum_bytes, sums.num_bytes) == (0, 0)
    assert bytes(sums.payload(ORIGINS[1])) == b""


def test_memory_is_the_base_a_sum_an_origin_and_chunks_of_scratch():
    parameters = [nn.Parameter(torch.zeros(1 << 20)), nn.Parameter(torch.zeros(1 << 18))]
    model = sum(p.nbytes for p in parameters)
    sums = Sums(parameters)
    scratch = 4 * 4 << 16
    assert sums.num_bytes == model + scratch
    for step in range(1, 6):
        sums.advance(Own(ORIGINS[0], step, 0.5), [Told(ORIGINS[1], step, bytes(model))])
        assert sums.num_bytes == 3 * model + scratch
    assert sums.num_sum_bytes == model
