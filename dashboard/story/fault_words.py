"""What a detector saw, as a sentence for people; the fault's own name comes last."""

from __future__ import annotations

import signal
from collections.abc import Mapping
from typing import Any

from dashboard.story.words import plain


def fault_words(row: Mapping[str, Any], whom: str) -> str:
    """One health row that is a fault or a recovery.

    Args:
        row: with ``fault``, ``signal``, ``value`` and ``unit``.
        whom: whom it concerns; of a recovery, who saw it.
    """
    fault, value = plain(row["fault"]), row["value"]
    if row["signal"] == "dead":
        return f"{whom} died{_how(value)}: {fault}"
    if row["signal"] == "unreachable" and value is not None:
        return f"{whom} was not reached for {value:g} s: {fault}"
    if row["signal"] == "calm_rounds" and value is not None:
        return f"{whom} counted {value:g} steps without a fault: {fault}"
    if not row["signal"]:
        return f"{fault}, {whom}"
    said = plain(row["signal"], 40).replace("_", " ")
    measured = "" if value is None else f" {value:g}"
    unit = f" {plain(row['unit'], 20)}" if row["unit"] else ""
    return f"{fault}: {said}{measured}{unit}, {whom}"


def _how(status: float | None) -> str:
    """An exit status; one below nought is a signal's number."""
    if status is None:
        return ""
    try:
        killed_by = signal.Signals(int(-status)).name if status < 0 else None
    except ValueError:
        killed_by = None
    return f" ({killed_by})" if killed_by else f" (exit status {status:g})"
