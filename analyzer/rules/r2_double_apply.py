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

from analyzer.dots import flat_dots, key_actor, key_counter
from analyzer.history import History
from analyzer.rules._base import Finding, Outcome, Rule


def check(history: History) -> Outcome:
    """Definition: design contract 4.4, R2."""
    outcome = Outcome()
    dots, rows = history.dots, history.rows
    delta = np.isin(dots.update_object, list(dots.delta_objects))
    index = np.flatnonzero(dots.applied & delta)
    outcome.num_checked = len(index)
    loads = _loads(history)
    applied: dict[tuple[int, int, int], int] = {}
    session: dict[int, int] = {}
    for i in index.tolist():
        row, key = int(dots.updates.rows[i]), int(dots.update_key[i])
        actor, obj = int(rows.actor[row]), int(dots.update_object[i])
        taken = loads.get(actor, [])
        at = sum(1 for load, _ in taken if load < row)
        if at != session.get(actor, 0):
            # The replica was replaced: what was applied before is in the loaded frontier, or gone.
            session[actor] = at
            applied = {k: r for k, r in applied.items() if k[0] != actor}
        first = applied.setdefault((actor, obj, key), row)
        inside = at > 0 and key_counter(key) <= taken[at - 1][1].get(key_actor(key), 0)
        if first == row and not inside:
            continue
        before = taken[at - 1][0] if inside else first
        how = "although it was inside the state it had loaded" if inside else "a second time"
        outcome.findings.append(
            Finding(
                row=row,
                sentence=(
                    f"{history.who(actor)} applied update {dots.name(key)} to "
                    f"{rows.word('object', obj)} {how}."
                ),
                witness=(before, row),
            )
        )
    return outcome


def _loads(history: History) -> dict[int, list[tuple[int, dict[int, int]]]]:
    """Per actor: (row, frontier) of each load or received snapshot."""
    table = history.rows["checkpoints"]
    taken = table.mask("action", "loaded", "received")
    flat = flat_dots(history.rows, table, "frontier")
    frontiers: dict[int, dict[int, int]] = {}
    for owner, author, counter in zip(
        flat.owner.tolist(), flat.actor.tolist(), flat.counter.tolist(), strict=True
    ):
        one = frontiers.setdefault(owner, {})
        one[author] = max(one.get(author, 0), counter)
    found: dict[int, list[tuple[int, dict[int, int]]]] = {}
    for i in np.flatnonzero(taken).tolist():
        row = int(table.rows[i])
        found.setdefault(int(history.rows.actor[row]), []).append((row, frontiers.get(i, {})))
    return found


PLUGIN = Rule(
    code="R2", severity="error", needs=("updates",), check=check, watches=("updates", "checkpoints")
)
