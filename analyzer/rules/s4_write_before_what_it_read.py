"""An update applied before what its author had read when it issued it.

What it does:
    What an actor has read of others since its last update is a cause of its next one, listed or not:
    of each author and object the newest, where it had not read that before. Who applies the update
    must have applied that one, or loaded or discarded it, as for C1. What the update lists, or what
    follows from it, is judged there. Not judged under EVENTUAL.

Why it matters:
    A dependency that nobody wrote down is one that no delivery can keep. The reads show it.

Example:
    Rank 1 reads 0:1 and issues 1:1 without listing it; rank 2 applies 1:1 and then 0:1.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from analyzer.applies import applied_rows, too_early
from analyzer.columns import Flags, Ints
from analyzer.dots import COUNTER_BITS
from analyzer.history import History
from analyzer.rules._base import Outcome, Rule
from analyzer.running import groups_of


class Unlisted(NamedTuple):
    """What authors had read and not listed: one entry each."""

    read: Ints
    """Node that was read."""
    issued: Ints
    """Node of its first update afterwards."""


def check(history: History) -> Outcome:
    """Definition: writes follow reads (Terry et al. 1994), as ruled in design contract 4.4, S4."""
    outcome = Outcome()
    applied = applied_rows(history)
    outcome.num_checked = len(applied)
    if not len(applied):
        return outcome
    at, needed = _questions(history, applied, _unlisted(history))
    keys = history.known.key[needed]
    outcome.take(too_early(history, at, keys, "", ", which its author had read"))
    return outcome


def _unlisted(history: History) -> Unlisted:
    """Every newest read before an own issue that the issue depends on, and does not say so."""
    known = history.known
    row, node = _reads(history)
    actor = history.rows.actor[row]
    issues, issue_actor = _own_issues(history)
    other = (known.author[node] != actor) & np.isin(actor, issue_actor)
    row, node, actor = row[other], node[other], actor[other]
    # The running newest of each (actor, author, object): older ones read later change nothing.
    group = groups_of(actor, known.author[node], known.object[node])
    order = np.lexsort((row, group))
    row, node, actor, group = row[order], node[order], actor[order], group[order]
    newest = np.maximum.accumulate(node + group * len(known)) - group * len(known)
    fresh = np.ones(len(node), dtype=np.bool_)
    fresh[1:] = (group[1:] != group[:-1]) | (newest[1:] != newest[:-1])
    row, node, actor, group = row[fresh], newest[fresh], actor[fresh], group[fresh]
    # The first own issue before a still newer read; rows are in order of actors.
    until = np.full(len(row), history.rows.n, dtype=np.int64)
    until[:-1] = np.where(group[1:] == group[:-1], row[1:], until[:-1])
    until = np.minimum(until, history.rows.start[actor + 1])
    low, high = (np.searchsorted(issues.row, r) for r in (row, until))
    some = low < high
    node, issued = node[some], issues.node[low[some]]
    open_ = ~known.depends(issued, node)
    return Unlisted(node[open_], issued[open_])


def _reads(history: History) -> tuple[Ints, Ints]:
    """(row, node) of every dot that a read saw: the one it names, or each author's last it covers."""
    dots, known = history.dots, history.known
    named = np.flatnonzero(dots.read_key >= 0)
    flat = dots.read_frontier
    covered = known.floor_on(dots.read_object[flat.owner], known.floor(flat.keys))
    row = np.concatenate([dots.reads.rows[named], dots.reads.rows[flat.owner]])
    node = np.concatenate([known.node(dots.read_key[named]), covered])
    real = node >= 0
    real[real] = ~known.void[node[real]]
    return row[real], node[real]


class Issues(NamedTuple):
    """Updates that their authors issued, void ones left out, in row order."""

    row: Ints
    node: Ints


def _own_issues(history: History) -> tuple[Issues, Ints]:
    """Own issues, and the actors that have some."""
    dots, known = history.dots, history.known
    actor = history.rows.actor[dots.updates.rows]
    own: Flags = dots.issued & (dots.update_key >> COUNTER_BITS == actor)
    index = np.flatnonzero(own)
    index = index[~known.void[known.of_update[index]]]
    issues = Issues(dots.updates.rows[index], known.of_update[index])
    return issues, np.unique(actor[index])


def _questions(history: History, applied: Ints, unlisted: Unlisted) -> tuple[Ints, Ints]:
    """(index of an applied row, node that it needs), in order of indices."""
    replicas = history.replicas
    everywhere = _by_node(history, np.flatnonzero(history.dots.applied))
    judged = _by_node(history, applied)
    loaders = replicas.loaders
    at, needed = [np.empty(0, dtype=np.int64)], [np.empty(0, dtype=np.int64)]
    for read, issued in zip(unlisted.read.tolist(), unlisted.issued.tolist(), strict=True):
        index = judged.of(issued)
        # Most had it long before: ask only about those which, at a glance, had not.
        had = everywhere.of(read)
        since = np.full(len(history.rows.actors), len(replicas.actor), dtype=np.int64)
        np.minimum.at(since, replicas.actor[had], had)
        actor = replicas.actor[index]
        early = index[(index < since[actor]) | np.isin(actor, loaders)]
        at.append(early)
        needed.append(np.full(len(early), read))
    joined, nodes = np.concatenate(at), np.concatenate(needed)
    order = np.argsort(joined, kind="stable")
    return joined[order], nodes[order]


class ByNode(NamedTuple):
    """Indices in updates, by the node that each names."""

    node: Ints
    place: Ints

    def of(self, node: int) -> Ints:
        """The indices that name the node."""
        low, high = np.searchsorted(self.node, [node, node + 1])
        return self.place[low:high]


def _by_node(history: History, index: Ints) -> ByNode:
    node = history.known.of_update[index]
    order = np.argsort(node, kind="stable")
    return ByNode(node[order], index[order])


PLUGIN = Rule(code="S4", severity="error", needs=("updates", "reads"), check=check)
