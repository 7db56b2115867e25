"""A hole in an actor's numbering.

What it does:
    Every actor numbers its events from 0 without holes. A missing number that no gaps row accounts
    for is reported here; it makes the verdict unknown, never violated.

Why it matters:
    An event that was lost without a note could have been anything, the proof of a fault included.

Example:
    Rank 0 has events 4 and 6.
"""

from __future__ import annotations

from analyzer.history import History
from analyzer.rules._base import Outcome, Rule


def check(history: History) -> Outcome:
    """Definition: design contract 4.4, Q1."""
    outcome = Outcome(num_checked=history.rows.num_actors)
    holes = [h for h in history.evidence.losses if not h.covered and h.first_seq]
    if holes:
        more = f" (and {len(holes) - 1} more holes)" if len(holes) > 1 else ""
        outcome.cannot_say(history.evidence.describe(holes[0]) + more)
    return outcome


PLUGIN = Rule(code="Q1", severity="warning", needs=(), check=check)
