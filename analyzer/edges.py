"""The edges of happens-before that are not program order (design contract 4.4).

Messages, collectives by kind, issued to applied or read, checkpoint saved to loaded. An n-to-n
collective is one hub node: every entry leads into it, every completion out of it. Nothing is
implied by the control plane.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from analyzer.columns import NULL, Flags, Ints
from analyzer.dots import COUNTER_BITS, Dots
from analyzer.instances import Instances
from analyzer.rows import Rows

MESSAGE, COLLECTIVE, APPLIED, READ, CHECKPOINT = range(1, 6)

EDGE_WORDS = {
    0: "program order",
    MESSAGE: "message",
    COLLECTIVE: "collective",
    APPLIED: "issued to applied",
    READ: "issued to read",
    CHECKPOINT: "saved to loaded",
}
"""Edge kinds for people; 0 is program order."""


class Edges(NamedTuple):
    """Edges between nodes: rows are nodes 0 to n - 1, hubs follow."""

    source: Ints
    target: Ints
    kind: Ints
    num_hubs: int


def build_edges(rows: Rows, dots: Dots, instances: Instances, messages: tuple[Ints, Ints]) -> Edges:
    """All edges of a trace, without those that program order implies.

    Args:
        rows: the trace's rows.
        dots: its updates and reads.
        instances: its collectives.
        messages: what ``message_pairs`` says of them.
    """
    parts = [
        messages,
        instances.edges(),
        _applied(dots),
        _reads(dots),
        _read_frontiers(dots),
        _checkpoints(rows),
    ]
    kinds = [MESSAGE, COLLECTIVE, APPLIED, READ, READ, CHECKPOINT]
    source = np.concatenate([p[0] for p in parts])
    target = np.concatenate([p[1] for p in parts])
    kind = np.repeat(np.array(kinds, dtype=np.int64), [len(p[0]) for p in parts])
    # Inside one actor an edge forward is program order; one backward is a cycle and stays.
    n = rows.n
    is_row: Flags = (source < n) & (target < n)
    inside = np.zeros(len(source), dtype=np.bool_)
    inside[is_row] = rows.actor[source[is_row]] == rows.actor[target[is_row]]
    keep = ~(inside & (source < target)) & (source != target)
    return Edges(source[keep], target[keep], kind[keep], instances.num_hubs)


def message_pairs(rows: Rows) -> tuple[Ints, Ints]:
    """(send row, recv row) of every message that both ends recorded."""
    table = rows["messages"]
    sent = table.mask("direction", "send")
    got = table.mask("direction", "recv")
    own = rows.actor[table.rows]
    peer = rows.actor_codes(table.ints("peer"), table.ints("peer_incarnation"))
    number = table.ints("channel_seq")
    comm = rows.codes("comm", table, "comm_id")
    usable = (sent | got) & (peer >= 0) & (number != NULL)
    source_actor = np.where(sent, own, peer)[usable]
    target_actor = np.where(sent, peer, own)[usable]
    at, is_recv = table.rows[usable], got[usable]
    keys = (comm[usable], source_actor, target_actor, number[usable])
    order = np.lexsort((at, is_recv, *reversed(keys)))
    begins = _begins([key[order] for key in keys])
    group = np.cumsum(begins) - 1
    at, is_recv = at[order], is_recv[order]
    # Sends sort first: a group's first row is its send, unless nobody recorded one.
    first = np.flatnonzero(begins)[group] if len(group) else group
    pairs = is_recv & ~is_recv[first] if len(first) else is_recv
    return at[first[pairs]], at[pairs]


def _applied(dots: Dots) -> tuple[Ints, Ints]:
    index = np.flatnonzero(dots.applied)
    return _from_issued(dots, dots.update_key[index], dots.updates.rows[index])


def _reads(dots: Dots) -> tuple[Ints, Ints]:
    index = np.flatnonzero(dots.read_key >= 0)
    return _from_issued(dots, dots.read_key[index], dots.reads.rows[index])


def _from_issued(dots: Dots, keys: Ints, targets: Ints) -> tuple[Ints, Ints]:
    issued = dots.issued_index(keys)
    found = issued >= 0
    return dots.updates.rows[issued[found]], targets[found]


def _read_frontiers(dots: Dots) -> tuple[Ints, Ints]:
    """A read that folded a frontier saw each author's last covered dot on that object."""
    flat = dots.read_frontier
    if not len(flat.owner):
        empty = np.empty(0, dtype=np.int64)
        return empty, empty
    issued = dots.first_issued
    own_keys = dots.update_key[issued]
    objects = dots.update_object[issued]
    order = np.lexsort((own_keys, objects))
    issued, own_keys, objects = issued[order], own_keys[order], objects[order]
    want_object = dots.read_object[flat.owner]
    want_keys = flat.keys
    # Position of (object, key) among the sorted issued dots, one object at a time.
    source, target = [], []
    for obj in np.unique(want_object).tolist():
        low, high = np.searchsorted(objects, [obj, obj + 1])
        asked = np.flatnonzero(want_object == obj)
        at = np.searchsorted(own_keys[low:high], want_keys[asked], side="right") - 1
        hit = at >= 0
        at, asked = at[hit] + low, asked[hit]
        same_author = own_keys[at] >> COUNTER_BITS == want_keys[asked] >> COUNTER_BITS
        source.append(dots.updates.rows[issued[at[same_author]]])
        target.append(dots.reads.rows[flat.owner[asked[same_author]]])
    return np.concatenate(source), np.concatenate(target)


def _checkpoints(rows: Rows) -> tuple[Ints, Ints]:
    """Every saved row of a checkpoint leads to every load of it.

    A save by an actor that had loaded the same id before is another checkpoint under a used name,
    and leads nowhere. Nor does a row that tells again what another run had saved: each loader tells it
    for itself.
    """
    table = rows["checkpoints"]
    saved: dict[str, list[int]] = {}
    loads: dict[str, list[int]] = {}
    for at, row in zip(table.rows.tolist(), table.dicts(), strict=True):
        if row["checkpoint_id"] is None or row["source_run"] is not None:
            continue
        side = saved if row["action"] == "saved" else loads
        side.setdefault(row["checkpoint_id"], []).append(at)
    source, target = [], []
    for checkpoint, takers in loads.items():
        first_load: dict[int, int] = {}
        for at in takers:
            first_load.setdefault(int(rows.actor[at]), at)
        for at in saved.get(checkpoint, ()):
            if at < first_load.get(int(rows.actor[at]), rows.n):
                source += [at] * len(takers)
                target += takers
    return np.array(source, dtype=np.int64), np.array(target, dtype=np.int64)


def _begins(keys: list[Ints]) -> Ints:
    """1 where a new group of equal keys begins (keys sorted)."""
    if not len(keys[0]):
        return np.empty(0, dtype=np.int64)
    change = np.zeros(len(keys[0]), dtype=np.bool_)
    change[0] = True
    for key in keys:
        change[1:] |= key[1:] != key[:-1]
    return change.astype(np.int64)
