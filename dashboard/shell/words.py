"""Numbers and times as people read them."""

from __future__ import annotations

import time
from datetime import UTC, datetime

QUIET_S = 60
"""A job that runs, or hangs, has a row more often than that: without one it was killed, or cannot be heard."""

_UNITS = (("GB", 10**9), ("MB", 10**6), ("kB", 10**3))


def count(number: int) -> str:
    """1234567 as 1,234,567."""
    return f"{number:,}"


def moment(wall_ns: int) -> str:
    """A moment in UTC, to the second, with the zone."""
    return datetime.fromtimestamp(wall_ns / 1e9, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def duration(seconds: float) -> str:
    """A duration in the two units that say most: 1 h 04 min, 3 min 20 s, 4.2 s, 250 ms."""
    if seconds < 1:
        return f"{seconds * 1e3:.0f} ms"
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, left = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {left:02d} s"
    hours, minutes = divmod(minutes, 60)
    if hours < 48:
        return f"{hours} h {minutes:02d} min"
    return f"{hours // 24} d {hours % 24} h"


def ago(wall_ns: int) -> str:
    """How long ago something was."""
    return f"{duration(max(0.0, (time.time_ns() - wall_ns) / 1e9))} ago"


def going_on(last_seen_ns: int) -> str:
    """What is said of a run whose end is not known: live, or for how long it has sent nothing."""
    quiet_s = (time.time_ns() - last_seen_ns) / 1e9
    return "live" if quiet_s < QUIET_S else f"quiet for {duration(quiet_s)}"


def ended(clean_end: bool | None, ended_ns: int | None) -> str:
    """How a run ended that is not live; as trace.json tells it."""
    if ended_ns is None:
        return "still running or cut off"
    if clean_end is False:
        return "stopped early"
    return "ended" if clean_end else "ended, not cleanly"


def size(num_bytes: int) -> str:
    """Bytes in the unit that fits."""
    for unit, many in _UNITS:
        if num_bytes >= many:
            return f"{num_bytes / many:.1f} {unit}"
    return f"{num_bytes} bytes"
