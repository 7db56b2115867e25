"""The public API in a job: two lines in an existing DDP script turn it on (design section 5.1)."""

from __future__ import annotations

import atexit
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import msgspec

from cascade_runtime.vocabulary.errors import BadUsage, NotSupported
from cascade_runtime.vocabulary.identity import Actor
from cascade_runtime.vocabulary.regime import Regime

if TYPE_CHECKING:
    from torch.nn.parallel import DistributedDataParallel
    from torch.optim import Optimizer

    from cascade_runtime.checkpoints.loads import Load
    from cascade_runtime.rank.session import Session


class _State:
    """What this process has attached, if anything."""

    session: Session | None = None
    loads: ClassVar[list[Load]] = []
    """Checkpoints that were loaded before there was a session."""
    finishers: ClassVar[list[Callable[[], None]]] = []
    """Of what this process shares without training."""


_state = _State()


def attach(
    ddp: DistributedDataParallel,
    optimizer: Optimizer,
    *,
    mode: str | None = None,
    base_hook: Callable[..., Any] | None = None,
    trace_dir: str | Path | None = None,
) -> DistributedDataParallel:
    """Hold the consistency regime of this job; the training loop stays as it is.

    Args:
        ddp: the model after ``DistributedDataParallel(...)``; the same object is returned.
        optimizer: the optimizer that steps it.
        mode: ``"enforce"`` walks, ``"observe"`` decides and records but changes nothing. Default, and
            the only value accepted: as ``cascade run`` was told.
        base_hook: a DDP communication hook of your own; refused with a sentence in this release.
        trace_dir: for jobs that were not started by ``cascade run``, which this release refuses.

    Raises:
        BadUsage: attached twice, a world of one rank, no agent in enforce mode.
        NotSupported: not a DDP model, a sharded one, a hook that cannot be kept.
    """
    if _state.session is not None:
        raise BadUsage(
            "attach was called twice in this process",
            where="attach",
            hint="attach one model and optimizer a job",
        )
    if _state.finishers:
        raise BadUsage(
            "this process has opened a State, and such processes do not train in this release",
            where="attach",
            hint="put planners and workers into a job of their own",
        )
    if mode not in (None, "enforce", "observe"):
        raise BadUsage(f"mode {mode!r} is neither enforce nor observe", where="attach")
    if base_hook is not None:
        raise NotSupported(
            "a communication hook of your own is not called inside ours in this release",
            where="base_hook",
            hint="leave it out, or train without cascade",
        )
    from cascade_runtime.rank.session import Session

    started = os.environ.get("CASCADE_RUN_DIR") is not None
    if not started:
        raise BadUsage(
            "this job was not started by cascade run, so it has no host agent",
            where="attach",
            hint="start it with: cascade run -n N script.py",
        )
    _state.session = Session.open(
        ddp, optimizer, mode, Path(trace_dir) if trace_dir else None, _state.loads
    )
    atexit.register(finish)
    return ddp


def finish() -> None:
    """Leave the job cleanly: drain, settle, say LEAVE, close the trace. Also called at exit."""
    if _state.session is not None:
        _state.session.finish()
    for finisher in _state.finishers:
        finisher()


def also_finish(finisher: Callable[[], None]) -> None:
    """Have it called by ``finish``, at the latest when the process exits."""
    _state.finishers.append(finisher)
    atexit.register(finish)


def start_step() -> int:
    """Where this rank's loop begins: 0, or the number of steps that the job had decided when it joined.

    ``for step in range(cascade_runtime.start_step(), N)`` lets a rank that came back (``cascade run
    --respawn``) run as far as the others. Call it after the model and its optimizer are made; in a
    rank that comes back it returns once the rank is a member with the others' state.

    Raises:
        NotSupported: a rank that comes back has not made its model and optimizer yet.
    """
    if _state.session is None and os.environ.get("CASCADE_JOIN"):
        from cascade_runtime.rank.constructed import only_model, optimizer_of

        model = only_model()
        attach(model, optimizer_of(model))
    if _state.session is None:
        return 0
    _state.session.asked_for_step = True
    return _state.session.joined_at or 0


def decided_steps() -> int:
    """How many steps the job has decided, as this rank counts them; 0 before ``attach``.

    A cohort that steps by itself counts its own steps; when all step together again, all count on from
    the furthest. A loop that asks after each step ends where the others' do.
    """
    return _state.session.member.decided if _state.session is not None else 0


def regime() -> Regime:
    """The regime in force for this rank; STRONG before ``attach``."""
    return _state.session.member.view.regime if _state.session is not None else Regime.STRONG


def debt() -> list[str]:
    """Ids of the debts that this rank has opened and that are not yet closed."""
    return sorted(_state.session.member.open_debts) if _state.session is not None else []


def members() -> list[Actor]:
    """The members of the view in force."""
    return list(_state.session.member.view.members) if _state.session is not None else []


def on_transition(callback: Callable[[Any], None]) -> None:
    """Call ``callback(view)`` after each committed walk that this rank stays a member of.

    It runs in the training process, inside the step; ``view`` has ``epoch``, ``regime``,
    ``from_regime``, ``members``, ``departed``, ``fault`` and ``reason``. What it raises is told on
    stderr and goes no further.

    Raises:
        BadUsage: not attached yet.
    """
    _attached("on_transition").member.on_transition.append(callback)


def checkpoint_saved(
    checkpoint_id: str,
    *,
    durable: bool = True,
    folder: str | Path | None = None,
    data_position: int | None = None,
    data_shard: str | None = None,
) -> dict[str, Any]:
    """Record that a checkpoint of this state was saved; returns what to store beside it.

    Call it on every rank, after the checkpoint is written. With ``folder`` each rank's record is put
    there; without, give the returned mapping to ``checkpoint_loaded`` when the checkpoint is loaded.

    Args:
        checkpoint_id: its name.
        durable: it is safe from the loss of this process.
        folder: the checkpoint's folder, which all ranks see.
        data_position: samples of the data that have been consumed so far.
        data_shard: the shards of the data that this rank reads, names separated by commas.

    Raises:
        BadUsage: no model is attached.
    """
    return _attached("checkpoint_saved").checkpoints.saved(
        checkpoint_id, durable, None if folder is None else Path(folder), data_position, data_shard
    )


def checkpoint_loaded(
    checkpoint_id: str | None = None,
    stored: dict[str, Any] | None = None,
    *,
    folder: str | Path | None = None,
    data_position: int | None = None,
    data_shard: str | None = None,
) -> None:
    """Record that a checkpoint was loaded, once everything is restored; before the first step, usually.

    The report compares what is in force now (parameters, random generators, data) with what was saved,
    and tells of a newer checkpoint beside this one (rule M1): of another run's only where all ranks
    call this alike before ``attach``, and so before the first training forward.

    Args:
        checkpoint_id: its name; the folder's where it is left out.
        stored: what ``checkpoint_saved`` gave to this rank.
        folder: instead, the folder that ``checkpoint_saved`` was given.
        data_position: samples of the data after which this job goes on.
        data_shard: the shards of the data that this rank goes on with, names separated by commas.

    Raises:
        BadUsage: neither ``stored`` nor ``folder``, another ``stored``, or not under ``cascade run``.
    """
    if folder is None and (stored is None or checkpoint_id is None):
        raise BadUsage(
            "which checkpoint?",
            where="checkpoint_loaded",
            hint="give its folder, or its name and what checkpoint_saved returned",
        )
    if _state.session is None and os.environ.get("CASCADE_RUN_DIR") is None:
        _attached("checkpoint_loaded")
    from cascade_runtime.checkpoints.loads import read_load

    place = None if folder is None else Path(folder)
    name = checkpoint_id or (place.name if place is not None else "")
    rank = int(os.environ.get("RANK", "0"))
    try:
        load = read_load(rank, name, stored, place, data_position, data_shard)
    except msgspec.ValidationError as error:
        raise BadUsage(
            f"this is not what checkpoint_saved returned: {error}", where="checkpoint_loaded"
        ) from error
    if _state.session is not None:
        _state.session.checkpoints.loaded(load)
    else:
        _state.loads.append(load)  # its row is written when the model is attached


def _attached(what: str) -> Session:
    if _state.session is None:
        raise BadUsage(f"{what} needs an attached model", where=what, hint="call attach first")
    return _state.session


def attached() -> Session | None:
    """The session of this process; None before ``attach``."""
    return _state.session
