"""Objects of a model: the cut, the sizes, the digests."""

from __future__ import annotations

import copy
import math
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from cascade_runtime.rank.objects import PIECE_BYTES, ModelObjects, raw_bytes

FAST = settings(deadline=None, max_examples=60)
DTYPES = (torch.float32, torch.float64, torch.bfloat16, torch.float16)


class Shapes(nn.Module):
    """Parameters and buffers of the given shapes."""

    def __init__(
        self,
        parameters: list[tuple[tuple[int, ...], torch.dtype]],
        buffers: tuple[tuple[int, ...], ...] = (),
    ) -> None:
        super().__init__()
        for number, (shape, dtype) in enumerate(parameters):
            value = torch.arange(math.prod(shape)).reshape(shape).to(dtype)
            self.register_parameter(f"p{number}", nn.Parameter(value))
        for number, shape in enumerate(buffers):
            self.register_buffer(f"b{number}", torch.zeros(shape, dtype=torch.int64))


shapes = st.lists(
    st.tuples(st.lists(st.integers(0, 6), max_size=3).map(tuple), st.sampled_from(DTYPES)),
    min_size=1,
    max_size=6,
)


def objects_of(model: nn.Module, *arguments: Any, **options: Any) -> ModelObjects:
    return ModelObjects(model, torch.optim.SGD(model.parameters(), lr=0.1), *arguments, **options)


def digests(objects: ModelObjects) -> list[str]:
    return [objects.digest(i) for i in range(len(objects.names))]


# ---- the cut --------------------------------------------------------------------------------------


@given(parameters=shapes, piece_bytes=st.integers(8, 300))
@FAST
def test_every_byte_of_every_parameter_is_in_exactly_one_piece(parameters, piece_bytes):
    model = Shapes(parameters)
    objects = objects_of(model, piece_bytes)
    pieces = objects.names[:-1]
    assert pieces == [f"params/{i}" for i in range(len(pieces))]
    read = b""
    for index in range(len(pieces)):
        tensors = list(objects._piece_tensors(index))
        piece = b"".join(bytes(raw_bytes(t)) for t in tensors)
        assert 0 < len(piece) <= piece_bytes
        assert objects.num_bytes(index) == len(piece)
        read += piece
    assert read == b"".join(bytes(raw_bytes(p)) for p in model.parameters())


@given(parameters=shapes, piece_bytes=st.integers(8, 300))
@FAST
def test_the_cut_is_the_same_for_the_same_names_and_shapes(parameters, piece_bytes):
    one, other = Shapes(parameters), Shapes(parameters)
    with torch.no_grad():
        for parameter in other.parameters():
            parameter.add_(1)
    mine, theirs = objects_of(one, piece_bytes), objects_of(other, piece_bytes)
    assert mine.names == theirs.names
    sizes = [o.num_bytes(i) for o in (mine, theirs) for i in range(len(o.names))]
    assert sizes[: len(mine.names)] == sizes[len(mine.names) :]
    assert mine.identity() == theirs.identity()


def test_identity_tells_names_shapes_and_dtypes_apart():
    f32, f64 = torch.float32, torch.float64
    models = [
        Shapes([((2, 3), f32)]),
        Shapes([((3, 2), f32)]),
        Shapes([((2, 3), f64)]),
        Shapes([((2, 3), f32)], buffers=((1,),)),
        nn.Linear(3, 2, bias=False),
    ]
    assert len({objects_of(model).identity() for model in models}) == len(models)


def test_names_are_pieces_buffers_optim():
    model = Shapes([((4,), torch.float32)], buffers=((2,), (3, 2)))
    objects = objects_of(model)
    assert objects.names == ["params/0", "buffers", "optim"]
    assert objects.readable == ["params/0", "buffers"]
    assert [b.shape for b in objects.buffers] == [(2,), (3, 2)]
    assert objects.num_bytes(1) == 8 * 8
    plain = objects_of(model, with_buffers=False)
    assert plain.names == ["params/0", "optim"]
    assert plain.buffers == []


def test_a_tied_parameter_is_in_one_piece_only():
    model = nn.ModuleDict({"a": nn.Linear(4, 4, bias=False), "b": nn.Linear(4, 4, bias=False)})
    model["b"].weight = model["a"].weight
    assert objects_of(model).num_bytes(0) == 4 * 16


def test_the_default_limit_is_25_mb():
    model = Shapes([((7_000_000,), torch.float32)])
    objects = objects_of(model)
    assert [objects.num_bytes(i) for i in (0, 1)] == [PIECE_BYTES, 28_000_000 - PIECE_BYTES]


# ---- digests --------------------------------------------------------------------------------------


@given(parameters=shapes, piece_bytes=st.integers(8, 300), data=st.data())
@FAST
def test_a_digest_changes_with_any_single_element_and_no_other_digest_does(
    parameters, piece_bytes, data
):
    model = Shapes(parameters)
    objects = objects_of(model, piece_bytes)
    full = [p for p in model.parameters() if p.numel()]
    if not full:
        assert objects.names == ["optim"]
        return
    before = digests(objects)
    parameter = data.draw(st.sampled_from(full))
    element = data.draw(st.integers(0, parameter.numel() - 1))
    with torch.no_grad():
        parameter.view(-1)[element] += 1
    after = digests(objects)
    assert sum(a != b for a, b in zip(before, after, strict=True)) == 1
    with torch.no_grad():
        parameter.view(-1)[element] -= 1
    assert digests(objects) == before


def test_the_sign_of_a_zero_is_a_difference():
    model = Shapes([((3,), torch.float32)])
    objects = objects_of(model)
    before = objects.digest(0)
    with torch.no_grad():
        model.p0[0] = -0.0
    assert objects.digest(0) != before


def test_a_buffer_of_any_type_counts():
    model = nn.BatchNorm1d(3)
    model.register_buffer("mask", torch.tensor([True, False]))
    model.register_buffer("empty", torch.empty(0))
    objects = objects_of(model)
    buffers = objects.names.index("buffers")
    seen = {objects.digest(buffers)}
    model.running_var[1] += 1
    seen.add(objects.digest(buffers))
    model.num_batches_tracked += 1
    seen.add(objects.digest(buffers))
    model.mask[1] = True
    seen.add(objects.digest(buffers))
    assert len(seen) == 4


def test_a_transposed_parameter_digests_by_its_values():
    model, other = nn.Linear(3, 4, bias=False), nn.Linear(3, 4, bias=False)
    value = torch.randn(4, 3)
    model.weight = nn.Parameter(value)
    other.weight = nn.Parameter(value.t().contiguous().t())
    assert not other.weight.is_contiguous()
    mine, theirs = objects_of(model, 8), objects_of(other, 8)
    assert digests(mine) == digests(theirs)


# ---- the optimizer --------------------------------------------------------------------------------


def train(model: nn.Module, optimizer: torch.optim.Optimizer, steps: int = 2) -> None:
    generator = torch.Generator().manual_seed(1)
    for _ in range(steps):
        optimizer.zero_grad()
        model(torch.randn(5, 3, generator=generator)).square().mean().backward()
        optimizer.step()


KINDS = {
    "sgd": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9),
    "adamw": lambda p: torch.optim.AdamW(p, lr=0.1),
    "rprop": lambda p: torch.optim.Rprop(p, lr=0.1),
}


@pytest.mark.parametrize("kind", KINDS)
def test_equal_optimizer_states_have_equal_digests_and_others_not(kind):
    model = nn.Linear(3, 2)
    twin = copy.deepcopy(model)
    pair = [(m, KINDS[kind](m.parameters())) for m in (model, twin)]
    mine, theirs = (ModelObjects(m, o) for m, o in pair)
    fresh = mine.digest(1)
    assert mine.names[1] == "optim"
    for m, o in pair:
        train(m, o)
    assert mine.digest(1) == theirs.digest(1) != fresh
    assert mine.num_bytes(1) == theirs.num_bytes(1) > 0
    for state in pair[0][1].state.values():
        for value in state.values():
            before = theirs.digest(1)
            if isinstance(value, torch.Tensor):
                value.view(-1)[-1] += 1
                assert mine.digest(1) != before
                value.view(-1)[-1] -= 1
    train(*pair[1], steps=1)
    assert mine.digest(1) != theirs.digest(1)


def test_what_an_optimizer_keeps_as_plain_numbers_counts_too():
    model = nn.Linear(3, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    objects = ModelObjects(model, optimizer)
    optimizer.state[model.weight]["count"] = 3
    before = objects.digest(1)
    optimizer.state[model.weight]["count"] = 4
    assert objects.digest(1) != before
    assert objects.num_bytes(1) == 0


def test_the_order_in_which_state_was_made_does_not_matter():
    model = nn.Linear(3, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    objects = ModelObjects(model, optimizer)
    found = set()
    for names in (("a", "b"), ("b", "a")):
        optimizer.state[model.weight] = {name: torch.full((2,), ord(name)) for name in names}
        found.add(objects.digest(1))
    assert len(found) == 1


def test_state_of_one_parameter_is_not_taken_for_another_s():
    model = nn.ParameterList([nn.Parameter(torch.zeros(2)), nn.Parameter(torch.zeros(2))])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    objects = ModelObjects(model, optimizer)
    found = set()
    for parameter in model:
        optimizer.state.clear()
        optimizer.state[parameter] = {"momentum_buffer": torch.ones(2)}
        found.add(objects.digest(1))
    assert len(found) == 2


def test_buffers_are_looked_up_as_the_module_names_them() -> None:
    module = torch.nn.Sequential(
        torch.nn.BatchNorm1d(4), torch.nn.Sequential(torch.nn.BatchNorm1d(4))
    )
    module.register_buffer("none", None)
    module.register_buffer("mean", torch.zeros(3))
    module[1].register_buffer("same", module.mean)
    objects = ModelObjects(module, torch.optim.SGD(module.parameters(), lr=0.1))
    module.mean = module.mean + 1
    module.none = torch.ones(2)
    module[1][0].running_mean = torch.ones(4)
    objects.look_up_buffers()
    assert [name for name, _ in objects._buffers] == [name for name, _ in module.named_buffers()]
    for mine, theirs in zip(objects.buffers, module.buffers(), strict=True):
        assert mine is theirs
