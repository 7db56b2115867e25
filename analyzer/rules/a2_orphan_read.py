"""A read or apply of an update that a load took back.

What it does:
    When a group loads a checkpoint, what its members had issued beyond it is void, and what earlier
    incarnations of them had; when one actor loads a state of its own, what its earlier incarnations
    had issued beyond it and nobody else had applied by then. No read or apply after such a load may
    name one of those.

Why it matters:
    The update belongs to a past that was given up. Who still holds it trains on a model that the
    others no longer know.

Example:
    Rank 0 issues version 5 and dies; its successor loads a checkpoint of version 4 and sends rank 1 a
    message; rank 1 reads version 5.
"""

from __future__ import annotations

import numpy as np

from analyzer.columns import Ints
from analyzer.history import History
from analyzer.rollbacks import Load
from analyzer.rules._base import Finding, Outcome, Rule

_TABLES = ("updates", "checkpoints")


def check(history: History) -> Outcome:
    """Definition: design contract 4.4, A2."""
    outcome = Outcome()
    rollbacks = history.rollbacks
    outcome.num_checked = len(rollbacks.loads)
    told: set[int] = set()
    for loads, gone in rollbacks.of_group:
        _after(history, outcome, loads, gone, told)
    for load, beyond in rollbacks.of_self:
        gone = rollbacks.gone_with(load, beyond, history.hb)
        _after(history, outcome, [load], gone, told)
    outcome.findings.sort(key=lambda finding: finding.row)
    return outcome


def _after(
    history: History, outcome: Outcome, loads: list[Load], gone: Ints, told: set[int]
) -> None:
    """Rows after one of the loads that name one of the nodes."""
    rows, nodes = _mentions(history, gone)
    for load in loads:
        later = history.hb.before_many(np.full(len(rows), load.row), rows).astype(np.bool_)
        for row, node in zip(rows[later].tolist(), nodes[later].tolist(), strict=True):
            if row in told:
                continue
            told.add(row)
            lost = history.evidence.lost(_TABLES) if load.scope == "self" else None
            if lost:
                outcome.cannot_say(lost)
            else:
                outcome.findings.append(_finding(history, load, row, int(node)))


def _mentions(history: History, gone: Ints) -> tuple[Ints, Ints]:
    """(row, node) of applies and reads that name one of these nodes; a frontier names its last ones."""
    dots, known = history.dots, history.known
    applied = np.flatnonzero(dots.applied & np.isin(known.of_update, gone))
    read = known.node(dots.read_key)
    named = np.flatnonzero(np.isin(read, gone))
    flat = dots.read_frontier
    top = known.floor_on(dots.read_object[flat.owner], known.floor(flat.keys))
    folded = np.flatnonzero(np.isin(top, gone))
    rows = [dots.updates.rows[applied], dots.reads.rows[named], dots.reads.rows[flat.owner[folded]]]
    nodes = [known.of_update[applied], read[named], top[folded]]
    return np.concatenate(rows), np.concatenate(nodes)


def _finding(history: History, load: Load, row: int, node: int) -> Finding:
    key = int(history.known.key[node])
    verb = "applied" if history.rows.table_of(row) == "updates" else "read"
    issued = history.dots.issued_row(key)
    return Finding(
        row=row,
        sentence=(
            f"{history.who_did(row)} {verb} update {history.dots.name(key)} after "
            f"{history.who(load.actor)} had loaded checkpoint {load.checkpoint}, which took it back."
        ),
        witness=(*(() if issued is None else (issued,)), load.row, row),
    )


PLUGIN = Rule(
    code="A2",
    severity="error",
    needs=("updates", "reads", "checkpoints"),
    check=check,
    watches=_TABLES,
)
