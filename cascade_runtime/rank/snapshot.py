"""A member's training state as plain trees, and the log of what its optimizer saw since.

The state stands at the beginning of a step: after the last step's optimizer, schedulers, scaler and what
else the user's loop does there, before the next forward. Parameters of the optimizer are named by
their place (group, position), which the same script gives them on every rank.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from cascade_runtime.rank.objects import ModelObjects
from cascade_runtime.vocabulary.errors import NotSupported

Tree = dict[str, Any]


class TrainingState:
    """Model, optimizer, schedulers and loss scalers of one rank, to be told or taken over.

    Args:
        module: the model inside DDP.
        optimizer: its optimizer.
        schedulers: finds the schedulers of the optimizer, and what else has a ``state_dict`` that goes
            with it (they may be made after attach).
        objects: for digests.
    """

    def __init__(
        self,
        module: torch.nn.Module,
        optimizer: torch.optim.Optimizer,
        schedulers: Callable[[], Sequence[Any]],
        objects: ModelObjects,
    ) -> None:
        self._module = module
        self.optimizer = optimizer
        self._schedulers = schedulers
        self.objects = objects

    @property
    def num_bytes(self) -> int:
        """Of parameters and buffers."""
        tensors = [*self._module.parameters(), *self._module.buffers()]
        return sum(t.numel() * t.element_size() for t in tensors)

    @property
    def trained(self) -> list[str]:
        """Names of the parameters that are not frozen."""
        return [n for n, p in self._module.named_parameters() if p.requires_grad]

    # ---- telling ---------------------------------------------------------------------------------

    def tell(self) -> Tree:
        """All of it, copied.

        Raises:
            NotSupported: the optimizer steps parameters that are not the model's.
        """
        own = {id(p) for p in self._module.parameters()}
        if any(id(p) not in own for g in self.optimizer.param_groups for p in g["params"]):
            raise NotSupported(
                "the optimizer steps parameters that are not the model's, so its state cannot be "
                "given to a newcomer",
                where="optimizer",
                hint="give the model an optimizer of its own, or run without --respawn",
            )
        return {
            "identity": self.objects.identity(),
            "params": {n: _copied(p) for n, p in self._module.named_parameters()},
            "state": [
                [i, j, _copied(self.optimizer.state[p])]
                for i, j, p in self._places()
                if p in self.optimizer.state
            ],
        } | self.tell_rest()

    def tell_rest(self) -> Tree:
        """What no replay of the optimizer gives: buffers, hyperparameters, schedulers, what is frozen.

        And gradients that the next backward will add to, where the optimizer has not stepped on them.
        """
        gradients = {n: p.grad for n, p in self._module.named_parameters()}
        return {
            "trained": self.trained,
            "kept": {n: _copied(g) for n, g in gradients.items() if g is not None and g.any()},
            "buffers": {n: _copied(b) for n, b in self._module.named_buffers()},
            "groups": self.tell_groups(),
            "schedulers": [[type(s).__name__, _copied(s.state_dict())] for s in self._schedulers()],
        }

    def tell_optimizer(self, *, copied: bool = True) -> Tree:
        """State and hyperparameters of the optimizer, and its schedulers."""
        copy = _copied if copied else _as_it_is
        return {
            "state": [
                [i, j, copy(self.optimizer.state[p])]
                for i, j, p in self._places()
                if p in self.optimizer.state
            ],
            "groups": self.tell_groups(),
            "schedulers": [[type(s).__name__, copy(s.state_dict())] for s in self._schedulers()],
        }

    def take_optimizer(self, told: Tree) -> None:
        """Become what ``tell_optimizer`` told; the loop and its parameters stay."""
        self._check_rest(told)
        places = self._by_place()
        self.optimizer.state.clear()
        for i, j, value in told["state"]:
            self.optimizer.state[places[i, j]] = value
        self._take_rest_of_optimizer(told)

    def tell_groups(self) -> list[Tree]:
        """The optimizer's hyperparameters as they are now."""
        return [
            _copied({k: v for k, v in group.items() if k not in ("params", "param_names")})
            for group in self.optimizer.param_groups
        ]

    def tell_gradients(self) -> list[list[Any]]:
        """Copies of the gradients as they are now, by place."""
        return [[i, j, _copied(p.grad)] for i, j, p in self._places() if p.grad is not None]

    def _places(self) -> list[tuple[int, int, torch.Tensor]]:
        return [
            (i, j, p)
            for i, group in enumerate(self.optimizer.param_groups)
            for j, p in enumerate(group["params"])
        ]

    # ---- taking over -----------------------------------------------------------------------------

    def take(self, told: Tree) -> None:
        """Become what ``tell`` told.

        Raises:
            NotSupported: another model, optimizer or scheduler; nothing was changed then.
        """
        if told.get("identity") != self.objects.identity():
            raise _another("the model's parameters and buffers have other names, shapes or types")
        places = self._by_place()
        state = told["state"]
        if any((i, j) not in places for i, j, _ in state):
            raise _another("the optimizer has other parameter groups")
        self._check_rest(told)
        with torch.no_grad():
            for name, parameter in self._module.named_parameters():
                parameter.copy_(told["params"][name])
        self.optimizer.state.clear()
        for i, j, value in state:
            self.optimizer.state[places[i, j]] = value
        self.take_rest(told)

    def take_rest(self, told: Tree) -> None:
        """Become what ``tell_rest`` told."""
        self._check_rest(told)
        with torch.no_grad():
            for name, buffer in self._module.named_buffers():
                buffer.copy_(told["buffers"][name])
        trained, kept = set(told["trained"]), told["kept"]
        for name, parameter in self._module.named_parameters():
            parameter.requires_grad_(name in trained)
            parameter.grad = kept.get(name)
        self._take_rest_of_optimizer(told)

    def _take_rest_of_optimizer(self, told: Tree) -> None:
        self._take_groups(told["groups"])
        for scheduler, (_, state) in zip(self._schedulers(), told["schedulers"], strict=True):
            scheduler.load_state_dict(state)
        # A scheduler's load may set what it derives; the groups are the truth.
        self._take_groups(told["groups"])

    def replay(self, groups: list[Tree], gradients: list[list[Any]]) -> None:
        """One ``optimizer.step()`` with these hyperparameters and gradients."""
        places = self._by_place()
        self._take_groups(groups)
        for parameter in places.values():
            parameter.grad = None
        for i, j, gradient in gradients:
            parameter = places[i, j]
            if gradient.shape != parameter.shape or gradient.dtype != parameter.dtype:
                raise _another("a gradient has another shape")
            parameter.grad = gradient
        self.optimizer.step()
        for parameter in places.values():
            parameter.grad = None

    def digests(self, indices: Sequence[int]) -> dict[int, str]:
        """Of the objects with these numbers."""
        return {i: self.objects.digest(i) for i in indices}

    def _by_place(self) -> dict[tuple[int, int], torch.Tensor]:
        return {(i, j): p for i, j, p in self._places()}

    def _check_rest(self, told: Tree) -> None:
        if len(told["groups"]) != len(self.optimizer.param_groups):
            raise _another("the optimizer has another number of parameter groups")
        mine = [type(s).__name__ for s in self._schedulers()]
        theirs = [name for name, _ in told["schedulers"]]
        if mine != theirs:
            raise _another(
                f"it has the schedulers and scalers {mine or 'none'}, the others {theirs or 'none'}"
            )

    def _take_groups(self, groups: list[Tree]) -> None:
        for group, told in zip(self.optimizer.param_groups, groups, strict=True):
            group.update(_copied(told))


def _another(how: str) -> NotSupported:
    return NotSupported(
        f"the newcomer's training state is not of the others' form: {how}",
        where="attach",
        hint="a rank that comes back must run the same script with the same arguments",
    )


def _copied(value: Any) -> Any:
    """The tree with tensors of its own; other values are plain or will be refused by the codec."""
    if isinstance(value, torch.Tensor):
        return value.detach().clone()
    if isinstance(value, Mapping):
        return {k: _copied(v) for k, v in value.items()}
    if type(value) in (list, tuple):
        return type(value)(_copied(v) for v in value)
    return value


def _as_it_is(value: Any) -> Any:
    return value
