"""A read that is older than what the reader could have known.

What it does:
    Of an assigned object: the read's version is older than one whose write happens-before the read.
    Of a delta object that is read by frontier: the frontier covers an update and lacks one on which
    it depends, of the same object; that an update has arrived is nothing. What S1 and S2 say of the
    reader's own past, and T1 of acting on a plan, is left to them. Not judged under EVENTUAL.

Why it matters:
    Who has heard of a newer value and acts on the old one undoes, without knowing, what followed from
    the newer one.

Example:
    Rank 0 writes versions 1 and 2 of a key and sends rank 1 a message; rank 1 reads version 1.
"""

from __future__ import annotations

import numpy as np

from analyzer.folded import Hole, folded_reads, holes
from analyzer.history import History
from analyzer.rows import LEVELS
from analyzer.rules._base import Finding, Outcome, Rule
from analyzer.stale import plain_reads, plan_acts, stale_reads


def check(history: History) -> Outcome:
    """Definition: design contract 4.4, C2 (WriteCORead of causal consistency, in Plume's terms)."""
    outcome = Outcome()
    dots = history.dots
    judged = history.rows.regime[dots.reads.rows] != LEVELS["EVENTUAL"]
    assigned = np.flatnonzero(judged & plain_reads(history) & ~plan_acts(history))
    folded = judged & folded_reads(history)
    outcome.num_checked = len(assigned) + int(folded.sum())
    outcome.take(stale_reads(history, assigned))
    outcome.findings += [_hole(history, hole) for hole in holes(history, folded)]
    outcome.findings.sort(key=lambda finding: finding.row)
    return outcome


def _hole(history: History, hole: Hole) -> Finding:
    dots, known = history.dots, history.known
    row = int(dots.reads.rows[hole.read])
    covered, lacking = int(known.key[hole.covered]), int(known.key[hole.lacking])
    issued = [r for r in (dots.issued_row(lacking), dots.issued_row(covered)) if r is not None]
    name = history.rows.word("object", int(dots.read_object[hole.read]))
    return Finding(
        row=row,
        sentence=(
            f"{history.who_did(row)} read {name} with update {dots.name(covered)} folded in and "
            f"without update {dots.name(lacking)}, its cause."
        ),
        witness=(*issued, row),
    )


PLUGIN = Rule(
    code="C2",
    severity="error",
    needs=("updates", "reads"),
    check=check,
    yields_to=("S1", "S2"),
)
