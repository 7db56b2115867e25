"""What a detector saw, as a sentence for people; the fault's own name comes last."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dashboard.story.causes import signal_words
from dashboard.story.words import plain


def fault_words(row: Mapping[str, Any], whom: str) -> str:
    """One health row that is a fault or a recovery.

    Args:
        row: with ``fault``, ``signal``, ``value`` and ``unit``.
        whom: whom it concerns; of a recovery, who saw it.
    """
    fault, value = plain(row["fault"]), row["value"]
    said = signal_words(row)
    if row["signal"] == "dead":
        return f"{whom} died, {said}: {fault}"
    if row["signal"] == "unreachable" and value is not None:
        return f"{whom} was not reached for {value:g} s: {fault}"
    if row["signal"] == "calm_rounds" and value is not None:
        return f"{whom} counted {said}: {fault}"
    return f"{fault}: {said}, {whom}" if said else f"{fault}, {whom}"
