"""A forward read that lacks the reader's own update.

What it does:
    After an actor issued an update of an object, its forward reads of that object must include it:
    by version where versions are given, else by frontier (delta objects) or by the dot seen.
    Discarded updates don't count; loading a state starts anew. Not judged under EVENTUAL.

Why it matters:
    The optimizer stepped and the next forward pass ran without that step: the update is lost where
    it was made.

Example:
    Rank 0 issues version 2 of params/0 and then reads version 1.
"""

from __future__ import annotations

import numpy as np

from analyzer.columns import NULL, Ints
from analyzer.dots import COUNTER_BITS, key_actor, key_counter
from analyzer.history import History
from analyzer.rules._base import Finding, Outcome, Rule
from analyzer.running import best_before, groups_of
from analyzer.sessions import Sessions


def check(history: History) -> Outcome:
    """Definition: read your writes (Terry et al. 1994), as ruled in design contract 4.4, S1."""
    outcome = Outcome()
    sessions = Sessions(history)
    forward = history.dots.reads.mask("use", "forward") & sessions.judged
    outcome.num_checked = int(forward.sum())
    own = _own_issues(history)
    _by_version(
        history, sessions, np.flatnonzero(forward & (sessions.version != NULL)), own, outcome
    )
    _without_version(
        history, sessions, np.flatnonzero(forward & (sessions.version == NULL)), own, outcome
    )
    outcome.findings.sort(key=lambda finding: finding.row)
    return outcome


def _own_issues(history: History) -> Ints:
    """Indices, in updates, of what actors issued themselves and was not voided."""
    dots = history.dots
    author = history.rows.actor[dots.updates.rows]
    own = (
        dots.issued
        & (dots.update_key >> COUNTER_BITS == author)
        & ~np.isin(dots.update_key, dots.void)
    )
    return np.flatnonzero(own)


def _by_version(
    history: History, sessions: Sessions, reads: Ints, own: Ints, outcome: Outcome
) -> None:
    dots = history.dots
    version = dots.updates.ints("version")
    own = own[version[own] != NULL]
    row = np.concatenate([dots.updates.rows[own], sessions.row[reads]])
    obj = np.concatenate([dots.update_object[own], sessions.object[reads]])
    value = np.concatenate([version[own], sessions.version[reads]])
    issue = np.arange(len(row)) < len(own)
    group = groups_of(history.rows.actor[row], obj, sessions.sessions_at(row))
    order = np.lexsort((row, group))
    best = best_before(group[order], value[order], issue[order])
    row, value, issue = row[order], value[order], issue[order]
    lower = ~issue & (best >= 0) & (value < value[best])
    for at in np.flatnonzero(lower).tolist():
        _report(history, outcome, int(row[best[at]]), int(row[at]), f"at version {value[at]}")


def _without_version(
    history: History, sessions: Sessions, reads: Ints, own: Ints, outcome: Outcome
) -> None:
    dots = history.dots
    issues: dict[tuple[int, int], list[int]] = {}
    for index in own.tolist():
        key = (int(history.rows.actor[dots.updates.rows[index]]), int(dots.update_object[index]))
        issues.setdefault(key, []).append(index)
    rows_of = {key: dots.updates.rows[found] for key, found in issues.items()}
    for index in reads.tolist():
        actor, obj, row = (int(c[index]) for c in (sessions.actor, sessions.object, sessions.row))
        if (actor, obj) not in issues:
            continue
        at = int(np.searchsorted(rows_of[actor, obj], row)) - 1
        if at < 0:
            continue
        last = issues[actor, obj][at]
        issued_at = int(dots.updates.rows[last])
        if sessions.sessions_at(np.array([issued_at]))[0] != sessions.session[index]:
            continue
        mine = int(dots.update_key[last])
        if sessions.by_frontier(index):
            if sessions.frontier(index).get(actor, 0) < key_counter(mine):
                _report(history, outcome, issued_at, row, "without it")
        elif sessions.by_dot(index):
            seen = int(sessions.key[index])
            behind = (
                seen >= 0 and key_actor(seen) == actor and key_counter(seen) < key_counter(mine)
            )
            if behind or sessions.older(seen, mine):
                what = "initial value" if seen < 0 else f"update {dots.name(seen)}"
                _report(history, outcome, issued_at, row, f"at the older {what}")


def _report(history: History, outcome: Outcome, issued: int, read: int, how: str) -> None:
    update = history.rows.content(issued)
    name = f"update {history.dots.name(int(_key_at(history, issued)))} of {update['object']}"
    version = "" if update["version"] is None else f" (version {update['version']})"
    outcome.findings.append(
        Finding(
            row=read,
            sentence=f"{history.who_did(read)} issued {name}{version} and then read it {how}.",
            witness=(issued, read),
        )
    )


def _key_at(history: History, row: int) -> int:
    return int(history.dots.update_key[history.rows.index_in_table[row]])


PLUGIN = Rule(code="S1", severity="error", needs=("updates", "reads"), check=check)
