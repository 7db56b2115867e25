"""One author's updates applied in another order than it issued them.

What it does:
    An update depends on its author's update before it. Who applies one must have applied that other
    one, or loaded it, or discarded it; unless it is void, or of an object that it does not hold. In
    every regime.

Why it matters:
    Each regime promises at least each author's own order. A step that is missing below a later one
    is a hole in the state which no later update fills.

Example:
    Rank 0 issues 0:1 and 0:2; rank 1 applies 0:2 and then 0:1.
"""

from __future__ import annotations

import numpy as np

from analyzer.applies import TABLES, applied_rows, too_early
from analyzer.columns import Ints
from analyzer.history import History
from analyzer.rules._base import Outcome, Rule


def check(history: History) -> Outcome:
    """Definition: monotonic writes (Terry et al. 1994), as ruled in design contract 4.4, S3."""
    outcome = Outcome()
    at = applied_rows(history, everywhere=True)
    outcome.num_checked = len(at)
    needed = _before(history, at)
    asked = needed >= 0
    keys = history.known.key[needed[asked]]
    outcome.take(too_early(history, at[asked], keys, "its author's earlier ", ""))
    return outcome


def _before(history: History, at: Ints) -> Ints:
    """Per applied row its author's last node before it that the actor is to hold; -1: none."""
    known, replicas = history.known, history.replicas
    needed = known.previous[known.of_update[at]] if len(known) else np.full(len(at), -1)
    actors = replicas.actor[at]
    while True:
        asked = np.flatnonzero(needed >= 0)
        skipped = asked[~replicas.keeps(actors[asked], known.object[needed[asked]])]
        if not len(skipped):
            return needed
        needed[skipped] = known.previous[needed[skipped]]


PLUGIN = Rule(
    code="S3",
    severity="error",
    needs=("updates",),
    check=check,
    watches=TABLES,
    yields_to=("A1",),
)
