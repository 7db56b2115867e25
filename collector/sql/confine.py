"""Limits that the kernel holds a child process to."""

from __future__ import annotations

import math
import os
import resource
from contextlib import suppress

_OPEN_FILES = 1024


def confine_process(address_bytes: int) -> None:
    """No core file, no byte written to any file, no more memory and files than given."""
    _limit(resource.RLIMIT_CORE, 0)
    _limit(resource.RLIMIT_FSIZE, 0)
    _limit(resource.RLIMIT_AS, address_bytes)
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    _limit(resource.RLIMIT_NOFILE, _OPEN_FILES if hard < 0 else min(_OPEN_FILES, hard))


def no_more_processes() -> None:
    """No further process or thread; root is not held to it by the kernel."""
    with suppress(OSError, ValueError):
        _limit(resource.RLIMIT_NPROC, 0)


def confine_cpu(seconds: float, num_threads: int) -> None:
    """At most ``seconds`` of each thread from now on; the kernel kills the process after that."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    budget = used.ru_utime + used.ru_stime + seconds * max(1, min(num_threads, os.cpu_count() or 1))
    _limit(resource.RLIMIT_CPU, math.ceil(budget) + 1)


def _limit(which: int, value: int) -> None:
    resource.setrlimit(which, (value, value))
