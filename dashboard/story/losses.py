"""Whom a view lost other than in order: who died, and who was stopped and left behind."""

from __future__ import annotations

from collections.abc import Sequence

from dashboard.story.facts import Facts
from dashboard.story.words import count_word, who

LOST = ("failed", "stopped")
"""Reasons of departures that are losses."""

Key = tuple[int, int]


def stopped_actors(facts: Facts) -> set[Key]:
    """Those that a host agent saw stopped (SIGSTOP, a debugger) for too long."""
    return {
        (row["rank"], row["incarnation"]) for row in facts.rows.faults if row["signal"] == "stopped"
    }


def lost_words(died: Sequence[int], stopped: Sequence[int], how: Sequence[str] = ()) -> str:
    """``ranks 1, 2 died (SIGKILL) and rank 3 was stopped``; empty when nobody was lost."""
    known = f" ({', '.join(how)})" if how else ""
    return _joined(
        f"{who(died)} died{known}" if died else "",
        f"{who(stopped)} {_were(stopped)} stopped" if stopped else "",
    )


def lost_count(died: Sequence[int], stopped: Sequence[int]) -> str:
    """``One rank died and two ranks were stopped``, for the begin of a sentence."""
    stops = f"{count_word(len(stopped), 'rank')} {_were(stopped)} stopped" if stopped else ""
    if died:
        stops = stops.lower()
    return _joined(f"{count_word(len(died), 'rank')} died" if died else "", stops)


def _were(ranks: Sequence[int]) -> str:
    return "was" if len(ranks) == 1 else "were"


def _joined(*parts: str) -> str:
    return " and ".join(part for part in parts if part)
