"""A model's parameters may not change once it is attached; what holds them may."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.nn.utils import parametrizations

from cascade_runtime.rank.held_parameters import HeldParameters
from cascade_runtime.rank.wrap import rebuild, take_over
from cascade_runtime.vocabulary.errors import NotSupported


@pytest.fixture(autouse=True)
def group_of_one(tmp_path: Any) -> Iterator[None]:
    store: Any = dist.FileStore(str(tmp_path / "store"), 1)
    dist.init_process_group("gloo", store=store, rank=0, world_size=1)
    yield
    dist.destroy_process_group()


@pytest.fixture
def ddp() -> DistributedDataParallel:
    inner = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
    made = DistributedDataParallel(nn.Sequential(nn.Linear(4, 4), nn.ReLU(), inner))
    take_over(made)
    return made


def swap_activation(net: Any) -> None:
    net[1] = nn.GELU()


def drop_activation(net: Any) -> None:
    del net[2][1]


def add_dropout(net: Any) -> None:
    net.append(nn.Dropout())


def wrap_layer(net: Any) -> None:
    net[0] = nn.Sequential(net[0])


def freeze(net: Any) -> None:
    net[0].requires_grad_(False)


def load(net: Any) -> None:
    net.load_state_dict({name: torch.zeros_like(t) for name, t in net.state_dict().items()})


def set_data(net: Any) -> None:
    net[0].weight.data = torch.zeros(4, 4)


@pytest.mark.parametrize(
    "change",
    [swap_activation, drop_activation, add_dropout, wrap_layer, freeze, load, set_data],
)
def test_the_same_parameters_may_be_held_otherwise(
    ddp: DistributedDataParallel, change: Callable[[Any], None]
) -> None:
    held = HeldParameters(ddp)
    change(ddp.module)
    held.check(3)
    held.check(4)
    assert held.all == list(ddp.parameters())


def new_layer(net: Any) -> None:
    net[2][0] = nn.Linear(4, 4)


def new_parameter(net: Any) -> None:
    net[2][0].weight = nn.Parameter(torch.zeros(4, 4))


def one_more(net: Any) -> None:
    net[2].append(nn.Linear(4, 4))


def one_less(net: Any) -> None:
    del net[2][0]


def tied(net: Any) -> None:
    net[2][0].weight = net[0].weight


def exchanged(net: Any) -> None:
    net[0], net[2][0] = net[2][0], net[0]


def weight_norm(net: Any) -> None:
    parametrizations.weight_norm(net[2][0])


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (new_layer, "2.0.weight, 2.0.bias changed"),
        (new_parameter, ": 2.0.weight changed"),
        (one_more, ": 2.2.weight, 2.2.bias changed"),
        (one_less, "2.0.weight, 2.0.bias changed"),
        (tied, ": 2.0.weight changed"),
        (exchanged, "0.weight, 0.bias, 2.0.weight and 1 more changed"),
        (weight_norm, "2.0.weight, 2.0.parametrizations.weight.original0"),
    ],
)
def test_others_are_refused_in_a_sentence(
    ddp: DistributedDataParallel, change: Callable[[Any], None], named: str
) -> None:
    held = HeldParameters(ddp)
    held.check(2)
    change(ddp.module)
    with pytest.raises(NotSupported) as refused:
        held.check(3)
    assert named in str(refused.value)
    assert "step 3" in str(refused.value)


def test_another_model_inside_is_refused(ddp: DistributedDataParallel) -> None:
    held = HeldParameters(ddp)
    ddp.module = nn.Linear(4, 4)
    with pytest.raises(NotSupported, match=r"0\.weight, 0\.bias, 2\.0\.weight and 3 more"):
        held.check(3)


def test_ddp_rebuilt_around_the_same_model_is_the_same(ddp: DistributedDataParallel) -> None:
    held = HeldParameters(ddp)
    rebuild(ddp, ddp.process_group)
    held.check(3)
