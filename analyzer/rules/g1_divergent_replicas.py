"""Replicas that should be equal and are not.

What it does:
    Digests of one object at one version, in one epoch under STRONG, must be equal; so must digests
    of equal frontiers in any regime. And all reads of one object in one STRONG step must name one
    version.

Why it matters:
    Silent corruption, a skipped update or a wrong restore shows up here first; the loss curve shows
    it days later.

Example:
    In epoch 7, params/0 at version 3 has digest aa on rank 0 and ab on rank 1.
"""

from __future__ import annotations

from collections.abc import Container, Hashable, Iterable

import numpy as np

from analyzer.columns import NULL, Ints
from analyzer.dots import flat_dots, key_counter
from analyzer.history import History
from analyzer.odd_stretches import Compared, stretches
from analyzer.rows import LEVELS
from analyzer.rules._base import Finding, Outcome, Rule
from analyzer.running import groups_of, minority

_DIGEST_CHARS = 6
"""A witness has the whole digest."""


def check(history: History) -> Outcome:
    """Definition: design contract 4.4, G1."""
    outcome = Outcome()
    _digests(history, outcome)
    _reads(history, outcome)
    return outcome


def _digests(history: History, outcome: Outcome) -> None:
    rows, table = history.rows, history.rows["digests"]
    digest, words = table.words("digest")
    obj = rows.codes("object", table, "object")
    group, epoch = rows.group[table.rows], rows.epoch[table.rows]
    version = table.ints("version")
    frontiers = _frontiers(history)
    strong = rows.regime[table.rows] == LEVELS["STRONG"]
    same: dict[Hashable, list[int]] = {}
    for i in np.flatnonzero(digest >= 0).tolist():
        if version[i] != NULL:
            if strong[i]:
                key: Hashable = ("v", int(group[i]), int(obj[i]), int(version[i]), int(epoch[i]))
                same.setdefault(key, []).append(i)
        elif frontiers[i] is not None:
            same.setdefault(("f", int(group[i]), int(obj[i]), frontiers[i]), []).append(i)
    odd: dict[int, list[int]] = {}
    for members in same.values():
        outcome.num_checked += len(members)
        values = [int(digest[i]) for i in members]
        if len(set(values)) > 1:
            odd |= {members[at]: members for at in minority(values)}
    when = _when(history, same.values(), odd) if odd else {}
    for i, members in odd.items():
        row = int(table.rows[i])
        other = next(j for j in members if digest[j] != digest[i])
        against = int(table.rows[other])
        name = rows.word("object", int(obj[other]))
        mine, its = _short(words[digest[i]], words[digest[other]])
        state = f"version {version[other]}" if version[other] != NULL else "the same frontier"
        who, whom = history.who_did(row), history.who_did(against)
        said = f"{who} has {name} at {state} with digest {mine}, {whom} with {its}."
        if i in when:
            equals = sum(digest[j] == digest[other] for j in members)
            others = whom if equals == 1 else f"{equals} other replicas"
            said = (
                f"{who} differs from {others} in {name} {when[i]}: at {state} it has digest {mine}, "
                f"{whom} has {its}."
            )
        outcome.findings.append(Finding(row=row, sentence=said, witness=(against, row)))


def _when(history: History, compared: Iterable[list[int]], odd: Container[int]) -> dict[int, str]:
    """In words, by the digests row with which a replica began to differ: from when to when it did."""
    rows, table = history.rows, history.rows["digests"]
    obj = rows.codes("object", table, "object")
    by_replica: dict[tuple[int, int, int], list[Compared]] = {}
    for i in sorted(i for members in compared if len(members) > 1 for i in members):
        row = int(table.rows[i])
        replica = (int(rows.group[row]), int(obj[i]), int(rows.actor[row]))
        mine = by_replica.setdefault(replica, [])
        mine.append(Compared(i, int(rows.step[row]), i in odd))
    found: dict[int, str] = {}
    for mine in by_replica.values():
        mine.sort(key=lambda one: int(rows.seq[table.rows[one.place]]))
        found |= stretches(mine)
    return found


def _short(a: str, b: str) -> tuple[str, str]:
    """Two digests as people read them: their beginnings, where those tell them apart."""
    short = a[:_DIGEST_CHARS], b[:_DIGEST_CHARS]
    return (a, b) if short[0] == short[1] else short


def _frontiers(history: History) -> list[tuple[tuple[int, int], ...] | None]:
    """Per digests row its frontier as sorted (author, counter) pairs, None where it has none.

    Counters go down to the author's last dot on that object, so that two frontiers which differ
    only in other objects are equal; not where updates are missing, because then nobody knows.
    """
    rows, table = history.rows, history.rows["digests"]
    flat = flat_dots(rows, table, "frontier")
    whole = history.records("updates") and not history.evidence.lost(("updates",))
    author, top = flat.actor, flat.counter
    if whole and len(flat.owner):
        known = history.known
        obj = rows.codes("object", table, "object")
        node = known.floor_on(obj[flat.owner], known.floor(flat.keys))
        top = np.where(node >= 0, key_counter(known.key[node]), 0) if len(known) else top * 0
    found: list[dict[int, int] | None] = [{} if given else None for given in flat.given.tolist()]
    for owner, who, counter in zip(flat.owner.tolist(), author.tolist(), top.tolist(), strict=True):
        pairs = found[owner]
        if pairs is not None and counter > 0:
            pairs[who] = max(pairs.get(who, 0), counter)
    return [None if pairs is None else tuple(sorted(pairs.items())) for pairs in found]


def _reads(history: History, outcome: Outcome) -> None:
    rows, table = history.rows, history.rows["reads"]
    version = table.ints("version")
    at = table.rows
    judged = np.flatnonzero(
        (version != NULL)
        & (rows.regime[at] == LEVELS["STRONG"])
        & (rows.step[at] != NULL)
        & (rows.epoch[at] != NULL)
    )
    outcome.num_checked += len(judged)
    if not len(judged):
        return
    obj = rows.codes("object", table, "object")[judged]
    at, version = at[judged], version[judged]
    group = groups_of(rows.group[at], obj, rows.epoch[at], rows.step[at])
    order = np.argsort(group, kind="stable")
    begin = np.searchsorted(group[order], np.arange(int(group.max()) + 2))
    low = np.minimum.reduceat(version[order], begin[:-1])
    high = np.maximum.reduceat(version[order], begin[:-1])
    for odd in np.flatnonzero(low != high).tolist():
        _odd_reads(history, outcome, order[begin[odd] : begin[odd + 1]], at, version, obj)


def _odd_reads(
    history: History, outcome: Outcome, members: Ints, at: Ints, version: Ints, obj: Ints
) -> None:
    values = version[members].tolist()
    for i in minority(values):
        row = int(at[members[i]])
        other = int(members[next(j for j, value in enumerate(values) if value != values[i])])
        outcome.findings.append(
            Finding(
                row=row,
                sentence=(
                    f"{history.who_did(row)} read {history.rows.word('object', int(obj[other]))} at "
                    f"version {values[i]} in step {history.rows.step[row]} under STRONG, "
                    f"{history.who_did(int(at[other]))} at version {version[other]}."
                ),
                witness=(int(at[other]), row),
            )
        )


PLUGIN = Rule(code="G1", severity="error", needs=(("digests", "reads"),), check=check)
