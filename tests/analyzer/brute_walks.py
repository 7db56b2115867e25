"""Rules about walks and debts by their definitions, and stories of walks with something changed."""

from __future__ import annotations

import random
from typing import Any

from cascade_runtime.vocabulary.policy import load_policy
from tests.analyzer.brute_facts import Facts, Key, Row
from tests.story import Story

LEVEL = {"EVENTUAL": 1, "CAUSAL": 2, "STRONG": 3}
LEGAL = {
    (row.from_regime.value, row.fault.value, row.to_regime.value)
    for row in load_policy("default").rows
}
FAULTS = [
    "GPU_FAIL_STOP",
    "RANK_SKEW_HIGH",
    "STABLE_SYNC",
    "OPERATOR",
    "NO_MAJORITY",
    "STATE_CORRUPTION",
]


def walk_story(seed: int) -> Story:
    """Some walks, mostly as the policy has them, with work between; then a row or two is changed."""
    rng = random.Random(seed)
    story = Story(ranks=3, agents=1)
    for _ in range(rng.randint(1, 4)):
        _work(rng, story)
        now = story.agents[0].regime
        moves = [(f, t) for r, f, t in sorted(LEGAL) if r == now and t != r]
        fault, to = rng.choice(moves)
        if rng.random() < 0.12:
            fault, to = rng.choice(FAULTS), rng.choice(sorted(LEVEL))
        if LEVEL[to] > LEVEL[now] and rng.random() < 0.85:
            story.settle_all()
        story.walk(to, fault, debts=rng.random() < 0.9)
    _work(rng, story)
    if rng.random() < 0.7:
        story.settle_all()
    for _ in range(rng.choice([0, 1, 2])):
        _change(rng, story)
    return story


def _work(rng: random.Random, story: Story) -> None:
    for _ in range(rng.randint(0, 2)):
        one = rng.choice(story.ranks)
        if rng.random() < 0.5:
            one.read(version=1)
        else:
            story.all_reduce(comm=f"c{story.agents[0].epoch}")


def _change(rng: random.Random, story: Story) -> None:
    """One row says something else, or says nothing of it any more."""
    kind = rng.choice(["decisions", "decisions", "transitions", "debt", "reads", "reads"])
    places = [
        i
        for i, (t, r) in enumerate(story.rows)
        if t == kind and r.get("phase") in (None, "proposed")
    ]
    if not places:
        return
    place = rng.choice(places)
    table, row = story.rows[place]
    if table == "transitions":
        row["evidence"] = []
    elif table == "reads":
        row["regime"] = rng.choice(sorted(LEVEL))
    else:
        lead = {k: row[k] for k in list(row)[:10]}
        story.rows[place] = ("steps", lead | {"phase": "end"})


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
