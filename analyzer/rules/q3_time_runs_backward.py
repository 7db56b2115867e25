"""Times of one actor that run backward.

What it does:
    From each event of an actor to its next, neither its steady wall time nor its monotonic clock may
    go back. It concerns waits and clocks only, and does not reach the verdict.

Why it matters:
    Where time ran backward, durations and waits of that actor are not to be trusted. Order is not
    concerned: it never rests on clocks.

Example:
    Rank 0's event 7 is at 12:00:01.5, its event 8 at 12:00:01.2.
"""

from __future__ import annotations

import numpy as np

from analyzer.columns import NULL
from analyzer.history import History
from analyzer.rules._base import Outcome, Rule


def check(history: History) -> Outcome:
    """Definition: design contract 4.4, Q3."""
    rows = history.rows
    outcome = Outcome(num_checked=rows.n)
    same = rows.actor[1:] == rows.actor[:-1]
    back = same & (rows.wall[1:] < rows.wall[:-1])
    given = (rows.mono[1:] != NULL) & (rows.mono[:-1] != NULL)
    back |= same & given & (rows.mono[1:] < rows.mono[:-1])
    at = np.flatnonzero(back)
    if len(at):
        more = f" (and {len(at) - 1} more times)" if len(at) > 1 else ""
        seq = int(rows.seq[at[0] + 1])
        outcome.cannot_say(
            f"{history.who_did(int(at[0]))}, event {seq} is before the one before it{more}"
        )
    return outcome


PLUGIN = Rule(code="Q3", severity="warning", needs=(), check=check)
