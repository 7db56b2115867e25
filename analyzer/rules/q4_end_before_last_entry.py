"""An n-to-n collective that ended before its last member entered.

What it does:
    After the clock fit, no member's completion of an n-to-n collective may be earlier than another
    member's entry, by more than the fit's error; nor any member's earlier than its own entry. Members
    on hosts whose clocks are not connected are not compared. It concerns waits and clocks only, and
    does not reach the verdict.

Why it matters:
    It cannot be: so a clock is wrong there, by more than the fit could put right, and waits between
    those hosts are too.

Example:
    Rank 0 completes collective 5 at 12:00:01.2; rank 3 entered it at 12:00:01.5.
"""

from __future__ import annotations

import numpy as np

from analyzer.columns import NULL
from analyzer.history import History
from analyzer.rules._base import Outcome, Rule


def check(history: History) -> Outcome:
    """Definition: design contract 4.4, Q4."""
    instances = history.instances
    outcome = Outcome(num_checked=int((instances.kind == 0).sum()))
    if not len(instances):
        return outcome
    clocks = history.clocks
    index = instances.order
    complete = instances.table.ints("complete_ns")[index]
    actor = instances.actor[index]
    judged = (instances.kind[instances.of] == 0) & instances.completed[index] & (complete != NULL)
    entry = clocks.since_start(actor, instances.arrival()[index])
    leave = np.where(judged, clocks.since_start(actor, complete), np.inf)
    error = clocks.error[clocks.host[actor]].astype(np.float64)
    part = clocks.part[clocks.host[actor]]
    place = instances.of * (len(clocks.hosts) + 1) + part
    places, group = np.unique(place, return_inverse=True)
    last = np.full(len(places), -np.inf)
    np.maximum.at(last, group, entry - error)
    early = judged & (leave + error < last[group])
    if early.any():
        first = int(np.flatnonzero(early)[0])
        more = f" (and {int(early.sum()) - 1} more)" if early.sum() > 1 else ""
        name = instances.comm_name(int(instances.comm[index[first]]))
        outcome.cannot_say(
            f"{history.who(int(actor[first]))} completed collective "
            f"{int(instances.cseq[index[first]])} of {name} before the last member entered{more}"
        )
    return outcome


PLUGIN = Rule(code="Q4", severity="warning", needs=("collectives",), check=check)
