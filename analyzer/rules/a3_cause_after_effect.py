"""A circle of causes.

What it does:
    Happens-before must be an order. A read of an update that is only issued later, directly or
    through others, closes a circle; each circle is reported once.

Why it matters:
    Something was seen before it existed: a wrong version label, a reused dot, or records of two
    runs mixed.

Example:
    Rank 0 reads what rank 1 writes later, and rank 1 had read what rank 0 writes later.
"""

from __future__ import annotations

from analyzer.history import History
from analyzer.rules._base import Finding, Outcome, Rule


def check(history: History) -> Outcome:
    """Definition: design contract 4.4, A3 (Adya's G1c, with messages and collectives as edges)."""
    outcome = Outcome(num_checked=history.rows.n)
    for cycle in history.hb.cycles:
        seen = [r for r in cycle if history.rows.table_of(r) in ("reads", "updates")]
        row = min(seen or cycle)
        at = cycle.index(row)
        actors = sorted({int(history.rows.actor[r]) for r in cycle})
        outcome.findings.append(
            Finding(
                row=row,
                sentence=(
                    f"{len(cycle)} events of {history.whom(actors)} each had to happen before the "
                    "next, and the last before the first: something was seen before it existed."
                ),
                witness=(*cycle[at:], *cycle[:at], row),
            )
        )
    return outcome


PLUGIN = Rule(code="A3", severity="error", needs=("updates", "reads"), check=check, watches=())
