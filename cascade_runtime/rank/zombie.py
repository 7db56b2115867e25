"""How a rank ends that the others went on without: one sentence, its own exit code, nothing more.

It was stopped (SIGSTOP, a debugger, a machine put to sleep) and runs again, or its host was out of
reach. Its script must not go on: it would save checkpoints over those of the job. So neither exception
nor exit handler of the script runs, and no destructor, which could block on an abandoned group.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import NoReturn

EXIT_LEFT_BEHIND = 75
"""EX_TEMPFAIL of sysexits.h: nothing is wrong with the program; started again, it may succeed."""


def leave_behind(why: str, exit_note: Path, close: Callable[[], None]) -> NoReturn:
    """Say why, close the spool, end the process.

    Args:
        why: what happened to this rank, a clause that the sentence begins with.
        exit_note: where the exit code is left for an agent that is not our parent.
        close: closes the spool.
    """
    _end(
        f"{why}; the job went on without it, so it ends here "
        f"(exit code {EXIT_LEFT_BEHIND}; to have it back, start it anew)",
        EXIT_LEFT_BEHIND,
        exit_note,
        close,
    )


def end_newcomer(why: str, code: int, exit_note: Path, close: Callable[[], None]) -> NoReturn:
    """As ``leave_behind``, for a process that never became a member: its script has done nothing yet."""
    _end(f"{why}; it ends here (exit code {code})", code, exit_note, close)


def end_refused(
    why: str, code: int, refusal_note: Path, exit_note: Path, close: Callable[[], None]
) -> NoReturn:
    """As ``end_newcomer``, where its next incarnation would fare alike: the agent tells why, and counts.

    Args:
        why: the sentence, which the agent puts the rank's name before.
        refusal_note: where the sentence is left.
    """
    try:
        refusal_note.write_text(why)
    except OSError:
        _end(f"{why}; it ends here (exit code {code})", code, exit_note, close)
    _end(None, code, exit_note, close)


def _end(sentence: str | None, code: int, exit_note: Path, close: Callable[[], None]) -> NoReturn:
    with contextlib.suppress(Exception):
        close()
    with contextlib.suppress(Exception):
        sys.stdout.flush()
        if sentence is not None:
            sys.stderr.write(f"cascade: {sentence}\n")
            sys.stderr.flush()
        exit_note.write_text(str(code))
    os._exit(code)


def look_when_continued(check: Callable[[], None]) -> None:
    """Call ``check`` as soon as Python runs again after a stop, in a long phase of the script too.

    The handler is set only where the script has none and where it can be: in the main thread.
    """
    if threading.current_thread() is not threading.main_thread():
        return
    if signal.getsignal(signal.SIGCONT) is not signal.SIG_DFL:
        return

    def continued(number: int, frame: FrameType | None) -> None:
        del number, frame
        check()

    signal.signal(signal.SIGCONT, continued)
    signal.siginterrupt(signal.SIGCONT, False)
