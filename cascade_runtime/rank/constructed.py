"""What the user's script has constructed: models, optimizers, schedulers and loss scalers, by weak reference.

The bootstrap remembers them at their construction, so that an unedited script can be attached and a
newcomer's schedulers and scalers be found. A script that runs without the bootstrap remembers nothing.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable
from typing import Any

from cascade_runtime.vocabulary.errors import NotSupported

_models: list[weakref.ref[Any]] = []
_optimizers: list[weakref.ref[Any]] = []
_schedulers: list[weakref.ref[Any]] = []
_scalers: list[weakref.ref[Any]] = []


def remember_constructions() -> None:
    """Patch the constructors of this process; once."""
    import torch
    from torch.amp import GradScaler
    from torch.nn.parallel import DistributedDataParallel
    from torch.optim.lr_scheduler import LRScheduler

    optimizer_init: Any = torch.optim.Optimizer.__init__
    model_init: Any = DistributedDataParallel.__init__

    @functools.wraps(optimizer_init)
    def optimizer(self: Any, *args: Any, **kwargs: Any) -> None:
        optimizer_init(self, *args, **kwargs)
        _optimizers.append(weakref.ref(self))

    @functools.wraps(model_init)  # its signature is looked at
    def model(self: Any, *args: Any, **kwargs: Any) -> None:
        model_init(self, *args, **kwargs)
        _models.append(weakref.ref(self))

    def new(known: list[weakref.ref[Any]]) -> Callable[..., Any]:
        # Not __init__: SequentialLR and ChainedScheduler have one that does not call the base's.
        def make(cls: Any, *args: Any, **kwargs: Any) -> Any:
            del args, kwargs
            made = object.__new__(cls)
            known.append(weakref.ref(made))
            return made

        return make

    torch.optim.Optimizer.__init__ = optimizer  # type: ignore[method-assign]
    DistributedDataParallel.__init__ = model  # type: ignore[method-assign]
    LRScheduler.__new__ = new(_schedulers)  # type: ignore[method-assign]
    GradScaler.__new__ = new(_scalers)  # type: ignore[method-assign]


def optimizer_of(model: Any) -> Any:
    """The one optimizer that holds this model's parameters.

    Raises:
        NotSupported: none or several do.
    """
    wanted = {id(p) for p in model.parameters()}
    found = []
    for optimizer in _alive(_optimizers):
        held = {id(p) for group in optimizer.param_groups for p in group["params"]}
        if held & wanted:
            found.append(optimizer)
    if len(found) != 1:
        raise NotSupported(
            f"{len(found)} optimizers hold this model's parameters, and exactly one is needed",
            where="cascade run",
            hint="call cascade_runtime.attach(model, optimizer) in the script",
        )
    return found[0]


def only_model() -> Any:
    """The one DistributedDataParallel model that the script has made.

    Raises:
        NotSupported: none or several were made.
    """
    found = [m for m in _alive(_models) if hasattr(m, "reducer")]
    if len(found) != 1:
        raise NotSupported(
            f"start_step was called when the script had made {len(found)} "
            "DistributedDataParallel models, and exactly one is needed",
            where="start_step",
            hint="call it after the model and its optimizer are made, just before the loop",
        )
    return found[0]


def schedulers_of(optimizer: Any) -> list[Any]:
    """Learning rate schedulers of this optimizer, in the order of their construction."""
    return [s for s in _alive(_schedulers) if getattr(s, "optimizer", None) is optimizer]


def scalers() -> list[Any]:
    """Loss scalers that are in use, in the order of their construction.

    A rank whose gradients are scaled otherwise than the others' spoils their average.
    """
    return [s for s in _alive(_scalers) if s.is_enabled()]


def _alive(references: list[weakref.ref[Any]]) -> list[Any]:
    return [thing for reference in references if (thing := reference()) is not None]
