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
from analyzer.session_pass import older_many
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
    """By the last own issue of the object before the read, where both lie in one session."""
    dots, rows = history.dots, history.rows
    if not len(reads) or not len(own):
        return
    author = rows.actor[dots.updates.rows[own]]
    num = int(max(dots.update_object.max(), dots.read_object.max())) + 2
    place = (author * num + dots.update_object[own]) * rows.n + dots.updates.rows[own]
    order = np.argsort(place)
    own, place = own[order], place[order]
    pair = sessions.actor[reads] * num + sessions.object[reads]
    at = np.searchsorted(place, pair * rows.n + sessions.row[reads]) - 1
    found = (at >= 0) & (place[np.maximum(at, 0)] // rows.n == pair)
    reads, last = reads[found], own[at[found]]
    issued_at = dots.updates.rows[last]
    same = sessions.sessions_at(issued_at) == sessions.session[reads]
    reads, last, issued_at = reads[same], last[same], issued_at[same]
    mine, seen = dots.update_key[last], sessions.key[reads]
    lacks = _upto(history, sessions, reads) < key_counter(mine)
    own_before = (seen >= 0) & (key_actor(seen) == key_actor(mine)) & (seen < mine)
    versions = sessions.versions
    known = np.where(sessions.by_dot[reads] & (sessions.version[reads] == NULL), seen, -1)
    behind = own_before | older_many(versions.place(known), versions.place(mine), *versions.facts)
    broken = np.where(sessions.by_frontier[reads], lacks, sessions.by_dot[reads] & behind)
    for i in np.flatnonzero(broken).tolist():
        how = "without it"
        if not sessions.by_frontier[reads[i]]:
            what = "initial value" if seen[i] < 0 else f"update {dots.name(int(seen[i]))}"
            how = f"at the older {what}"
        _report(history, outcome, int(issued_at[i]), int(sessions.row[reads[i]]), how)


def _upto(history: History, sessions: Sessions, reads: Ints) -> Ints:
    """Per read the counter up to which its frontier covers its own actor's updates."""
    flat = history.dots.read_frontier
    own = np.flatnonzero(flat.actor == sessions.actor[flat.owner])
    upto = np.zeros(len(sessions.row), dtype=np.int64)
    np.maximum.at(upto, flat.owner[own], flat.counter[own])
    return upto[reads]


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
