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
from analyzer.running import best_before, groups_of
from analyzer.sessions import Sessions


def check(history: History) -> Outcome:
    """Definition: monotonic reads (Terry et al. 1994), as ruled in design contract 4.4, S2."""
    outcome = Outcome()
    sessions = Sessions(history)
    outcome.num_checked = int(sessions.judged.sum())
    _by_version(history, sessions, np.flatnonzero(sessions.version != NULL), outcome)
    _without_version(history, sessions, np.flatnonzero(sessions.version == NULL), outcome)
    outcome.findings.sort(key=lambda finding: finding.row)
    return outcome


def _by_version(history: History, sessions: Sessions, reads: Ints, outcome: Outcome) -> None:
    group = groups_of(sessions.actor[reads], sessions.object[reads], sessions.session[reads])
    order = np.lexsort((sessions.row[reads], group))
    reads, group = reads[order], group[order]
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


def _without_version(history: History, sessions: Sessions, reads: Ints, outcome: Outcome) -> None:
    void = set(history.dots.void.tolist())
    folded: dict[tuple[int, int, int], dict[int, tuple[int, int]]] = {}
    seen: dict[tuple[int, int, int], list[tuple[int, int]]] = {}
    for index in reads.tolist():
        place = (
            int(sessions.actor[index]),
            int(sessions.object[index]),
            int(sessions.session[index]),
        )
        if sessions.by_frontier(index):
            _frontier_read(history, sessions, index, folded.setdefault(place, {}), outcome)
        elif sessions.by_dot(index):
            _dot_read(history, sessions, index, seen.setdefault(place, []), void, outcome)


def _frontier_read(
    history: History,
    sessions: Sessions,
    index: int,
    folded: dict[int, tuple[int, int]],
    outcome: Outcome,
) -> None:
    """``folded``: per author the highest dot on the object read so far, and the read that had it."""
    dots, obj = history.dots, int(sessions.object[index])
    now = sessions.frontier(index)
    for author, (counter, earlier) in sorted(folded.items()):
        if dots.floor(obj, author, now.get(author, 0)) < dots.floor(obj, author, counter):
            if sessions.judged[index]:
                lost = f"with update {history.rows.actors[author]}:{counter} and later without it"
                _report(history, sessions, outcome, (earlier, index), lost)
            break
    for author, counter in now.items():
        top = dots.floor(obj, author, counter)
        if top > folded.get(author, (0, 0))[0]:
            folded[author] = (top, index)


def _dot_read(
    history: History,
    sessions: Sessions,
    index: int,
    seen: list[tuple[int, int]],
    void: set[int],
    outcome: Outcome,
) -> None:
    """``seen``: the newest dots read so far (none older than another) and the reads that had them."""
    key = int(sessions.key[index])
    newer = next((s for s in seen if sessions.older(key, s[0])), None)
    if newer is not None and sessions.judged[index]:
        now = "the initial value" if key < 0 else f"the older {history.dots.name(key)}"
        had = f"at update {history.dots.name(newer[0])} and later at {now}"
        _report(history, sessions, outcome, (newer[1], index), had)
    if newer is None and key >= 0 and key not in void and all(s[0] != key for s in seen):
        seen[:] = [s for s in seen if not sessions.older(s[0], key)]
        seen.append((key, index))


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
