"""An update without a fate when its debt was settled.

What it does:
    When a debt is settled, every update that was in flight when it was opened, and every one that a
    member issued or applied between the two on the debt's object, must lie inside the settled
    frontier or be named among what was resolved. Void updates need no fate; and an update of a step
    that was still open then, which nobody had applied, is not lost when it is applied later. A debt
    that was settled after the climb is L3's.

Why it matters:
    Settling says "all are level again". An update that is in nobody's merged state by then is lost,
    and no replica can tell.

Example:
    Rank 0 had 0:1 in flight and rank 1 had 1:1; the merge is settled with 0:1 only.
"""

from __future__ import annotations

import numpy as np

from analyzer.applies import concerned
from analyzer.columns import Flags, Ints
from analyzer.debts import Debt, debts_of
from analyzer.dots import COUNTER_BITS, dot_keys, flat_dots, key_actor
from analyzer.history import History
from analyzer.rules._base import Finding, Outcome, Rule

_COUNTERS = (1 << COUNTER_BITS) - 1


def check(history: History) -> Outcome:
    """Definition: design contract 4.4, R1."""
    outcome = Outcome()
    for debt in debts_of(history.rows):
        settled = _settled(history, debt)
        if settled is None:
            continue
        outcome.num_checked += 1
        keys, rows = _owed(history, debt, settled)
        covered, named = _fate(history, settled)
        if covered is None and named is None:
            # Neither list was recorded: the one word for all of it is what there is.
            if len(keys) and not history.rows.content(settled)["resolution"]:
                outcome.cannot_say(
                    f"debt {debt.debt_id} was settled, and what became of its updates is not recorded"
                )
            continue
        known = history.known
        node = known.node(keys)
        fine = _inside(keys, covered or {}) | np.isin(keys, named or [])
        if len(known):
            fine |= (node >= 0) & known.void[np.maximum(node, 0)]
        for i in np.flatnonzero(~fine & (rows != debt.opened_row)).tolist():
            fine[i] = _was_open(history, int(keys[i]), settled)
        if not fine.all():
            _accuse(history, outcome, debt, settled, keys[~fine], rows[~fine])
    return outcome


def _was_open(history: History, key: int, settled: int) -> bool:
    """True when nobody had applied the update before the debt was settled, and somebody did later."""
    dots = history.dots
    applied = dots.updates.rows[dots.applied & (dots.update_key == key)]
    before = history.hb.before_many(applied, np.full(len(applied), settled))
    return len(applied) > 0 and not before.any()


def _settled(history: History, debt: Debt) -> int | None:
    """The debt's first settled row; None when it stands open, was written off first, or is L3's."""
    first = next(iter(debt.closed_rows), None)
    if first is None or debt.is_written_off:
        return None
    climbed = any(
        walk.climbs
        and walk.group == debt.group
        and walk.reported.to_level >= debt.relaxed
        and history.happens_before(debt.opened_row, walk.reported.row)
        and not history.happens_before(first, walk.reported.row)
        for walk in history.walks.walks
    )
    return None if climbed else first


def _fate(history: History, settled: int) -> tuple[dict[int, int] | None, list[int] | None]:
    """(author to counter of the frontier, dot keys resolved) of a settled row; None where null."""
    content, rows = history.rows.content(settled), history.rows
    covered: dict[int, int] | None = None
    if content["frontier"] is not None:
        covered = {}
        for dot in content["frontier"]:
            author = rows.actor_code(dot["rank"], dot["incarnation"])
            covered[author] = max(covered.get(author, 0), dot["counter"] or 0)
    if content["resolved"] is None:
        return covered, None
    resolved = [
        (rows.actor_code(dot["rank"], dot["incarnation"]) << COUNTER_BITS) | (dot["counter"] or 0)
        for dot in content["resolved"]
    ]
    return covered, resolved


def _inside(keys: Ints, covered: dict[int, int]) -> Flags:
    upto = np.array([covered.get(a, 0) for a in (keys >> COUNTER_BITS).tolist()], dtype=np.int64)
    return (keys & _COUNTERS) <= upto if len(keys) else np.zeros(0, dtype=np.bool_)


def _owed(history: History, debt: Debt, settled: int) -> tuple[Ints, Ints]:
    """(dot key, row that shows it), one a dot: in flight first, then by row."""
    rows, dots = history.rows, history.dots
    table = rows["debt"]
    flat = flat_dots(rows, table, "in_flight")
    mine = flat.owner == rows.index_in_table[debt.opened_row]
    keys = [dot_keys(flat.actor[mine], flat.counter[mine])]
    found = [np.full(int(mine.sum()), debt.opened_row, dtype=np.int64)]
    acts = dots.issued | dots.applied
    if debt.object is not None:
        acts = acts & (dots.update_object == rows.code("object", debt.object))
    for low, high in _between(history, debt.opened_row, settled):
        first, last = np.searchsorted(dots.updates.rows, [low, high])
        index = np.arange(first, last)[acts[first:last]]
        index = index[rows.group[dots.updates.rows[index]] == debt.group]
        keys.append(dots.update_key[index])
        found.append(dots.updates.rows[index])
    joined, at = np.concatenate(keys), np.concatenate(found)
    unique, place = np.unique(joined, return_index=True)
    return unique, at[place]


def _between(history: History, opened: int, settled: int) -> list[tuple[int, int]]:
    """Per actor its rows (first, end) after ``opened`` and before ``settled``, by happens-before."""
    rows, hb = history.rows, history.hb
    found = []
    for actor in range(rows.num_actors):
        last = hb.last_before(settled, actor)
        low, high = int(rows.start[actor]), last + 1
        while low < high:  # what an actor knows only grows
            middle = (low + high) // 2
            if hb.before(opened, middle):
                high = middle
            else:
                low = middle + 1
        if low <= last:
            found.append((low, last + 1))
    return found


def _accuse(
    history: History, outcome: Outcome, debt: Debt, settled: int, keys: Ints, rows: Ints
) -> None:
    dots = history.dots
    certain = []
    for key, row in zip(keys.tolist(), rows.tolist(), strict=True):
        lost = history.evidence.lost(("updates",), concerned(history, key_actor(key), key))
        if lost:
            outcome.cannot_say(lost)
        else:
            certain.append((key, row))
    if not certain:
        return
    key, row = certain[0]
    more = f" and {len(certain) - 1} more" if len(certain) > 1 else ""
    how = (
        "was in flight" if row == debt.opened_row else f"came in between, at {history.who_did(row)}"
    )
    between = () if row == debt.opened_row else (row,)
    outcome.findings.append(
        Finding(
            row=debt.opened_row,
            sentence=(
                f"{history.who_did(settled)} settled debt {debt.debt_id} without update "
                f"{dots.name(key)}{more}, which {how}: it is neither in the settled frontier nor "
                "among what was resolved."
            ),
            witness=(debt.opened_row, *between, settled),
        )
    )


PLUGIN = Rule(code="R1", severity="error", needs=("debt",), check=check)
