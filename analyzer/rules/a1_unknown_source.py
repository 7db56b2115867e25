"""A read or apply of an update that nobody issued.

What it does:
    Every dot that a read or an applied update names must have an issued row, or lie inside a
    frontier that was loaded from a checkpoint or received as a snapshot. A gap at the author, or an
    author that departed without recording its own leaving, makes it unknown.

Why it matters:
    A value that nobody wrote is corruption, a mix-up of runs, or a write that escaped every log.

Example:
    Rank 1 reads params/0 at update 0:9; rank 0 issued updates 1 to 8 only.
"""

from __future__ import annotations

import numpy as np

from analyzer.columns import Ints
from analyzer.dots import Dots, key_actor, key_counter
from analyzer.history import History
from analyzer.rules._base import Finding, Outcome, Rule

_TABLES = ("updates", "reads")


def check(history: History) -> Outcome:
    """Definition: design contract 4.4, A1; Adya's thin-air read in Plume's terms (TAP a)."""
    outcome = Outcome()
    dots = history.dots
    rows, keys = _mentions(dots)
    mentioning = np.zeros(history.rows.n, dtype=np.bool_)
    mentioning[rows] = True
    outcome.num_checked = int(np.count_nonzero(mentioning))
    orphan = dots.issued_index(keys) < 0
    told: set[int] = set()
    # A read that names several unknown dots is one report.
    for row, key in sorted(zip(rows[orphan].tolist(), keys[orphan].tolist(), strict=True)):
        author = key_actor(key)
        if row in told or key_counter(key) <= dots.loaded_upto.get(author, 0):
            continue
        lost = history.evidence.lost(("updates",), [author])
        if lost:
            outcome.cannot_say(lost)
        elif author in history.walks.closed and not history.walks.left_in_order(author):
            outcome.cannot_say(
                f"{history.who(author)} departed, and its update {dots.name(key)} was seen by others "
                "without an issued row"
            )
        else:
            told.add(row)
            outcome.findings.append(_finding(history, row, key))
    return outcome


def _mentions(dots: Dots) -> tuple[Ints, Ints]:
    """(row, dot key) of every dot that an apply or a read names."""
    read = dots.read_key >= 0
    frontier = dots.read_frontier
    named = frontier.counter > 0
    rows = np.concatenate(
        [
            dots.updates.rows[dots.applied],
            dots.reads.rows[read],
            dots.reads.rows[frontier.owner[named]],
        ]
    )
    keys = np.concatenate(
        [dots.update_key[dots.applied], dots.read_key[read], frontier.keys[named]]
    )
    return rows, keys


def _finding(history: History, row: int, key: int) -> Finding:
    verb = "applied" if history.rows.table_of(row) == "updates" else "read"
    author = key_actor(key)
    known = history.rows.has_rows(author)
    issued = "never issued it" if known else "left no events and is no member of this run"
    return Finding(
        row=row,
        sentence=(
            f"{history.who_did(row)} {verb} update {history.dots.name(key)}, but "
            f"{history.who(author)} {issued}."
        ),
        witness=(row, history.rows.last_row(author)) if known else (row,),
    )


PLUGIN = Rule(code="A1", severity="error", needs=("updates", "reads"), check=check, watches=_TABLES)
