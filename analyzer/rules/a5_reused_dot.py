"""One name for two updates.

What it does:
    A dot may be issued once; and everyone who applies it must have applied the same content, as
    far as digests were recorded.

Why it matters:
    All bookkeeping of what was folded, lost or applied twice goes by dots. A reused dot makes one
    of the two updates invisible.

Example:
    A restarted rank 1 counts again from 1 under its old incarnation and issues 1:5 a second time.
"""

from __future__ import annotations

import numpy as np

from analyzer.history import History
from analyzer.rules._base import Finding, Outcome, Rule


def check(history: History) -> Outcome:
    """Definition: design contract 4.4, A5."""
    outcome = Outcome()
    dots = history.dots
    keys, counts = np.unique(dots.update_key[dots.issued], return_counts=True)
    outcome.num_checked = len(np.unique(dots.update_key[dots.issued | dots.applied]))
    twice = keys[counts > 1]
    for key in twice.tolist():
        rows = dots.updates.rows[dots.issued & (dots.update_key == key)].tolist()
        outcome.findings.append(
            Finding(
                row=rows[1],
                sentence=(
                    f"update {dots.name(key)} was issued {len(rows)} times, by "
                    f"{history.who_did(rows[0])} and again by {history.who_did(rows[1])}."
                ),
                witness=(rows[0], rows[1]),
            )
        )
    _differing(history, outcome, set(twice.tolist()))
    return outcome


def _differing(history: History, outcome: Outcome, told: set[int]) -> None:
    dots = history.dots
    digest, words = dots.updates.words("digest")
    index = np.flatnonzero(dots.applied & (digest >= 0))
    index = index[np.argsort(dots.update_key[index], kind="stable")]
    key, digest = dots.update_key[index], digest[index]
    odd = np.flatnonzero((key[1:] == key[:-1]) & (digest[1:] != digest[:-1])) + 1
    for at in odd.tolist():
        one = int(key[at])
        if one in told:
            continue
        told.add(one)
        first, second = (int(dots.updates.rows[index[i]]) for i in (at - 1, at))
        outcome.findings.append(
            Finding(
                row=second,
                sentence=(
                    f"update {dots.name(one)} had digest {words[digest[at - 1]]} where "
                    f"{history.who_did(first)} applied it and {words[digest[at]]} where "
                    f"{history.who_did(second)} did."
                ),
                witness=(first, second),
            )
        )


PLUGIN = Rule(code="A5", severity="error", needs=("updates",), check=check)
