"""Ranks that the kernel keeps stopped: seen by their agent, and fenced, so that the job may go on.

A fence is final. Why it is safe to go on without a process that still lives: docs/decisions/0023.
"""

from __future__ import annotations

import ctypes
import os
import time
from collections.abc import Iterable
from pathlib import Path

from cascade_runtime.detectors._base import Verdict
from cascade_runtime.detectors.frozen import Frozen
from cascade_runtime.progress import Fence
from cascade_runtime.vocabulary.identity import Actor
from cascade_runtime.vocabulary.policy import FrozenLimits

LOOK_S = 0.02
"""A look costs some 10 us a rank; a stop is seen within this and judged after the policy's dwell."""

_MEMBARRIER = {"x86_64": 324, "aarch64": 283, "riscv64": 283}
_GLOBAL = 1  # MEMBARRIER_CMD_GLOBAL


def catch_up() -> bool:
    """Make every processor finish the stores that it has begun; False where the kernel cannot.

    Where it cannot, the fence stands on the rank being stopped: a process that the kernel has switched
    out has no store pending, and one that is switched in again reads memory anew.
    """
    number = _MEMBARRIER.get(os.uname().machine)
    return number is not None and ctypes.CDLL(None).syscall(number, _GLOBAL, 0, 0) == 0


def put_up(path: Path, since_ns: int) -> tuple[int, int]:
    """Fence the rank whose progress file this is.

    Returns:
        The last step that it may have decided, and the counter of the last dot that it may have issued.

    Raises:
        OSError: it has no progress file yet.
    """
    fence = Fence(path)
    if not fence.is_up:
        fence.raise_(since_ns)
    catch_up()
    return fence.standing()


class StopWatch:
    """Looks at the states of local processes and tells who has been stopped for too long.

    Args:
        limits: the policy's ``[frozen]``.
    """

    def __init__(self, limits: FrozenLimits) -> None:
        self._frozen = Frozen(limits)

    def look(self, now_s: float, states: Iterable[tuple[Actor, str]]) -> list[Verdict]:
        """What is new since the last look: who has been stopped for too long, and who runs again.

        Args:
            now_s: steady clock, seconds.
            states: actors with the letters of their processes (proc_stat.py).
        """
        for actor, state in states:
            if state not in "ZX":  # ended: the kernel tells by the pidfd
                self._frozen.feed(actor, state, now_s)
        return self._frozen.decide(now_s)

    @property
    def standing(self) -> dict[Actor, Verdict]:
        """Who is stopped."""
        return {v.subject: v for v in self._frozen.standing if v.subject is not None}

    def forget(self, actor: Actor) -> None:
        """It has ended."""
        self._frozen.forget(actor)


def since_ns(verdict: Verdict) -> int:
    """When (monotonic) the stop of this verdict was first seen."""
    return time.monotonic_ns() - int(verdict.value * 1e9)
