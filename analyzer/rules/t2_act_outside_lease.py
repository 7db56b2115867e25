"""A lease used after it was taken back.

What it does:
    No lease may be used after its revocation, by happens-before, unless it was granted anew in
    between. A revocation of which the holder had no word is no fault of it.

Why it matters:
    After a revocation somebody else may hold the lease. Two that act under one lease overwrite each
    other's work, as with a KV prefix that was handed on.

Example:
    The planner revokes lease L and sends worker A a message; A then uses L.
"""

from __future__ import annotations

import numpy as np

from analyzer.columns import Ints
from analyzer.history import History
from analyzer.rules._base import Finding, Outcome, Rule

_TABLES = ("leases",)


def check(history: History) -> Outcome:
    """Definition: design contract 4.4, T2."""
    outcome = Outcome()
    rows, table = history.rows, history.rows["leases"]
    lease = rows.codes("lease", table, "lease_id")
    used, revoked, granted = (
        table.mask("action", action) & (lease >= 0) for action in ("used", "revoked", "granted")
    )
    outcome.num_checked = int(used.sum())
    order = np.argsort(lease, kind="stable")
    taken_back = np.unique(lease[revoked])
    for code in taken_back.tolist():
        low, high = np.searchsorted(lease[order], [code, code + 1])
        index = order[low:high]
        parts = [table.rows[index[mask[index]]] for mask in (used, revoked, granted)]
        for use, revocation in _after(history, *parts):
            lost = history.evidence.lost(_TABLES)
            if lost:
                outcome.cannot_say(lost)
            else:
                outcome.findings.append(_finding(history, use, revocation, code))
    outcome.findings.sort(key=lambda finding: finding.row)
    return outcome


def _after(history: History, used: Ints, revoked: Ints, granted: Ints) -> list[tuple[int, int]]:
    """(use, revocation before it) of one lease, where no grant lies between."""
    found: dict[int, int] = {}
    last_grants = [_last_before(history, used, part) for part in _by_actor(history, granted)]
    for part in _by_actor(history, revoked):
        # Of one actor's revocations the last before the use counts: what is granted anew after it
        # is so after the earlier ones.
        last = _last_before(history, used, part)
        open_ = last >= 0
        for grants in last_grants:
            both = open_ & (grants >= 0)
            open_[both] &= history.hb.before_many(last[both], grants[both]) == 0
        for i in np.flatnonzero(open_).tolist():
            found.setdefault(int(used[i]), int(last[i]))
    return sorted(found.items())


def _by_actor(history: History, rows: Ints) -> list[Ints]:
    actor = history.rows.actor[rows]
    return [rows[actor == a] for a in np.unique(actor).tolist()]


def _last_before(history: History, used: Ints, of_one: Ints) -> Ints:
    """Per use the last of these rows, all of one actor, that happens-before it; -1: none."""
    actor = np.full(len(used), int(history.rows.actor[of_one[0]]), dtype=np.int64)
    upto = history.hb.last_before_many(used, actor)
    at = np.searchsorted(of_one, upto, side="right") - 1
    return np.where(at >= 0, of_one[np.maximum(at, 0)], -1)


def _finding(history: History, use: int, revocation: int, lease: int) -> Finding:
    return Finding(
        row=use,
        sentence=(
            f"{history.who_did(use)} used lease {history.rows.word('lease', lease)} after "
            f"{history.who_did(revocation)} had revoked it."
        ),
        witness=(revocation, use),
    )


PLUGIN = Rule(code="T2", severity="error", needs=("leases",), check=check)
