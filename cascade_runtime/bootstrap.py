"""``python -m cascade_runtime.bootstrap SCRIPT ARGS``: a rank under ``cascade run``.

Runs the user's script unchanged. The first training forward of a DDP model attaches it, with the
optimizer that holds its parameters; a script that calls ``attach`` itself is left alone. A script that
never imports torch (planners and workers that share a State) runs without it.
"""

from __future__ import annotations

import atexit
import os
import runpy
import signal
import sys
import threading
import traceback
from pathlib import Path
from typing import Any

from cascade_runtime import job
from cascade_runtime.rank.constructed import optimizer_of, remember_constructions
from cascade_runtime.rank.link import AgentLost
from cascade_runtime.torch_import import when_torch_is_imported
from cascade_runtime.vocabulary.errors import CascadeError


def watch_constructors() -> None:
    """Remember what the script makes, and attach a DDP model at its first training forward."""
    import torch
    from torch.nn.parallel import DistributedDataParallel

    remember_constructions()
    if os.environ.get("CASCADE_JOIN"):
        from cascade_runtime.rank.pretend import pretend_world

        pretend_world()
    ddp_forward: Any = DistributedDataParallel.forward

    def attach_then_forward(self: Any, *args: Any, **kwargs: Any) -> Any:
        if job.attached() is None and self.training and torch.is_grad_enabled():
            job.attach(self, optimizer_of(self))
            # The hook that begins a step was not there yet when this forward began.
            if (session := job.attached()) is not None:
                session.before_forward(self)
        return ddp_forward(self, *args, **kwargs)

    DistributedDataParallel.forward = attach_then_forward  # type: ignore[method-assign]


def main() -> int:
    """Run the script; its exit code is ours."""
    script, *arguments = sys.argv[1:]
    sys.argv = [script, *arguments]
    sys.path[0] = str(Path(script).parent)
    code = 0
    try:
        when_torch_is_imported(watch_constructors)
        _take_interrupts()
        _note("running", "")
        runpy.run_path(script, run_name="__main__")
        job.finish()
    except SystemExit as stop:
        code = _exit_code(stop.code)
        if code == 0:
            job.finish()
    except CascadeError as error:
        if _interrupts:
            return 128 + signal.SIGINT
        code = error.exit_code
        if isinstance(error, AgentLost) or not _note("refusal", str(error)):
            sys.stderr.write(f"cascade: {error}\n")
    except BaseException as error:
        if _interrupts or isinstance(error, KeyboardInterrupt):
            return 128 + signal.SIGINT  # whoever ended the job knows why: no traceback a rank
        traceback.print_exc()
        code = 1
    return code


_interrupts: list[int] = []
"""SIGINTs that no handler of the script's took."""


def _take_interrupts() -> None:
    """Ctrl-C: KeyboardInterrupt as ever, and what follows from it in torch is known to be from it."""

    def interrupt(number: int, frame: object) -> None:
        _interrupts.append(number)
        signal.default_int_handler(number, frame)  # type: ignore[arg-type]

    signal.signal(signal.SIGINT, interrupt)


def _exit_code(value: Any) -> int:
    if value is None:
        return 0
    if isinstance(value, int):
        return value
    sys.stderr.write(f"{value}\n")
    return 1


def _leave_process(code: int) -> None:
    """End without destructors: abandoned groups would block in theirs."""
    if code != 0:
        atexit.unregister(job.finish)  # a failed rank does not LEAVE
    threading._shutdown()  # type: ignore[attr-defined]  # as the interpreter does: wait for threads
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    _note("exit", str(code))  # for an agent that was started again and so is not our parent
    os._exit(code)


def _note(what: str, text: str) -> bool:
    """Leave a note for the agent (its JobConfig names the files); False when there is no agent."""
    run_dir, rank = os.environ.get("CASCADE_RUN_DIR"), os.environ.get("RANK")
    if not run_dir or not rank:
        return False
    incarnation = os.environ.get("CASCADE_INCARNATION", "0")
    try:
        Path(run_dir, f"{what}-{rank}-{incarnation}").write_text(text)
    except OSError:
        return False
    return True


def run_and_leave() -> None:
    """Run the script named in sys.argv and end the process with its exit code."""
    _leave_process(main())


if __name__ == "__main__":
    run_and_leave()
