"""How busy the ranks' processes keep the CPU, from what the kernel counts for each.

Where no GPU is measured this is the nearest thing to utilisation that there is. It goes into health
rows and not into compute rows: those say exactly when a device was busy, and exposed waits are
computed from them; a share of half a second says no such thing.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path

from cascade_runtime.vocabulary.identity import Actor

PERIOD_S = 0.5
"""The kernel counts in hundredths of a second here, so a sample is good to 2 percent."""

_UTIME, _STIME = 11, 12
"""Fields of /proc/PID/stat after the name in brackets (proc(5): fields 14 and 15)."""


def cpu_seconds(pid: int) -> float | None:
    """CPU time that all threads of a process have used; None when it is gone or the kernel tells not."""
    try:
        text = Path(f"/proc/{pid}/stat").read_bytes()
        fields = text[text.rindex(b")") + 1 :].split()
        return (int(fields[_UTIME]) + int(fields[_STIME])) / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError):
        return None


class CpuBusy:
    """Turns growing CPU times into percentages of one core.

    Args:
        read: CPU seconds of a process by its pid.
    """

    def __init__(self, read: Callable[[int], float | None] = cpu_seconds) -> None:
        self._read = read
        self._last: dict[tuple[Actor, int], tuple[float, float]] = {}

    def sample(
        self, now_s: float, processes: Iterable[tuple[Actor, int]]
    ) -> list[tuple[Actor, float]]:
        """Percent of one core since the last sample, by actor; above 100 with several busy threads.

        Args:
            now_s: steady clock, seconds.
            processes: actor and pid of those that run now.

        Returns:
            Nothing of a process that is seen for the first time, or that is gone.
        """
        found: list[tuple[Actor, float]] = []
        kept: dict[tuple[Actor, int], tuple[float, float]] = {}
        for key in processes:
            used_s = self._read(key[1])
            if used_s is None:
                continue
            kept[key] = (now_s, used_s)
            before = self._last.get(key)
            if before is not None and now_s > before[0]:
                percent = 100.0 * (used_s - before[1]) / (now_s - before[0])
                found.append((key[0], max(0.0, percent)))
        self._last = kept
        return found
