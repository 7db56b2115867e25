"""An actor whose first events are missing.

What it does:
    An actor's first event has number 0. A higher first number (a ring buffer that wrapped, a file
    that was cut) makes the verdict unknown, unless a gaps row says that only health, gpu, raw or
    compute events are missing.

Why it matters:
    What the actor had seen, loaded or promised before is not known.

Example:
    Rank 0's first event has number 4096.
"""

from __future__ import annotations

from analyzer.history import History
from analyzer.rules._base import Outcome, Rule


def check(history: History) -> Outcome:
    """Definition: design contract 4.4, Q5."""
    outcome = Outcome(num_checked=history.rows.num_actors)
    for loss in history.evidence.losses:
        if loss.first_seq == 0 and not loss.quiet:
            outcome.cannot_say(history.evidence.describe(loss))
    return outcome


PLUGIN = Rule(code="Q5", severity="warning", needs=(), check=check)
