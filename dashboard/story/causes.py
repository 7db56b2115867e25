"""Why STRONG was left, and what detectors saw, in words; a fault event's own name stands beside them."""

from __future__ import annotations

import signal
from typing import Any

from dashboard.story.words import plain, who

_OF_RANK = {
    "RANK_SKEW_HIGH": "{who} came late",
    "STATE_CORRUPTION": "{who} held other bytes than the others",
    "GPU_FAIL_STOP": "{who} failed",
}
_OF_ALL = {
    "RANK_SKEW_HIGH": "a rank came late",
    "LINK_DELAY_HIGH": "a link became slow",
    "NODE_CHURN_HIGH": "ranks came and went",
    "STATE_CORRUPTION": "ranks held different bytes",
    "NO_MAJORITY": "no majority could be reached",
    "OPERATOR": "somebody asked for it",
}


def fault_words(fault: str | None, rank: int | None) -> str:
    """``rank 3 came late`` for a fault event and whom it is about; its name where there are none."""
    if fault is None:
        return "a walk"
    if rank is not None and fault in _OF_RANK:
        return _OF_RANK[fault].format(who=who([rank]))
    return _OF_ALL.get(fault, fault)


def signal_words(row: dict[str, Any]) -> str:
    """What a health row with a fault measured: ``ended by SIGKILL``, ``5 calm steps``; may be empty."""
    name, value = row["signal"], row["value"]
    if not name:
        return ""
    if name == "dead":
        return _how_ended(value)
    if value is None:
        return plain(name, 40).replace("_", " ")
    if name == "calm_rounds":
        return f"{value:g} calm steps"
    if name == "changes":
        return f"{value:g} changes of the members"
    unit = f" {plain(row['unit'], 20)}" if row["unit"] else ""
    said = {"quiet": "quiet for", "stopped": "stopped for", "late": "late by"}.get(name)
    return f"{said or plain(name, 40).replace('_', ' ')} {value:.3g}{unit}"


def _how_ended(status: float | None) -> str:
    if status is None:
        return "ended"
    try:
        return f"ended by {signal.Signals(-round(status)).name}"
    except (ValueError, OverflowError):  # a number that a trace may hold and no process ends with
        return f"ended with exit code {status:g}"
