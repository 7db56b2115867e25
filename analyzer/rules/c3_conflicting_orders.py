"""Concurrent writes that two readers saw in opposite orders.

What it does:
    Of an assigned object: who reads one write although another one happened before the read has seen
    the other one overwritten. What all reads say of the order of writes must not run in a circle with
    happens-before. Reads that are stale by themselves (C2, T1) say nothing here. Not judged under
    EVENTUAL.

Why it matters:
    Two concurrent writes have no order of their own, but all must see them in one: else two ranks end
    with different values and each is sure of its own.

Example:
    Rank 0 writes 1 and rank 1 writes 2; rank 2 reads 1 and then 2, rank 3 reads 2 and then 1.
"""

from __future__ import annotations

import numpy as np

from analyzer.history import History
from analyzer.overwritten import Overwritten, circles, overwritten
from analyzer.rows import LEVELS
from analyzer.rules._base import Finding, Outcome, Rule
from analyzer.stale import look, plain_reads


def check(history: History) -> Outcome:
    """Definition: design contract 4.4, C3 (cyclic causal order with conflicts, CyclicCF of Plume)."""
    outcome = Outcome()
    dots = history.dots
    judged = plain_reads(history) & (history.rows.regime[dots.reads.rows] != LEVELS["EVENTUAL"])
    named = np.flatnonzero(judged & (dots.issued_index(dots.read_key) >= 0))
    outcome.num_checked = len(named)
    fresh = named[look(history, named).newer < 0]
    seen = overwritten(history, fresh)
    for circle in circles(history, seen):
        outcome.findings.append(_finding(history, circle))
    outcome.findings.sort(key=lambda finding: finding.row)
    return outcome


def _finding(history: History, circle: list[Overwritten]) -> Finding:
    """``circle``: each says that its older write came before its newer one, which leads to the next."""
    dots, rows = history.dots, history.rows
    objects = {int(dots.update_object[rows.index_in_table[one.older]]) for one in circle}
    name = " and ".join(rows.word("object", code) for code in sorted(objects))
    told = []
    witness: list[int] = []
    for one in circle:
        older, newer = (
            dots.name(int(dots.update_key[rows.index_in_table[row]]))
            for row in (one.older, one.newer)
        )
        told.append(f"{history.who_did(one.read)} saw {older} overwritten by {newer}")
        witness += [one.older, one.newer, one.read]
    return Finding(
        row=min(one.read for one in circle),
        sentence=f"writes of {name} were seen in orders that conflict: {', '.join(told[:4])}.",
        witness=tuple(witness),
    )


PLUGIN = Rule(code="C3", severity="error", needs=("updates", "reads"), check=check)
