"""A read that lacks what an earlier read had.

What it does:
    Inside one session of an actor, what it reads of an object must not go back: by version where
    versions are given, else by frontier (delta objects) or by the dot seen. Discarded updates don't
    count; loading a state starts anew. Not judged under EVENTUAL.

Why it matters:
    Going back means that state was replaced under the reader without anyone saying so.

Example:
    Rank 0 reads params/0 at version 2 and later at version 1.
"""

from __future__ import annotations

import numpy as np

from analyzer.columns import NULL, Ints
from analyzer.history import History
from analyzer.rules._base import Finding, Outcome, Rule
from analyzer.running import best_before
from analyzer.session_pass import folded_less, seen_newer
from analyzer.sessions import Sessions


def check(history: History) -> Outcome:
    """Definition: monotonic reads (Terry et al. 1994), as ruled in design contract 4.4, S2."""
    outcome = Outcome()
    sessions = Sessions(history)
    outcome.num_checked = int(sessions.judged.sum())
    _by_version(history, sessions, np.flatnonzero(sessions.version != NULL), outcome)
    plain = sessions.version == NULL
    _by_frontier(history, sessions, np.flatnonzero(plain & sessions.by_frontier), outcome)
    _by_dot(history, sessions, np.flatnonzero(plain & sessions.by_dot), outcome)
    outcome.findings.sort(key=lambda finding: finding.row)
    return outcome


def _by_version(history: History, sessions: Sessions, reads: Ints, outcome: Outcome) -> None:
    reads, group = sessions.grouped(reads)
    version = sessions.version[reads]
    real = ~np.isin(sessions.key[reads], history.dots.void)
    best = best_before(group, version, real)
    lower = (best >= 0) & (version < version[best]) & sessions.judged[reads]
    for at in np.flatnonzero(lower).tolist():
        earlier, later = int(reads[best[at]]), int(reads[at])
        _report(
            history,
            sessions,
            outcome,
            (earlier, later),
            f"at version {version[best[at]]} and later at version {version[at]}",
        )


def _by_frontier(history: History, sessions: Sessions, reads: Ints, outcome: Outcome) -> None:
    """Of each author the last dot on the object that was covered must not be an earlier one later."""
    if not len(reads):
        return
    reads, group = sessions.grouped(reads)
    begin, entry = sessions.entries(reads)
    flat, known = history.dots.read_frontier, history.known
    owner = np.repeat(reads, np.diff(begin))
    top = known.floor_on(sessions.object[owner], known.floor(flat.keys[entry]))
    earlier, had = folded_less(group, begin, flat.actor[entry], top, len(history.rows.actors))
    for i in np.flatnonzero((earlier >= 0) & sessions.judged[reads]).tolist():
        name = history.dots.name(int(known.key[had[i]]))
        pair = (int(reads[earlier[i]]), int(reads[i]))
        _report(history, sessions, outcome, pair, f"with update {name} and later without it")


def _by_dot(history: History, sessions: Sessions, reads: Ints, outcome: Outcome) -> None:
    if not len(reads):
        return
    reads, group = sessions.grouped(reads)
    key, versions = sessions.key[reads], sessions.versions
    real = ~np.isin(key, history.dots.void)
    newer = seen_newer(group, versions.place(key), real, *versions.facts)
    for i in np.flatnonzero((newer >= 0) & sessions.judged[reads]).tolist():
        name = history.dots.name
        now = "the initial value" if key[i] < 0 else f"the older {name(int(key[i]))}"
        how = f"at update {name(int(key[newer[i]]))} and later at {now}"
        _report(history, sessions, outcome, (int(reads[newer[i]]), int(reads[i])), how)


def _report(
    history: History, sessions: Sessions, outcome: Outcome, pair: tuple[int, int], how: str
) -> None:
    earlier, later = (int(sessions.row[i]) for i in pair)
    name = history.rows.word("object", int(sessions.object[pair[1]]))
    outcome.findings.append(
        Finding(
            row=later,
            sentence=f"{history.who_did(later)} read {name} {how}.",
            witness=(earlier, later),
        )
    )


PLUGIN = Rule(code="S2", severity="error", needs=("updates", "reads"), check=check)
