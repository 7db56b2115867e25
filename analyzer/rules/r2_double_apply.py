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
    inside = _inside(history, row, key)
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


def _inside(history: History, row: Ints, key: Ints) -> Flags:
    """Where the update was inside the state that its actor had loaded last; ``row`` ascends."""
    rows, loads = history.rows, history.replicas.loads
    found = np.zeros(len(row), dtype=np.bool_)
    author, counter = key_actor(key), key_counter(key)
    upto = np.zeros(len(rows.actors), dtype=np.int64)
    for number, (load, frontier) in enumerate(loads, 1):
        end = rows.last_row(int(rows.actor[load])) + 1
        if number < len(loads):
            end = min(end, loads[number][0])
        low, high = np.searchsorted(row, [load, end])
        if low == high:
            continue
        # An entry without a rank names nobody.
        known = [entry for entry in frontier if entry >= 0]
        upto[known] = [frontier[entry] for entry in known]
        found[low:high] = counter[low:high] <= upto[author[low:high]]
        upto[known] = 0
    return found


PLUGIN = Rule(
    code="R2", severity="error", needs=("updates",), check=check, watches=("updates", "checkpoints")
)
