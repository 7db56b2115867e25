"""Taking a DistributedDataParallel over in place, so that no part of it needs a rank that may die."""

from __future__ import annotations

import inspect
from typing import Any

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from cascade_runtime.vocabulary.errors import BadUsage, NotSupported

_MIB = 1024 * 1024


def check_model(model: object, optimizer: object, *, enforce: bool) -> DistributedDataParallel:
    """The model, when this release can hold its consistency.

    Raises:
        NotSupported: not a DDP model, sharded parameters, gradients that go round the comm hook, a
            device without a tested group factory.
        BadUsage: an optimizer that does not hold the model's parameters.
    """
    if not isinstance(model, DistributedDataParallel):
        kind = type(model).__name__
        if _is_sharded(model):
            raise NotSupported(
                f"{kind} shards the model: a lost rank is a lost shard, so regimes cannot be walked",
                where="attach",
                hint="this release covers replicated models (DistributedDataParallel)",
            )
        raise NotSupported(
            f"attach needs a DistributedDataParallel model and got {kind}",
            where="attach",
            hint="wrap the model first: model = DistributedDataParallel(model)",
        )
    if _is_sharded(model.module):
        raise NotSupported(
            "the model inside DistributedDataParallel has sharded parameters (DTensor)",
            where="attach",
            hint="this release covers replicated models only",
        )
    if not isinstance(optimizer, torch.optim.Optimizer):
        raise BadUsage(
            f"attach needs the optimizer and got {type(optimizer).__name__}", where="attach"
        )
    held = {id(p) for group in optimizer.param_groups for p in group["params"]}
    if not any(id(p) in held for p in model.parameters()):
        raise BadUsage(
            "this optimizer holds none of the model's parameters",
            where="attach",
            hint="give the optimizer that steps this model",
        )
    if enforce and (
        getattr(model, "_delay_all_reduce_params", None)
        or getattr(model, "_use_python_reducer", False)
    ):
        raise NotSupported(
            "this model reduces gradients outside of DistributedDataParallel's buckets",
            where="attach",
            hint="leave delay_all_reduce_named_params and the python reducer out, "
            'or use mode="observe"',
        )
    if enforce and model.device_type != "cpu":
        raise NotSupported(
            f"enforce is tested with gloo on CPU only, and the model is on {model.device_type}",
            where="attach",
            hint="cascade run --observe records the same rows there and changes nothing",
        )
    return model


def _is_sharded(model: object) -> bool:
    if type(model).__name__ in ("FullyShardedDataParallel", "FSDPModule"):
        return True
    if not isinstance(model, torch.nn.Module):
        return False
    return any(type(p).__name__ == "DTensor" for p in model.parameters())


def take_over(ddp: DistributedDataParallel) -> None:
    """Rebuild ``ddp`` in place over a group of this rank alone.

    The user's object stays the user's object; inside, DDP's reducer no longer shares a process group
    with ranks that may die. What it did with the others (averaging, the buffers' broadcast) is the
    comm hook's from here on; the bucket order, which it would have agreed on with them, is verified.
    """
    options = _constructor_options(ddp)
    solo = dist.new_group([dist.get_rank()], use_local_synchronization=True)
    # The old reducer's hooks sit on the parameters; both would fire.
    ddp.reducer._remove_autograd_hooks()
    rebuilt = DistributedDataParallel(ddp.module, process_group=solo, **options)
    before = dict(vars(ddp))
    vars(ddp).clear()
    vars(ddp).update(vars(rebuilt))
    # The user's: mode and hooks (the same dictionaries, which the handles point at), and additions.
    own = {name for name in before if name not in vars(rebuilt) and not name.startswith("_")}
    vars(ddp).update({name: before[name] for name in own | _mode_and_hooks()})


def _mode_and_hooks() -> set[str]:
    """Attributes of every module, but for what it is made of."""
    made_of = {"_parameters", "_buffers", "_non_persistent_buffers_set", "_modules"}
    return vars(torch.nn.Module()).keys() - made_of


def _constructor_options(ddp: DistributedDataParallel) -> dict[str, Any]:
    known = inspect.signature(DistributedDataParallel.__init__).parameters
    options: dict[str, Any] = {
        "device_ids": ddp.device_ids,
        "output_device": ddp.output_device,
        # None keeps DDP's small first bucket, with which communication starts early.
        "bucket_cap_mb": None if ddp.bucket_bytes_cap_default else ddp.bucket_bytes_cap / _MIB,
        "find_unused_parameters": ddp.find_unused_parameters,
        "gradient_as_bucket_view": ddp.gradient_as_bucket_view,
        "static_graph": ddp.static_graph,
    }
    if "forward_sync_buffers" in known:
        options["forward_sync_buffers"] = False
    else:
        options["broadcast_buffers"] = False
    if "init_sync" in known:
        options["init_sync"] = False
    return options
