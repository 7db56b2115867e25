"""An update that was seen without any way by which it could have come.

What it does:
    A read or apply of another actor's update is explained by a message, a collective or a checkpoint
    that leads from its issue to there, or by what its actor, or one before it, had seen or loaded
    already. The fold of a climb comes with the commit: each member makes it itself. What is seen without
    any of these came by a channel that is not in the trace, or an event is missing. It accuses nobody, and
    makes this check unknown; the total does not go by it. Not judged under EVENTUAL.

Why it matters:
    Order that the trace does not hold is order that the other checks cannot use: they call a stale read
    fine where nothing shows that its reader could have known better.

Example:
    Rank 0 issues 0:1 of params/0; rank 1 reads it, and nothing went from rank 0 to rank 1.
"""

from __future__ import annotations

import numpy as np

from analyzer.columns import Flags, Ints
from analyzer.dots import key_actor, key_counter
from analyzer.edges import APPLIED, READ
from analyzer.history import History
from analyzer.rows import LEVELS
from analyzer.rules._base import Finding, Outcome, Rule
from analyzer.ways import other_ways

_TABLES = ("updates", "reads", "messages", "collectives", "checkpoints")


def check(history: History) -> Outcome:
    """Definition: findings of the design, section 2, A4; what follows from it: decision 0034."""
    outcome = Outcome()
    issued, seen = _sightings(history)
    sighted = np.zeros(history.rows.n, dtype=np.bool_)
    sighted[seen] = True
    outcome.num_checked = int(np.count_nonzero(sighted))
    if history.hb.cycles:
        outcome.cannot_say("some events wait for each other in a circle (see A3)")
        return outcome
    left = np.flatnonzero(~other_ways(history, issued, seen))
    issued, seen = issued[left], seen[left]
    fine = _loaded(history, issued, seen) | _folds_of_climbs(history, issued, seen)
    fine |= _by_log(history, issued, seen)
    issued, seen = issued[~fine], seen[~fine]
    if not len(seen):
        return outcome
    lost = history.evidence.lost(_TABLES)
    if not lost and not history.records("collectives"):
        lost = "collectives was not recorded, and updates may have come with them"
    if lost:
        outcome.cannot_say(lost)
        return outcome
    order = np.lexsort((issued, seen))
    rows, first = np.unique(seen[order], return_index=True)
    pairs = zip(issued[order][first].tolist(), rows.tolist(), strict=True)
    outcome.findings = [_finding(history, write, row) for write, row in pairs]
    return outcome


def _sightings(history: History) -> tuple[Ints, Ints]:
    """(issued row, row of another actor that saw it), those under EVENTUAL left out."""
    edges, rows = history.edges, history.rows
    by_dot = np.isin(edges.kind, (APPLIED, READ))
    issued, seen = edges.source[by_dot], edges.target[by_dot]
    judged = rows.regime[seen] != LEVELS["EVENTUAL"]
    judged &= rows.actor[issued] != rows.actor[seen]
    return issued[judged], seen[judged]


def _loaded(history: History, issued: Ints, seen: Ints) -> Flags:
    """Where a load that covers the update happens-before the row that saw it."""
    found = np.zeros(len(seen), dtype=np.bool_)
    if not len(seen):
        return found
    dots, rows = history.dots, history.rows
    key = dots.update_key[rows.index_in_table[issued]]
    author, counter = key_actor(key), key_counter(key)
    upto = np.zeros(len(rows.actors), dtype=np.int64)
    for load, frontier in history.replicas.loads:
        known = [entry for entry in frontier if entry >= 0]
        upto[known] = [frontier[entry] for entry in known]
        asked = np.flatnonzero(~found & (counter <= upto[author]))
        upto[known] = 0
        if len(asked):
            found[asked] = history.hb.before_many(np.full(len(asked), load), seen[asked]) != 0
    return found


def _folds_of_climbs(history: History, issued: Ints, seen: Ints) -> Flags:
    """Where it is the update that a climb's commit made, seen by one who had committed that climb.

    Its issuer makes it before it reads or reduces in the new epoch (design contract 4.4, "Who writes").
    """
    found = np.zeros(len(seen), dtype=np.bool_)
    if not len(seen):
        return found
    rows, ops = history.rows, history.operations
    active = ops.row[~np.isin(ops.row, history.dots.updates.rows)]
    order = np.argsort(issued, kind="stable")
    in_order = issued[order]
    for walk in history.walks.walks:
        for step in walk.commits if walk.climbs else ():
            end = rows.last_row(step.actor) + 1
            later = active[np.searchsorted(active, step.row) :][:1]
            if len(later):
                end = min(end, int(later[0]))
            low, high = np.searchsorted(in_order, [step.row + 1, end])
            own = order[low:high]
            for i in own[rows.epoch[issued[own]] == walk.new_epoch].tolist():
                mine = walk.commit_of(int(rows.actor[seen[i]]))
                found[i] |= mine is not None and mine.row < seen[i]
    return found


def _by_log(history: History, issued: Ints, seen: Ints) -> Flags:
    """Where its actor followed the log of a member that had it (docs/decisions/0024).

    A newcomer does so from the live snapshot that it received up to its first commit.
    """
    found = np.zeros(len(seen), dtype=np.bool_)
    if not len(seen):
        return found
    rows, dots, table = history.rows, history.dots, history.rows["checkpoints"]
    names = table.words("checkpoint_id")[0]
    givers = table.mask("action", "saved")
    key = dots.update_key[rows.index_in_table[issued]]
    order = np.argsort(seen, kind="stable")
    in_order = seen[order]
    for i in np.flatnonzero(table.mask("action", "received") & (names >= 0)).tolist():
        row = int(table.rows[i])
        actor = int(rows.actor[row])
        commits = [step.row for step in history.walks.commits_of(actor) if step.row > row]
        until = commits[0] if commits else rows.last_row(actor) + 1
        low, high = np.searchsorted(in_order, [row + 1, until])
        inside = order[low:high]
        if not len(inside):
            continue
        given_by = rows.actor[table.rows[givers & (names == names[i])]]
        had = dots.applied & np.isin(rows.actor[dots.updates.rows], given_by)
        found[inside] |= np.isin(key[inside], dots.update_key[had])
    return found


def _finding(history: History, issued: int, row: int) -> Finding:
    dots, rows = history.dots, history.rows
    index = int(rows.index_in_table[issued])
    verb = "applied" if rows.table_of(row) == "updates" else "read"
    obj = rows.word("object", int(dots.update_object[index]))
    return Finding(
        row=row,
        sentence=(
            f"{history.who_did(row)} {verb} update {dots.name(int(dots.update_key[index]))} of {obj}, "
            "and no message, collective or checkpoint in this trace leads from its issue to there."
        ),
        witness=(issued, row),
        inferred=rows.meta.mode == "imported",
    )


PLUGIN = Rule(
    code="A4",
    severity="info",
    needs=("updates", "reads", "messages"),
    check=check,
    watches=_TABLES,
)
