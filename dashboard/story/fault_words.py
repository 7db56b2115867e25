"""What a detector saw, as a sentence for people; the fault's own name comes last."""

from __future__ import annotations

import signal
from collections.abc import Mapping
from typing import Any

from dashboard.story.words import plain

_VERBS = {"quiet": "quiet for", "stopped": "stopped for", "late": "late by"}


def fault_words(row: Mapping[str, Any], whom: str) -> str:
    """One health row that is a fault or a recovery.

    Args:
        row: with ``fault``, ``signal``, ``value`` and ``unit``.
        whom: whom it concerns; of a recovery, who saw it.
    """
    fault, value = plain(row["fault"]), row["value"]
    if row["signal"] == "dead":
        how = death_words(value)
        return f"{whom} died ({how}): {fault}" if how else f"{whom} died: {fault}"
    if row["signal"] == "unreachable" and value is not None:
        return f"{whom} was not reached for {value:g} s: {fault}"
    if row["signal"] == "calm_rounds" and value is not None:
        return f"{whom} counted {value:g} steps without a fault: {fault}"
    said = signal_words(row)
    return f"{fault}: {said}, {whom}" if said else f"{fault}, {whom}"


def signal_words(row: Mapping[str, Any]) -> str:
    """What a signal measured: ``late by 44.1 ms``, ``3 changes of the members``; may be empty."""
    name, value = row["signal"], row["value"]
    if not name:
        return ""
    words = plain(name, 40).replace("_", " ")
    if value is None:
        return words
    if name == "changes":
        return f"{value:g} changes of the members"
    unit = f" {plain(row['unit'], 20)}" if row["unit"] else ""
    return f"{_VERBS.get(name, words)} {value:.3g}{unit}"


def death_words(status: float | None) -> str:
    """``SIGKILL`` or ``exit code 1``: an exit status, where one below nought is a signal's number."""
    if status is None:
        return ""
    try:
        return signal.Signals(-round(status)).name
    except (ValueError, OverflowError):  # a number that a trace may hold and no process ends with
        return f"exit code {status:g}"
