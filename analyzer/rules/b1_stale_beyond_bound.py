"""More behind than the object's bound allows.

What it does:
    For objects with a staleness_bound, in versions. Assigned: a read may be that many versions behind
    the greatest version that happens-before it, in every regime. Delta, under CAUSAL: an author may
    issue its n-th update only when every member of the view has folded, before it, at least n - bound
    of that author's updates of the object. Void updates and those inside a loaded state count as
    folded.

Why it matters:
    The bound is what keeps "a little stale" from becoming "another model": gradients against
    parameters that are too old push the wrong way.

Example:
    Bound 4: rank 0 writes up to version 10, all reduce together, rank 1 reads version 5.
"""

from __future__ import annotations

import numpy as np

from analyzer.applies import TABLES
from analyzer.columns import NULL, Ints
from analyzer.dots import COUNTER_BITS
from analyzer.history import History
from analyzer.rows import LEVELS
from analyzer.rules._base import Finding, Outcome, Rule
from analyzer.stale import look, plain_reads


def check(history: History) -> Outcome:
    """Definition: design contract 4.4, B1 (stale synchronous parallel, Ho et al. 2013)."""
    outcome = Outcome()
    bounds = _bounds(history)
    if bounds:
        if history.records("reads"):
            _reads(history, outcome, bounds)
        _issues(history, outcome, bounds)
    return outcome


def _bounds(history: History) -> dict[int, int]:
    """Bound by object, of objects that have one; the tightest where rows differ."""
    table = history.rows["objects"]
    codes, bound = history.rows.codes("object", table, "object"), table.ints("staleness_bound")
    found: dict[int, int] = {}
    for i in np.flatnonzero(bound != NULL).tolist():
        found[int(codes[i])] = min(int(bound[i]), found.get(int(codes[i]), int(bound[i])))
    return found


def _reads(history: History, outcome: Outcome, bounds: dict[int, int]) -> None:
    dots = history.dots
    reads = np.flatnonzero(np.isin(dots.read_object, list(bounds)) & plain_reads(history))
    outcome.num_checked += len(reads)
    stale = look(history, reads)
    # The initial value is version 0.
    seen = np.where((stale.seen == NULL) & (dots.read_key[reads] < 0), 0, stale.seen)
    judged = (stale.now != NULL) & (seen != NULL)
    bound = np.array([bounds[o] for o in dots.read_object[reads].tolist()], dtype=np.int64)
    judged[judged] = (stale.now - bound)[judged] > seen[judged]
    for i in np.flatnonzero(judged).tolist():
        row = int(dots.reads.rows[reads[i]])
        name = history.rows.word("object", int(dots.read_object[reads[i]]))
        outcome.findings.append(
            Finding(
                row=row,
                sentence=(
                    f"{history.who_did(row)} read {name} at version {seen[i]} after version "
                    f"{stale.now[i]} had been written: {stale.now[i] - seen[i]} behind, where "
                    f"{bound[i]} are allowed."
                ),
                witness=(int(stale.now_row[i]), row),
            )
        )


def _issues(history: History, outcome: Outcome, bounds: dict[int, int]) -> None:
    """Each author's updates of a delta object, against what each member had folded of them."""
    dots, rows, known = history.dots, history.rows, history.known
    author = rows.actor[dots.updates.rows]
    own = dots.issued & (dots.update_key >> COUNTER_BITS == author)
    objects = sorted(dots.delta_objects & set(bounds))
    own &= np.isin(dots.update_object, objects)
    index = np.flatnonzero(own)
    order = np.lexsort((index, author[index], dots.update_object[index]))
    index = index[order]
    if not len(index):
        return
    folds = Folds(history, objects)
    obj, who = dots.update_object[index], author[index]
    first = np.flatnonzero(np.append(True, (obj[1:] != obj[:-1]) | (who[1:] != who[:-1])))
    for low, high in zip(first.tolist(), [*first[1:].tolist(), len(index)], strict=True):
        span = index[low:high]
        void = known.void[known.of_update[span]]
        causal = rows.regime[dots.updates.rows[span]] == LEVELS["CAUSAL"]
        judged = np.flatnonzero(causal & ~void)
        outcome.num_checked += len(judged)
        if len(judged):
            bound = bounds[int(obj[low])]
            _of_author(history, outcome, folds, span, judged, np.cumsum(void), bound)


def _of_author(
    history: History,
    outcome: Outcome,
    folds: Folds,
    span: Ints,
    judged: Ints,
    voided: Ints,
    bound: int,
) -> None:
    """``span``: an author's updates of one object in order; ``voided``: how many are void up to each."""
    rows, dots, known = history.rows, history.dots, history.known
    node = known.of_update[span]
    node = node[~known.void[node]]
    at = dots.updates.rows[span]
    author, obj = int(rows.actor[at[0]]), int(dots.update_object[span[0]])
    told: set[int] = set()
    epochs = rows.epoch[at[judged]]
    for epoch in np.unique(epochs).tolist():
        part = judged[epochs == epoch]
        group = int(rows.group[at[part[0]]])
        view = history.walks.view_of(group, epoch, author)
        members = view.members if view else history.walks.initial_members(group)
        for member in members:
            if (
                member == author
                or not history.replicas.keeps(np.array([member]), np.array([obj])).all()
            ):
                continue
            had = folds.of(node, member)
            upto = (
                history.hb.last_before_many(at[part], np.full(len(part), member))
                if rows.has_rows(member)
                else np.full(len(part), -1)
            )
            count = np.searchsorted(had, upto, side="right") + voided[part]
            short = np.flatnonzero(count < part + 1 - bound)
            lost = history.evidence.lost(TABLES, [member]) if len(short) else None
            if lost or (len(short) and not history.records("messages")):
                outcome.cannot_say(
                    lost or "messages was not recorded, so what was folded before is open"
                )
                continue
            for i in short.tolist():
                row = int(at[part[i]])
                if row not in told:
                    told.add(row)
                    _report(history, outcome, row, member, int(part[i]) + 1, int(count[i]), bound)


class Folds:
    """When each member first had each update of the bounded delta objects."""

    def __init__(self, history: History, objects: list[int]) -> None:
        self._history = history
        dots, known = history.dots, history.known
        index = np.flatnonzero(dots.applied & np.isin(dots.update_object, objects))
        place = history.replicas.actor[index] * len(known) + known.of_update[index]
        self._place, first = np.unique(place, return_index=True)
        self._row: Ints = dots.updates.rows[index[first]]

    def of(self, node: Ints, member: int) -> Ints:
        """Sorted rows at which the member first had each of these nodes, where it ever had."""
        known, rows = self._history.known, self._history.rows
        when = np.full(len(node), rows.n, dtype=np.int64)
        wanted = member * len(known) + node
        at = np.minimum(np.searchsorted(self._place, wanted), max(len(self._place) - 1, 0))
        if len(self._place):
            has = self._place[at] == wanted
            when[has] = self._row[at[has]]
        counter = known.key[node] & ((1 << COUNTER_BITS) - 1)
        author = int(known.author[node[0]]) if len(node) else -1
        for row, frontier in self._history.replicas.loads_of(member):
            inside = counter <= frontier.get(author, 0)
            when[inside] = np.minimum(when[inside], row)
        return np.sort(when[when < rows.n])


def _report(
    history: History, outcome: Outcome, row: int, member: int, number: int, folded: int, bound: int
) -> None:
    obj = history.rows.content(row)["object"]
    last = history.hb.last_before(row, member)
    outcome.findings.append(
        Finding(
            row=row,
            sentence=(
                f"{history.who_did(row)} issued its update number {number} of {obj} when "
                f"{history.who(member)} had folded {folded} of them; it may be {bound} ahead."
            ),
            witness=(last, row) if last >= 0 else (row,),
        )
    )


PLUGIN = Rule(code="B1", severity="error", needs=("updates",), check=check)
