"""A job that somebody ends before it is over: Ctrl-C, or a signal to the launcher.

The launcher leaves a note, and then tells its agents. With the note an agent knows that every host
ends, so that the ends of its ranks are no deaths to walk from, and which signal its ranks are to have.
A signal to one agent alone comes without a note: the other hosts go on.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
from collections.abc import Iterable
from pathlib import Path

from cascade_runtime.agent.config import JobConfig
from cascade_runtime.agent.journal import Journal
from cascade_runtime.progress import read_progress
from cascade_runtime.vocabulary.identity import Actor

EXIT_BASE = 128
"""A command that a signal ended exits with this and the signal's number, as in a shell."""


def note_stop(config: JobConfig, number: int) -> None:
    """Leave word for the agents that the whole job ends, by this signal."""
    with contextlib.suppress(OSError):  # a full disk: each agent then ends its own ranks
        config.stop_path().write_text(str(number))


def noted_stop(config: JobConfig) -> int:
    """The signal by which the whole job ends; 0 when nobody has ended it."""
    try:
        return int(config.stop_path().read_text())
    except (OSError, ValueError):
        return 0


def last_step(config: JobConfig) -> int:
    """The last step that a rank has decided; 0 before the first."""
    found = (read_progress(path) for path in Path(config.run_dir).glob("progress-*"))
    return max((progress.decided for progress in found if progress is not None), default=0)


def kill_ranks(config: JobConfig, hosts: Iterable[int]) -> None:
    """SIGKILL to the ranks that these hosts' journals know and have not seen end."""
    for index in hosts:
        memory = Journal.read(config.journal_path(index))
        ended: set[Actor] = {actor for actor, _ in memory.exited}
        for actor, pid in memory.spawned.values():
            if actor not in ended:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)


def discard_trace(config: JobConfig) -> None:
    """The job ended before it had formed: leave no folder that looks like a trace.

    The trace folder was empty before; what the script itself put there stays.
    """
    shutil.rmtree(config.run_dir, ignore_errors=True)
    shutil.rmtree(Path(config.trace_dir) / "spool", ignore_errors=True)
    with contextlib.suppress(OSError):
        Path(config.trace_dir).rmdir()


def signal_name(number: int) -> str:
    """``Ctrl-C`` or ``SIGTERM``, as a person calls what they did."""
    return "Ctrl-C" if number == signal.SIGINT else signal.Signals(number).name
