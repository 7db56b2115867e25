"""Two different events under one number.

What it does:
    Exact copies of an event are dropped and counted. Two events of one (rank, incarnation, seq)
    that differ make the verdict unknown.

Why it matters:
    One of the two did not happen as written, and nothing says which.

Example:
    Rank 0, event 7 is a read in one file and an update in another.
"""

from __future__ import annotations

from analyzer.history import History
from analyzer.rules._base import Outcome, Rule


def check(history: History) -> Outcome:
    """Definition: design contract 4.4, Q2."""
    rows = history.rows
    outcome = Outcome(num_checked=rows.n)
    if rows.conflicts:
        first = rows.conflicts[0]
        more = f" (and {len(rows.conflicts) - 1} more)" if len(rows.conflicts) > 1 else ""
        outcome.cannot_say(
            f"rank {first.rank}, event {first.seq} is recorded in different versions{more}"
        )
    return outcome


PLUGIN = Rule(code="Q2", severity="warning", needs=(), check=check)
