"""A group of other members that acts before anybody said so.

What it does:
    A group that replaces another one of other members (by ``replaces``; where that is null, the last
    one of the same label that shares a rank with it and was used before) needs membership rows that
    name who left and who joined, before its first operation.

Why it matters:
    A process group that shrank or grew behind the consistency layer reduces over other ranks than the
    layer counts with: debts, acknowledgements and averages are all of the wrong set.

Example:
    Ranks 0 to 3 reduce together; then a group of ranks 0 to 2 does, and no membership row says that
    rank 3 has left.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from analyzer.history import History
from analyzer.rules._base import Finding, Outcome, Rule
from analyzer.walks import Members

_TABLES = ("groups", "membership", "messages")


class Group(NamedTuple):
    """A communicator and where it was first used."""

    comm: int
    label: str | None
    replaces: int | None
    members: Members
    row: int
    """Its first groups row."""
    used: int | None
    """Row of its first operation."""


def check(history: History) -> Outcome:
    """Definition: design contract 4.4, M2."""
    outcome = Outcome()
    groups = _groups(history)
    for group in groups.values():
        if group.used is None:
            continue
        before = _replaced(history, groups, group)
        if before is None:
            continue
        left = set(before.members) - set(group.members)
        came = set(group.members) - set(before.members)
        if not left | came:
            continue
        outcome.num_checked += 1
        untold = _untold(history, group.used, left, came)
        if not untold:
            continue
        lost = history.evidence.lost(_TABLES)
        if lost:
            outcome.cannot_say(lost)
        else:
            outcome.findings.append(_finding(history, before, group, untold))
    outcome.findings.sort(key=lambda finding: finding.row)
    return outcome


def _groups(history: History) -> dict[int, Group]:
    """Communicators by code."""
    rows, table = history.rows, history.rows["groups"]
    comms, replaces = (rows.codes("comm", table, c) for c in ("comm_id", "replaces"))
    first = _first_used(history)
    found: dict[int, Group] = {}
    for i, row in enumerate(table.dicts()):
        comm = int(comms[i])
        if comm < 0 or not row["members"]:
            continue
        old = int(replaces[i])
        known = found.get(comm)
        if known is None:
            members = tuple(rows.actor_code(m["rank"], m["incarnation"]) for m in row["members"])
            found[comm] = Group(
                comm, row["label"], None if old < 0 else old, members,
                int(table.rows[i]), first.get(comm),
            )  # fmt: skip
        elif known.replaces is None and old >= 0:
            found[comm] = known._replace(replaces=old)
    return found


def _first_used(history: History) -> dict[int, int]:
    """By communicator: the row of its first operation, of those with equal number the lowest."""
    instances = history.instances
    if not len(instances):
        return {}
    first = instances.order[instances.begin[:-1]]
    comms, place = np.unique(instances.comm[first], return_index=True)
    rows = instances.table.rows[first[place]]
    return dict(zip(comms.tolist(), rows.tolist(), strict=True))


def _replaced(history: History, groups: dict[int, Group], group: Group) -> Group | None:
    """The group that this one stands in for."""
    if group.replaces is not None:
        return groups.get(group.replaces)
    if group.label is None or group.used is None:
        return None
    ranks = {history.rows.actors[m].rank for m in group.members}
    before = [
        other
        for other in groups.values()
        if other.comm != group.comm
        and other.label == group.label
        and set(other.members) != set(group.members)
        and other.used is not None
        and history.happens_before(other.used, group.used)
        and ranks & {history.rows.actors[m].rank for m in other.members}
    ]
    # The last one: no other of them was used after it.
    for one in before:
        assert one.used is not None
        if not any(
            o is not one and o.used is not None and history.happens_before(one.used, o.used)
            for o in before
        ):
            return one
    return None


def _untold(history: History, used: int, left: set[int], came: set[int]) -> list[int]:
    """Who left or joined and is named in no membership row before the operation."""
    told_left: set[int] = set()
    told_came: set[int] = set()
    for row in history.walks.membership:
        if history.happens_before(row["row"], used):
            told_left.update(row["departed"])
            told_came.update(row["joined"])
    return sorted((left - told_left) | (came - told_came))


def _finding(history: History, before: Group, group: Group, untold: list[int]) -> Finding:
    assert group.used is not None
    verb = "left" if untold[0] in before.members else "joined"
    who = history.whom([a for a in untold if (a in before.members) == (verb == "left")])
    have = "has" if who.count("rank") == 1 else "have"
    witness = (before.used,) if before.used is not None else ()
    return Finding(
        row=group.used,
        sentence=(
            f"{history.who_did(group.used)} acted in group "
            f"{history.instances.comm_name(group.comm)} before any membership row said that {who} "
            f"{have} {verb}."
        ),
        witness=(*witness, group.used),
    )


PLUGIN = Rule(
    code="M2",
    severity="error",
    needs=("groups", "membership", "collectives"),
    check=check,
    watches=_TABLES,
)
