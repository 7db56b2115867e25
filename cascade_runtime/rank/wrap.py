"""Taking a DistributedDataParallel over in place, so that no part of it needs a rank that may die."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
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
    if enforce and isinstance(optimizer, torch.optim.LBFGS):
        raise NotSupported(
            "LBFGS decides by each rank's own loss when to stop, so the ranks would part",
            where="attach",
            hint="use an optimizer that looks at gradients only",
        )
    if enforce:
        check_enforceable(model)
        refuse_join(model)
    return model


def _is_sharded(model: object) -> bool:
    if type(model).__name__ in ("FullyShardedDataParallel", "FSDPModule"):
        return True
    if not isinstance(model, torch.nn.Module):
        return False
    return any(type(p).__name__ == "DTensor" for p in model.parameters())


def check_enforceable(model: DistributedDataParallel) -> None:
    """Refuse what goes round the comm hook or cannot be reduced by it.

    Raises:
        NotSupported: with the reason.
    """
    for given, what, hint in _limits(model):
        if given:
            raise NotSupported(what, where="attach", hint=f"{hint}, or use cascade run --observe")


def _limits(model: DistributedDataParallel) -> Iterator[tuple[object, str, str]]:
    ignored = model.parameters_to_ignore & {
        name for name, _ in [*model.module.named_parameters(), *model.module.named_buffers()]
    }
    layers = list(model.module.modules())
    sparse = (torch.nn.Embedding, torch.nn.EmbeddingBag)
    yield (
        getattr(model, "_delay_all_reduce_params", None)
        or getattr(model, "_use_python_reducer", False),
        "this model reduces gradients outside of DistributedDataParallel's buckets",
        "leave delay_all_reduce_named_params and the python reducer out",
    )
    yield (
        model.device_type != "cpu",
        f"enforce is tested with gloo on CPU only, and the model is on {model.device_type}",
        "move it to the CPU",
    )
    yield (
        any(isinstance(m, torch.nn.SyncBatchNorm) for m in layers),
        "SyncBatchNorm layers run collectives of their own in each forward, which no regime covers",
        "use BatchNorm layers (their buffers are made equal in each step)",
    )
    yield (
        any(isinstance(m, sparse) and m.sparse for m in layers),
        "embeddings with sparse=True have sparse gradients, which are not reduced in this release",
        "give the layer sparse=False",
    )
    yield (
        ignored,
        f"DistributedDataParallel was told to leave {', '.join(sorted(ignored)[:3])} alone, and "
        "the regimes hold whole models",
        "do not set parameters to ignore",
    )
    yield (
        getattr(model, "mixed_precision", None) is not None,
        "DistributedDataParallel's mixed_precision keeps a second copy of the parameters",
        "use torch.autocast",
    )
    yield (
        getattr(model, "skip_all_reduce_unused_params", False),
        "skip_all_reduce_unused_params lets ranks reduce different buckets",
        "leave it out",
    )


def has_hook(ddp: DistributedDataParallel) -> bool:
    """Whether a communication hook is registered; torch's own ones are known to the logger only."""
    untyped: Any = ddp
    return bool(ddp._comm_hooks or untyped._get_ddp_logging_data().get("comm_hook"))


def refuse_join(ddp: DistributedDataParallel) -> None:
    """Refuse DDP's join(): it would wait in collectives of its own for ranks that may be dead.

    Raises:
        NotSupported: the model is in ``join()``.
    """
    if ddp._join_config.enable:
        raise NotSupported(
            "the training loop is in join(), which runs collectives of its own that no regime covers",
            where="join",
            hint="leave join() out: a rank that has no more batches leaves when its script ends (or "
            "calls cascade_runtime.finish()), and the others go on",
        )


_SYNC = {"require_backward_grad_sync"}


def take_over(ddp: DistributedDataParallel) -> None:
    """Rebuild ``ddp`` in place over a group of this rank alone.

    The user's object stays the user's object; inside, DDP's reducer no longer shares a process group
    with ranks that may die. What it did with the others (averaging, the buffers' broadcast) is the
    comm hook's from here on; the bucket order, which it would have agreed on with them, is verified.
    """
    rebuild(ddp, dist.new_group([dist.get_rank()], use_local_synchronization=True))


def rebuild(
    ddp: DistributedDataParallel, solo: Any, hook: Callable[..., Any] | None = None
) -> None:
    """Build the insides of ``ddp`` anew over the group ``solo``; no other rank takes part.

    Also done when parameters are frozen or thawed: DDP looks at that in its constructor only.
    """
    options = _constructor_options(ddp)
    # The old reducer's hooks sit on the parameters; both would fire.
    ddp.reducer._remove_autograd_hooks()
    rebuilt = DistributedDataParallel(ddp.module, process_group=solo, **options)
    before = dict(vars(ddp))
    vars(ddp).clear()
    vars(ddp).update(vars(rebuilt))
    # The user's: mode and hooks (the same dictionaries, which the handles point at), additions, and
    # no_sync, in which a script's first forward may be.
    own = {name for name in before if name not in vars(rebuilt) and not name.startswith("_")}
    vars(ddp).update({name: before[name] for name in own | _mode_and_hooks() | _SYNC})
    if hook is not None:
        DistributedDataParallel.register_comm_hook(ddp, None, hook)


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
    for name in ("batched_grad_copy", "bucket_cap_mb_list"):
        if name in known and getattr(ddp, name, None):
            options[name] = getattr(ddp, name)
    return options
