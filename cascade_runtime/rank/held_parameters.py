"""Whether a model still has the parameters that it was attached with: a look before each forward.

DDP reduces those that it was built with, whatever the model has become since. A layer put in their place
is trained by each rank alone, and with ``find_unused_parameters`` nothing fails: the ranks would part in
silence, and the digests, which are of the old ones, would go on agreeing.
"""

from __future__ import annotations

import operator
from itertools import chain
from typing import Any

import torch
from torch.nn.parallel import DistributedDataParallel

from cascade_runtime.vocabulary.errors import NotSupported

_NAMED = 3
"""So many parameters are named in a refusal."""


class HeldParameters:
    """The parameters of an attached model.

    Args:
        ddp: the model; its insides may be rebuilt meanwhile.
    """

    def __init__(self, ddp: DistributedDataParallel) -> None:
        self._ddp = ddp
        self._held = self._named()
        self.all = list(self._held.values())
        """In the order of their registration."""
        self._note()

    def check(self, step: int) -> None:
        """Look at them; what holds them may change (another activation, a layer without parameters).

        Raises:
            NotSupported: parameters were replaced, added or taken away before ``step``.
        """
        values = list(chain.from_iterable(map(dict.values, self._full)))
        if (
            self._ddp.module is self._root
            and not any(self._empty)
            and len(values) == len(self._values)
            and all(map(operator.is_, values, self._values))
        ):
            return
        now = self._named()
        found = list(now.values())
        if len(found) != len(self.all) or not all(map(operator.is_, found, self.all)):
            names = [n for n in {**self._held, **now} if self._held.get(n) is not now.get(n)]
            more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
            raise NotSupported(
                "the model's parameters are not those that DistributedDataParallel was given: "
                f"{', '.join(names[:_NAMED]) or 'their order'}{more} changed, and would not be reduced",
                where=f"step {step}",
                hint="change layers before DistributedDataParallel wraps the model; to go on with "
                "others, save a checkpoint and start a new job from it",
            )
        self._note()

    def _named(self) -> dict[str, torch.nn.Parameter]:
        return dict(self._ddp.module.named_parameters())

    def _note(self) -> None:
        # By what holds them, since a walk through all modules in each step would cost it too much.
        self._root = self._ddp.module
        modules = list(self._root.modules())
        holders: list[dict[str, Any]] = [
            holder for module in modules for holder in (module._parameters, module._modules)
        ]
        self._full = [holder for holder in holders if holder]
        self._empty = [holder for holder in holders if not holder]
        self._values = list(chain.from_iterable(map(dict.values, self._full)))
