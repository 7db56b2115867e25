"""Makes an agent prompt: the kernel runs it soon after it is woken, and no long collection holds it up.

An agent uses hardly any processor time, and what it is woken for (a death, an answer) holds up all ranks.
The ranks meanwhile fill the processors. Where the kernel knows slices (Linux 6.12), a short one brings a
woken process's turn forward; its share of the processor stays what it is, so nobody is robbed.
"""

from __future__ import annotations

import ctypes
import gc
import os
import struct

SLICE_NS = 100_000
"""The shortest that the kernel gives (it gives 1 to 3 ms by itself)."""

_SET_ATTR = {"x86_64": 314, "aarch64": 274, "riscv64": 274}
_ATTR = struct.Struct("=IIQiIQQQII")
"""struct sched_attr: size, policy, flags, nice, priority, runtime, deadline, period, clamps."""

_RESET_ON_FORK = 1


def be_prompt() -> None:
    """For this thread; processes and threads that it starts get the kernel's usual slice."""
    _take_short_slice()
    gc.collect()
    gc.freeze()  # what was imported stays: later collections need not look at it


def _take_short_slice() -> bool:
    """False where the kernel cannot, or the process has a policy of its own (batch, idle, real time).

    Nor where it is nice below 0: the ranks that it starts would lose that along with the slice.
    """
    number = _SET_ATTR.get(os.uname().machine)
    nice = os.getpriority(os.PRIO_PROCESS, 0)
    if number is None or nice < 0 or os.sched_getscheduler(0) != os.SCHED_OTHER:
        return False
    attr = _ATTR.pack(_ATTR.size, os.SCHED_OTHER, _RESET_ON_FORK, nice, 0, SLICE_NS, 0, 0, 0, 0)
    call = ctypes.CDLL(None).syscall
    return int(call(number, 0, ctypes.create_string_buffer(attr, _ATTR.size), 0)) == 0
