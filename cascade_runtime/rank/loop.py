"""Where the user's loop meets the stepper: before a forward, before and after the optimizer's step."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import torch
from torch.nn.parallel import DistributedDataParallel
from torch.optim import Optimizer

from cascade_runtime.rank.held_parameters import HeldParameters
from cascade_runtime.rank.observer import StepObserver
from cascade_runtime.rank.reducer import StepReducer
from cascade_runtime.rank.used import UsedParameters
from cascade_runtime.rank.wrap import rebuild, refuse_join
from cascade_runtime.vocabulary.errors import NotSupported


def watch_loop(
    ddp: DistributedDataParallel,
    optimizer: Optimizer,
    stepper: StepReducer | StepObserver,
    on_forward: Callable[[], None],
) -> Callable[[DistributedDataParallel], None]:
    """Register what tells ``stepper`` of each forward and step of the optimizer.

    Args:
        on_forward: called first, before each training forward.

    Returns:
        What is called before a forward, for one that has begun already.
    """
    enforced = _Enforced(ddp, stepper) if isinstance(stepper, StepReducer) else None

    turn: contextlib.AbstractContextManager[Any] = contextlib.nullcontext()
    if isinstance(stepper, StepReducer):
        turn = stepper.aside.turn

    def before_forward(module: Any, arguments: Any = None) -> None:
        del arguments
        if not module.training or not torch.is_grad_enabled():
            return
        with turn:
            on_forward()
            if enforced is not None:
                enforced.before_forward()
            # Under no_sync too where newcomers may be served: their state is told before the first of a
            # step's forwards, which changes this rank's buffers alone.
            if enforced is not None or module.require_backward_grad_sync:
                stepper.begin_forward()

    def before_step(*arguments: Any) -> None:
        if enforced is not None:
            with turn:
                enforced.before_step(*arguments)

    def after_step(*ignored: Any) -> None:
        del ignored
        with turn:
            stepper.end_step()

    ddp.register_forward_pre_hook(before_forward)
    optimizer.register_step_pre_hook(before_step)
    optimizer.register_step_post_hook(after_step)
    return before_forward


class _Enforced:
    """What ``enforce`` looks at, so that no step is taken on gradients that were not reduced."""

    def __init__(self, ddp: DistributedDataParallel, stepper: StepReducer) -> None:
        self._ddp: Any = ddp  # torch's private methods have no types
        self._stepper = stepper
        self._parameters = HeldParameters(ddp)
        self._trained = self._trained_now()
        if ddp.find_unused_parameters or ddp.static_graph:
            stepper.parts.used = UsedParameters(ddp.module)
        # On the object, before DDP's own of the class, which would raise with a traceback.
        vars(ddp)["register_comm_hook"] = _refuse_hook
        vars(ddp)["_register_builtin_comm_hook"] = _refuse_hook

    def before_forward(self) -> None:
        refuse_join(self._ddp)
        self._stepper.end_skipped()
        self._parameters.check(self._stepper.member.decided + 1)
        if not self._ddp.require_backward_grad_sync:
            self._stepper.unreduced = True
        elif (trained := self._trained_now()) != self._trained and any(trained):
            self._trained = trained
            rebuild(self._ddp, self._ddp.process_group, self._stepper.hook)
            if self._stepper.parts.used is not None:
                self._stepper.parts.used.watch()
            self._stepper.cut_anew()

    def before_step(self, optimizer: object, arguments: tuple[Any, ...], named: Any) -> None:
        self._check_reduced()
        if self._stepper.decided_now:
            self._stepper.fold_pending()
        if self._stepper.feeds is not None:
            self._stepper.feeds.before_optimizer(optimizer, arguments, named)

    def _check_reduced(self) -> None:
        if self._stepper.decided_now:
            return
        try:
            self._ddp._check_reducer_finalized()
        except RuntimeError as error:
            raise NotSupported(
                "the optimizer is about to step, and some parameters got no gradient, so the "
                "gradients were not reduced",
                where=f"step {self._stepper.member.decided + 1}",
                hint="give DistributedDataParallel find_unused_parameters=True, or freeze them "
                "(requires_grad_(False)) before the forward",
            ) from error
        if self._stepper.unreduced:
            raise NotSupported(
                "the optimizer is about to step on gradients that were accumulated under no_sync "
                "and never reduced",
                where=f"step {self._stepper.member.decided + 1}",
                hint="run the last forward and backward before each optimizer step outside of no_sync",
            )

    def _trained_now(self) -> list[bool]:
        return [p.requires_grad for p in self._parameters.all]


def _refuse_hook(*ignored: Any, **named: Any) -> Callable[..., Any]:
    del ignored, named
    raise NotSupported(
        "the model is attached, and its one communication hook is cascade's",
        where="register_comm_hook",
        hint="leave the hook out, or train without cascade",
    )
