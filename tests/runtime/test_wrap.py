"""Taking a DDP model over in place: what the user sees stays the same; what cannot be held is refused."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import allreduce_hook
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FullyShardedDataParallel, fully_shard
from torch.distributed.tensor import Replicate, distribute_tensor
from torch.nn.parallel import DistributedDataParallel

from cascade_runtime.rank.wrap import check_model, has_hook, rebuild, take_over
from cascade_runtime.vocabulary.errors import BadUsage, NotSupported


@pytest.fixture(scope="module", autouse=True)
def group_of_one(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    store: Any = dist.FileStore(str(tmp_path_factory.mktemp("store") / "store"), 1)
    dist.init_process_group("gloo", store=store, rank=0, world_size=1)
    yield
    dist.destroy_process_group()


def small_model() -> nn.Module:
    torch.manual_seed(3)
    return nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 2))


def sgd(model: nn.Module) -> torch.optim.Optimizer:
    return torch.optim.SGD(model.parameters(), lr=0.1)


def gradients(model: nn.Module, steps: int = 3) -> list[torch.Tensor]:
    """Of some steps: DDP cuts its buckets anew after the first."""
    generator = torch.Generator().manual_seed(5)
    found = []
    for _ in range(steps):
        model.zero_grad()
        model(torch.randn(6, 4, generator=generator)).square().mean().backward()
        found += [p.grad.clone() for p in model.parameters() if p.grad is not None]
    return found


# ---- what stays -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"bucket_cap_mb": 0.0001},
        {"find_unused_parameters": True},
        {"static_graph": True},
        {"gradient_as_bucket_view": True},
    ],
    ids=lambda o: next(iter(o), "default"),
)
@pytest.mark.parametrize("steps_before", [0, 2])
def test_the_gradients_are_the_same_as_before(options: dict[str, Any], steps_before: int) -> None:
    plain = small_model()
    ddp = DistributedDataParallel(copy.deepcopy(plain), **options)
    if steps_before:
        gradients(plain, steps_before)
        gradients(ddp, steps_before)
    take_over(ddp)
    mine, theirs = gradients(ddp), gradients(plain)
    assert len(mine) == len(theirs) == 18
    assert all(torch.equal(a, b) for a, b in zip(mine, theirs, strict=True))
    assert ddp.find_unused_parameters == options.get("find_unused_parameters", False)
    assert ddp.static_graph == options.get("static_graph", False)
    assert ddp.gradient_as_bucket_view == options.get("gradient_as_bucket_view", False)


def test_gradients_are_reduced_once_and_by_the_new_reducer() -> None:
    ddp = DistributedDataParallel(small_model())
    take_over(ddp)
    calls = []

    # DDP checks the annotations of a hook as objects, and here they are strings.
    def hook(state, bucket):
        calls.append(bucket.index())
        future: Any = torch.futures.Future()
        future.set_result(bucket.buffer().mul_(2))
        return future

    ddp.register_comm_hook(None, hook)
    doubled = gradients(ddp, steps=1)
    plain = gradients(small_model(), steps=1)
    assert calls == [0]
    assert all(torch.equal(a, 2 * b) for a, b in zip(doubled, plain, strict=True))


def test_the_old_reducer_no_longer_fires() -> None:
    ddp = DistributedDataParallel(small_model())
    old, calls = ddp.reducer, []

    def hook(state, bucket):
        calls.append(bucket.index())
        future: Any = torch.futures.Future()
        future.set_result(bucket.buffer())
        return future

    ddp.register_comm_hook(None, hook)
    gradients(ddp, steps=1)
    assert calls == [0]
    take_over(ddp)
    gradients(ddp, steps=1)
    assert ddp.reducer is not old
    assert calls == [0]


def test_it_stays_the_user_s_object_over_the_same_module() -> None:
    module = small_model()
    ddp = DistributedDataParallel(module)
    group, same = ddp.process_group, ddp
    parameters, names = [id(p) for p in ddp.parameters()], list(ddp.state_dict())
    take_over(ddp)
    assert ddp is same
    assert ddp.module is module
    assert [id(p) for p in ddp.parameters()] == parameters
    assert list(ddp.state_dict()) == names
    assert ddp.process_group is not group
    assert dist.get_world_size(ddp.process_group) == 1
    assert not ddp.forward_sync_buffers


@pytest.mark.parametrize("training", [True, False])
def test_the_mode_stays(training: bool) -> None:
    ddp = DistributedDataParallel(small_model()).train(training)
    take_over(ddp)
    assert ddp.training is training
    assert ddp.module.training is training


def test_hooks_of_the_user_stay_and_can_still_be_removed() -> None:
    ddp = DistributedDataParallel(small_model())
    seen = []
    handles = [
        ddp.register_forward_pre_hook(lambda *_: seen.append("before")),
        ddp.register_forward_pre_hook(
            lambda module, args, kwargs: seen.append("before, by name"), with_kwargs=True
        ),
        ddp.register_forward_hook(lambda *_: seen.append("after")),
        ddp.register_full_backward_hook(lambda *_: seen.append("backward")),
        ddp.register_state_dict_post_hook(lambda *_: seen.append("state")),
    ]
    take_over(ddp)
    inputs = torch.randn(6, 4, requires_grad=True)
    ddp(inputs).sum().backward()
    ddp.state_dict()
    assert seen == ["before", "before, by name", "after", "backward", "state"]
    seen.clear()
    for handle in handles:
        handle.remove()
    ddp(inputs).sum().backward()
    ddp.state_dict()
    assert seen == []


def test_what_the_user_put_on_the_object_stays() -> None:
    ddp = DistributedDataParallel(small_model())
    ddp.epochs_seen = 4
    take_over(ddp)
    assert ddp.epochs_seen == 4


# ---- what is refused ------------------------------------------------------------------------------


def test_a_ddp_model_and_its_optimizer_pass() -> None:
    ddp = DistributedDataParallel(small_model())
    for enforce in (True, False):
        assert check_model(ddp, sgd(ddp), enforce=enforce) is ddp


def test_an_optimizer_of_some_of_the_parameters_passes() -> None:
    ddp = DistributedDataParallel(small_model())
    check_model(ddp, torch.optim.SGD(list(ddp.parameters())[:1], lr=0.1), enforce=True)


def fsdp() -> nn.Module:
    return FullyShardedDataParallel.__new__(FullyShardedDataParallel)


def fsdp2() -> nn.Module:
    model = nn.Linear(4, 4)
    fully_shard(model, mesh=init_device_mesh("cpu", (1,)))
    return model


@pytest.mark.parametrize("make", [fsdp, fsdp2])
def test_a_sharded_model_is_refused(make: Any) -> None:
    with pytest.raises(NotSupported, match="shards the model"):
        check_model(make(), None, enforce=True)


def test_sharded_parameters_inside_ddp_are_refused() -> None:
    ddp = DistributedDataParallel(small_model())
    mesh = init_device_mesh("cpu", (1,))
    whole = distribute_tensor(torch.zeros(2, 2), mesh, [Replicate()])
    ddp.module.register_parameter("extra", nn.Parameter(whole))
    with pytest.raises(NotSupported, match="sharded parameters"):
        check_model(ddp, sgd(small_model()), enforce=True)


@pytest.mark.parametrize("model", [nn.Linear(2, 2), "model", None], ids=["module", "text", "none"])
def test_what_is_no_ddp_model_is_refused_by_its_name(model: object) -> None:
    with pytest.raises(NotSupported, match=f"got {type(model).__name__}"):
        check_model(model, None, enforce=False)


def test_an_optimizer_of_another_model_is_refused() -> None:
    ddp = DistributedDataParallel(small_model())
    with pytest.raises(BadUsage, match="none of the model's parameters"):
        check_model(ddp, sgd(small_model()), enforce=False)


def test_what_is_no_optimizer_is_refused() -> None:
    ddp = DistributedDataParallel(small_model())
    with pytest.raises(BadUsage, match="got float"):
        check_model(ddp, 0.1, enforce=False)


def test_a_device_that_is_not_tested_is_refused_in_enforce_only() -> None:
    ddp = DistributedDataParallel(small_model())
    ddp.device_type = "cuda"
    check_model(ddp, sgd(ddp), enforce=False)
    with pytest.raises(NotSupported, match="the model is on cuda"):
        check_model(ddp, sgd(ddp), enforce=True)


def test_gradients_that_go_round_the_hook_are_refused_in_enforce_only() -> None:
    module = small_model()
    last = module[3].bias
    ddp = DistributedDataParallel(
        module,
        delay_all_reduce_named_params=[("3.bias", last)],
        param_to_hook_all_reduce=module[0].weight,
    )
    check_model(ddp, sgd(ddp), enforce=False)
    with pytest.raises(NotSupported, match="outside of DistributedDataParallel's buckets"):
        check_model(ddp, sgd(ddp), enforce=True)


def limited(kind: str) -> nn.Module:
    """A module that DDP takes and ``enforce`` does not."""
    if kind == "sparse":
        return nn.Embedding(4, 4, sparse=True)
    module = small_model()
    if kind == "ignored":
        DistributedDataParallel._set_params_and_buffers_to_ignore_for_model(module, ["3.weight"])
    return module


@pytest.mark.parametrize(
    ("kind", "words"),
    [("sparse", "sparse gradients"), ("ignored", r"leave 3\.weight alone")],
)
def test_models_that_are_not_held_whole_are_refused_in_enforce_only(kind: str, words: str) -> None:
    ddp = DistributedDataParallel(limited(kind))
    check_model(ddp, sgd(ddp), enforce=False)
    with pytest.raises(NotSupported, match=words):
        check_model(ddp, sgd(ddp), enforce=True)


def test_layers_with_collectives_of_their_own_are_refused_in_enforce_only() -> None:
    ddp = DistributedDataParallel(small_model())
    ddp.module = nn.SyncBatchNorm.convert_sync_batchnorm(ddp.module)
    check_model(ddp, sgd(ddp), enforce=False)
    with pytest.raises(NotSupported, match="SyncBatchNorm layers run collectives"):
        check_model(ddp, sgd(ddp), enforce=True)


def test_an_optimizer_that_looks_at_its_own_loss_is_refused_in_enforce_only() -> None:
    ddp = DistributedDataParallel(small_model())
    lbfgs = torch.optim.LBFGS(ddp.parameters())
    check_model(ddp, lbfgs, enforce=False)
    with pytest.raises(NotSupported, match="by each rank's own loss"):
        check_model(ddp, lbfgs, enforce=True)


def test_a_model_inside_of_join_is_refused_in_enforce_only() -> None:
    ddp = DistributedDataParallel(small_model())
    with ddp.join():
        check_model(ddp, sgd(ddp), enforce=False)
        with pytest.raises(NotSupported, match="leave join"):
            check_model(ddp, sgd(ddp), enforce=True)


def test_hooks_of_the_user_s_and_of_torch_s_are_seen() -> None:
    ddp = DistributedDataParallel(small_model())
    assert not has_hook(ddp)
    ddp._register_builtin_comm_hook(dist.BuiltinCommHookType.FP16_COMPRESS)
    assert has_hook(ddp)
    other = DistributedDataParallel(small_model())
    other.register_comm_hook(None, allreduce_hook)
    assert has_hook(other)


def test_rebuilt_after_freezing_it_reduces_what_is_trained() -> None:
    plain = small_model()
    ddp = DistributedDataParallel(copy.deepcopy(plain))
    take_over(ddp)
    gradients(ddp)
    gradients(plain)
    group = ddp.process_group
    for module in (plain, ddp.module):
        module[0].requires_grad_(False)
    rebuild(ddp, group)
    mine, theirs = gradients(ddp), gradients(plain)
    assert ddp.process_group is group
    assert len(mine) == len(theirs) == 12
    assert all(torch.equal(a, b) for a, b in zip(mine, theirs, strict=True))


def test_taken_over_in_no_sync_it_reduces_when_that_is_over() -> None:
    ddp = DistributedDataParallel(small_model())
    buckets = []

    def hook(state, bucket):
        buckets.append(bucket.index())
        future: torch.futures.Future[torch.Tensor] = torch.futures.Future()
        future.set_result(bucket.buffer())
        return future

    with ddp.no_sync():
        take_over(ddp)
        ddp.register_comm_hook(None, hook)
        gradients(ddp)
        assert not buckets
    gradients(ddp)
    assert buckets


def test_refusals_leave_the_model_as_it_was(tmp_path: Path) -> None:
    ddp = DistributedDataParallel(small_model())
    before = dict(vars(ddp))
    with pytest.raises(BadUsage):
        check_model(ddp, sgd(small_model()), enforce=True)
    assert vars(ddp) == before
