"""Rules about walks and debts by their definitions."""

from __future__ import annotations

from typing import Any

from tests.analyzer.brute_facts import Facts, Key, Row
from tests.analyzer.walk_story import LEGAL, LEVEL


class Walk:
    """Committed rows of one epoch, and the one that reports."""

    def __init__(self, facts: Facts, rows: list[tuple[int, Row]]) -> None:
        self.rows = rows
        boss = [(i, r) for i, r in rows if _actor(r["proposer"]) == facts.actor(i)]
        self.at, self.row = (boss or rows)[0]
        self.up = LEVEL[self.row["to_regime"]] - LEVEL[self.row["from_regime"]]


def _actor(named: Any) -> tuple[int, int] | None:
    return None if named is None else (named["rank"], named["incarnation"])


def of_table(facts: Facts, table: str) -> list[tuple[int, Row]]:
    return [(i, r) for i, (t, r) in enumerate(facts.rows) if t == table]


def walks(facts: Facts) -> list[Walk]:
    found: dict[int, list[tuple[int, Row]]] = {}
    for i, r in of_table(facts, "transitions"):
        if r["phase"] == "committed":
            found.setdefault(r["new_epoch"], []).append((i, r))
    return [Walk(facts, rows) for _, rows in sorted(found.items())]


def l1(facts: Facts) -> set[Key]:
    found = set()
    for walk in walks(facts):
        came, fault, to = (walk.row[c] for c in ("from_regime", "fault", "to_regime"))
        free = walk.up == 0 or (fault == "OPERATOR" and walk.up < 0)
        free = free or (fault == "NO_MAJORITY" and to == "EVENTUAL")
        if not free and (came, fault, to) not in LEGAL:
            found.add(walk.at)
    return facts.keyed(found)


def l2(facts: Facts) -> set[Key]:
    deep = ("STATE_CORRUPTION", "NO_MAJORITY")
    return facts.keyed(
        {w.at for w in walks(facts) if w.up >= 2 or (w.up <= -2 and w.row["fault"] not in deep)}
    )


def _debts(facts: Facts) -> list[tuple[int, Row, list[int]]]:
    """(opened row, it, rows that close it)."""
    rows = of_table(facts, "debt")
    return [
        (i, r, [j for j, x in rows if x["debt_id"] == r["debt_id"] and x["action"] != "opened"])
        for i, r in rows
        if r["action"] == "opened"
    ]


def l3(facts: Facts) -> set[Key]:
    return facts.keyed(
        {
            w.at
            for w in walks(facts)
            if w.up > 0
            and any(
                LEVEL[r["relaxed"]] <= LEVEL[w.row["to_regime"]]
                and facts.before(i, w.at)
                and not any(facts.before(j, w.at) for j in closed)
                for i, r, closed in _debts(facts)
            )
        }
    )


def r3(facts: Facts) -> set[Key]:
    return facts.keyed({i for i, _, closed in _debts(facts) if not closed})


def r4(facts: Facts) -> set[Key]:
    found = set()
    for w in walks(facts):
        members = {_actor(m) for m in w.row["members"]}
        opened = {
            LEVEL[r["relaxed"]]
            for i, r, _ in _debts(facts)
            if r["new_epoch"] == w.row["new_epoch"] and facts.actor(i) in members
        }
        given_up = set(range(LEVEL[w.row["to_regime"]] + 1, LEVEL[w.row["from_regime"]] + 1))
        if given_up - opened:
            found.add(w.at)
    return facts.keyed(found)


def l6(facts: Facts) -> set[Key]:
    found = set()
    for i, r in of_table(facts, "transitions"):
        if r["phase"] != "proposed" or r["fault"] is None:
            continue
        if r["fault"] == "OPERATOR" and not r["evidence"]:
            continue
        shown = [
            j
            for e in r["evidence"]
            for j, key in enumerate(facts.keys)
            if key == (e["rank"], e["incarnation"], e["seq"])
            and facts.rows[j][1].get("fault") == r["fault"]
        ]
        if not any(facts.before(j, i) for j in shown):
            found.add(i)
    return facts.keyed(found)


def l8(facts: Facts) -> set[Key]:
    found = set()
    for w in walks(facts):
        if w.up <= 0:
            continue
        boss = _actor(w.row["proposer"])
        asked = [
            i
            for i, r in of_table(facts, "transitions")
            if r["phase"] == "proposed" and r["new_epoch"] == w.row["new_epoch"]
        ]
        decided = [
            i
            for i, r in of_table(facts, "decisions")
            if facts.actor(i) == boss
            and all(r[c] == w.row[c] for c in ("fault", "from_regime", "to_regime"))
        ]
        if not any(facts.before(i, asked[-1]) for i in decided):
            found.add(w.at)
    return facts.keyed(found)


def l4(facts: Facts) -> set[Key]:
    """Operations under another regime than the committed one; without a commit, any that differ."""
    found = set()
    agreed = {w.row["new_epoch"]: w.row["to_regime"] for w in walks(facts)}
    acts = [
        (i, r) for i, (t, r) in enumerate(facts.rows) if t in ("collectives", "updates", "reads")
    ]
    for i, r in acts:
        others = {x["regime"] for _, x in acts if x["epoch"] == r["epoch"]}
        if r["regime"] != agreed.get(r["epoch"], r["regime"]) or (
            r["epoch"] not in agreed and len(others) > 1
        ):
            found.add(i)
    return facts.keyed(found)


def l5(facts: Facts) -> set[Key]:
    """Operations of a new epoch that not all acknowledgements precede; of an old one after the commit."""
    rows = of_table(facts, "transitions")
    found = set()
    for i, (t, r) in enumerate(facts.rows):
        if t not in ("collectives", "updates", "reads") or r.get("action") in (
            "applied",
            "discarded",
        ):
            continue
        for w in walks(facts):
            if w.row["new_epoch"] != r["epoch"]:
                continue
            for member in w.row["members"]:
                acks = [
                    j
                    for j, x in rows
                    if x["phase"] == "acknowledged"
                    and x["new_epoch"] == r["epoch"]
                    and facts.actor(j) == _actor(member)
                ]
                if not any(facts.before(j, i) for j in acks):
                    found.add(i)
        own = [
            x["new_epoch"]
            for j, x in rows
            if x["phase"] == "committed" and facts.actor(j) == facts.actor(i) and j < i
        ]
        if own and r["epoch"] < own[-1]:
            found.add(i)
    return facts.keyed(found)


def l7(facts: Facts) -> set[Key]:
    """Members that heard of a commit, and committed neither it nor a later one."""
    commits = [(i, r) for i, r in of_table(facts, "transitions") if r["phase"] == "committed"]
    found = set()
    for w in walks(facts):
        for member in map(_actor, w.row["members"]):
            mine = [r["new_epoch"] for i, r in commits if facts.actor(i) == member]
            last = max(i for i in range(len(facts.rows)) if facts.actor(i) == member)
            heard = any(facts.before(i, last) for i, _ in w.rows)
            if heard and max(mine, default=-1) < w.row["new_epoch"]:
                found.add(last)
    return facts.keyed(found)
