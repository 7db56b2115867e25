"""Acting on a plan that the actor could have known to be replaced.

What it does:
    When an actor acts on a plan (an object of kind plan, read with use act), no newer version of that
    plan may happen-before the act. A newer one of which no word could have reached the actor is no
    fault. Not judged under EVENTUAL.

Why it matters:
    An agent that works off a plan which its planner has taken back does work that somebody else does
    too, or that nobody wants any more.

Example:
    The planner writes version 2 and sends worker A a message; A then acts on version 1.
"""

from __future__ import annotations

import numpy as np

from analyzer.history import History
from analyzer.rows import LEVELS
from analyzer.rules._base import Outcome, Rule
from analyzer.stale import plain_reads, plan_acts, stale_reads


def check(history: History) -> Outcome:
    """Definition: design contract 4.4, T1."""
    outcome = Outcome()
    judged = history.rows.regime[history.dots.reads.rows] != LEVELS["EVENTUAL"]
    acts = np.flatnonzero(judged & plain_reads(history) & plan_acts(history))
    outcome.num_checked = len(acts)
    outcome.take(stale_reads(history, acts))
    return outcome


PLUGIN = Rule(code="T1", severity="error", needs=("updates", "reads"), check=check)
