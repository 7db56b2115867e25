"""An update applied before another one on which it depends.

What it does:
    An issued update lists the nearest updates of others that its author had folded in (``deps``). Who
    applies it must have applied each of them, or loaded or discarded it; unless that one is void, or
    of an object that the actor does not hold. Not judged under EVENTUAL.

Why it matters:
    Cause and effect is what CAUSAL promises while ranks no longer wait for each other. An effect
    without its cause is a state that never existed anywhere.

Example:
    Rank 1 folds 0:1 and issues 1:1, which lists it; rank 2 applies 1:1 and has not seen 0:1.
"""

from __future__ import annotations

import numpy as np

from analyzer.applies import TABLES, applied_rows, too_early
from analyzer.history import History
from analyzer.rules._base import Outcome, Rule


def check(history: History) -> Outcome:
    """Definition: causal delivery (Birman, Schiper and Stephenson 1991), design contract 4.4, C1."""
    outcome = Outcome()
    known = history.known
    at = applied_rows(history)
    outcome.num_checked = len(at)
    begin, deps = known.deps
    node = known.of_update[at]
    count = begin[node + 1] - begin[node]
    total = int(count.sum())
    within = np.arange(total) - np.repeat(np.cumsum(count) - count, count)
    keys = deps[np.repeat(begin[node], count) + within]
    named = keys >= 0
    causes = too_early(history, np.repeat(at, count)[named], keys[named], "", ", its cause")
    outcome.take(causes)
    return outcome


PLUGIN = Rule(code="C1", severity="error", needs=("updates",), check=check, watches=TABLES)
