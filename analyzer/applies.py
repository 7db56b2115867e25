"""What the rules about the order of updates share: who is concerned, and how it is told."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from analyzer.columns import Flags, Ints
from analyzer.dots import key_actor
from analyzer.history import History
from analyzer.replicas import LACKING, UNSURE
from analyzer.rows import LEVELS
from analyzer.told import Told

TABLES = ("updates", "checkpoints")
"""Tables by whose absence the rules about the order of updates accuse."""


def applied_rows(history: History, everywhere: bool = False) -> Ints:
    """Indices, in updates, of applied rows; without those under EVENTUAL unless ``everywhere``."""
    dots = history.dots
    judged: Flags = dots.applied
    if not everywhere:
        judged = judged & (history.rows.regime[dots.updates.rows] != LEVELS["EVENTUAL"])
    return np.flatnonzero(judged)


def too_early(history: History, at: Ints, keys: Ints, kept_by: str, why: str) -> Iterator[Told]:
    """Each applied row (``at``, ascending) that came before the dot beside it in ``keys``; once a row.

    Args:
        history: the trace.
        at: indices in updates.
        keys: per index a dot that its row needed.
        kept_by: which dot it is, as ``its author's earlier``.
        why: why it is needed, as a relative clause, or nothing.
    """
    answers = history.replicas.ask(at, keys)
    told: set[int] = set()
    for i in np.flatnonzero(answers != 0).tolist():
        index, key = int(at[i]), int(keys[i])
        row = int(history.dots.updates.rows[index])
        if row in told:
            continue
        actor = int(history.rows.actor[row])
        lost = history.evidence.lost(TABLES, concerned(history, actor, key))
        if answers[i] == UNSURE:
            lost = lost or f"{history.who(actor)} loaded a state whose content was not recorded"
        lost = lost or _left_unknown(history, key)
        if lost:
            yield Told(row, "", (), lost)
        elif answers[i] == LACKING:
            told.add(row)
            yield _early(history, index, key, kept_by, why)


def concerned(history: History, actor: int, key: int) -> set[int]:
    """Actors whose missing rows could clear one who applied something before the dot."""
    author = key_actor(key)
    mates: Iterable[int] = ()
    if author in history.walks.closed:
        mates = history.walks.cohort_mates(author)
    return {actor, author, *mates}


def _left_unknown(history: History, key: int) -> str | None:
    """Why nobody can say what became of a dot that no row of updates names."""
    author, dots = key_actor(key), history.dots
    if int(history.known.node(np.array([key]))[0]) >= 0:
        return None
    if author in history.walks.closed and not history.walks.left_in_order(author):
        return f"{history.who(author)} departed, and its update {dots.name(key)} is in no row"
    return None


def _early(history: History, index: int, key: int, kept_by: str, why: str) -> Told:
    dots, rows = history.dots, history.rows
    row, mine = int(dots.updates.rows[index]), int(dots.update_key[index])
    actor = int(rows.actor[row])
    same = dots.applied & (dots.update_key == key) & (rows.actor[dots.updates.rows] == actor)
    later = dots.updates.rows[same]
    later = later[later > row]
    fate = "which it applied only afterwards" if len(later) else "which it did not apply"
    issued = [r for r in (dots.issued_row(key), dots.issued_row(mine)) if r is not None]
    obj = rows.word("object", int(dots.update_object[index]))
    return Told(
        row=row,
        sentence=(
            f"{history.who(actor)} applied update {dots.name(mine)} to {obj} before "
            f"{kept_by}update {dots.name(key)}{why}, {fate}."
        ),
        witness=(*issued, row, *later[:1].tolist()),
    )
