"""What the kernel tells of a process in one read of /proc/PID/stat.

A killed process is gone for the kernel, and its pidfd says so, only when its memory is given back: with a
framework loaded and busy processors that takes 40 to 150 ms here. That it is on its way out, and of what, is
told before that, as soon as it runs no more of its own code.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

_STATE, _FLAGS, _EXIT_CODE = 0, 6, 49
"""Fields after the name in brackets (proc(5): fields 3, 9 and 52)."""

_PF_EXITING = 0x4


class Look(NamedTuple):
    """One process at one moment."""

    state: str
    """The letter: R, S, D, T, t, Z ..."""
    failed: int | None
    """It runs no more of its code, and how it failed: the exit code, or minus the signal. None for exit code
    0 too, which the kernel also says where it does not want to tell."""


def look_at(pid: int) -> Look | None:
    """None when there is no such process (any more)."""
    try:
        text = Path(f"/proc/{pid}/stat").read_bytes()
        fields = text[text.rindex(b")") + 2 :].split()
        state = chr(fields[_STATE][0])
        failed = None
        if state == "Z" or int(fields[_FLAGS]) & _PF_EXITING:
            failed = os.waitstatus_to_exitcode(int(fields[_EXIT_CODE])) or None
        return Look(state, failed)
    except (OSError, ValueError, IndexError):
        return None


def process_state(pid: int) -> str | None:
    """The letter alone; None when there is no such process."""
    look = look_at(pid)
    return None if look is None else look.state
