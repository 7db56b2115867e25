"""One update folded twice.

What it does:
    For delta objects, whose updates are added: an actor must not apply a dot that it already
    applied, or that was inside the state it loaded.

Why it matters:
    A gradient that is added twice is not idempotent: the model moves too far, and no digest of one
    replica alone shows it.

Example:
    Rank 1 applies 0:5 to params/0, reconnects, and applies 0:5 again.
"""

from __future__ import annotations

import numpy as np

from analyzer.columns import Flags, Ints
from analyzer.dots import key_actor, key_counter
from analyzer.history import History
from analyzer.rules._base import Finding, Outcome, Rule
from analyzer.running import groups_of


def check(history: History) -> Outcome:
    """Definition: design contract 4.4, R2."""
    outcome = Outcome()
    dots, rows = history.dots, history.rows
    index = np.flatnonzero(dots.applied & np.isin(dots.update_object, list(dots.delta_objects)))
    outcome.num_checked = len(index)
    if not len(index):
        return outcome
    row, key = dots.updates.rows[index], dots.update_key[index]
    # A load replaces the replica: what was applied before is in the loaded frontier, or gone.
    loads = history.replicas.loads
    session = np.searchsorted(np.array([at for at, _ in loads], dtype=np.int64), row)
    group = groups_of(rows.actor[row], session, dots.update_object[index], key)
    order = np.lexsort((row, group))
    first = np.ones(len(order), dtype=np.bool_)
    first[1:] = group[order][1:] != group[order][:-1]
    before = np.empty(len(order), dtype=np.int64)
    before[order] = row[order][first][np.cumsum(first) - 1]
    inside = _inside(history, row, key, session)
    for i in np.flatnonzero((before < row) | inside).tolist():
        how = "although it was inside the state it had loaded" if inside[i] else "a second time"
        at = loads[session[i] - 1][0] if inside[i] else int(before[i])
        name = rows.word("object", int(dots.update_object[index[i]]))
        outcome.findings.append(
            Finding(
                row=int(row[i]),
                sentence=(
                    f"{history.who_did(int(row[i]))} applied update {dots.name(int(key[i]))} to "
                    f"{name} {how}."
                ),
                witness=(at, int(row[i])),
            )
        )
    return outcome


def _inside(history: History, row: Ints, key: Ints, session: Ints) -> Flags:
    """Where the update was inside the state that its actor had loaded last."""
    rows = history.rows
    found = np.zeros(len(row), dtype=np.bool_)
    for number, (load, frontier) in enumerate(history.replicas.loads, 1):
        mine = np.flatnonzero((session == number) & (rows.actor[row] == rows.actor[load]))
        upto = np.zeros(len(rows.actors), dtype=np.int64)
        for author, counter in frontier.items():
            upto[author] = counter
        found[mine] = key_counter(key[mine]) <= upto[key_actor(key[mine])]
    return found


PLUGIN = Rule(
    code="R2", severity="error", needs=("updates",), check=check, watches=("updates", "checkpoints")
)
