"""Rules about updates and reads by their definitions."""

from __future__ import annotations

from typing import Any

from tests.analyzer.brute_facts import Dot, Facts, Key, Row, dot_of, dots, of_earlier_lives


def s3(facts: Facts) -> set[Key]:
    found = set()
    for i, dot in facts.applies(everywhere=True):
        earlier = [
            d
            for d, obj in facts.object.items()
            if d[:2] == dot[:2] and d[2] < dot[2] and d not in facts.void and facts.keeps(i, obj)
        ]
        if earlier and not facts.had(i, max(earlier)):
            found.add(i)
    return facts.keyed(found)


def c1(facts: Facts) -> set[Key]:
    return facts.keyed(
        {
            i
            for i, dot in facts.applies()
            if any(not facts.had(i, d) for d in facts.deps.get(dot, []))
        }
    )


def seen(facts: Facts, r: Row) -> list[Dot]:
    """What a read saw: the dot that it names, and each author's last on the object it covers."""
    found = []
    dot = dot_of(r)
    if dot in facts.object and dot not in facts.void:
        assert dot is not None
        found.append(dot)
    for d in dots(r["frontier"]):
        covered = [
            x
            for x, obj in facts.object.items()
            if x[:2] == d[:2] and x[2] <= d[2] and obj == r["object"] and x not in facts.void
        ]
        found += [max(covered)] if covered else []
    return found


def newest_read(facts: Facts, upto: int) -> dict[Any, Dot]:
    """By (author, object): the newest that the row's actor had read before it."""
    newest: dict[Any, Dot] = {}
    for j, r in facts.reads:
        if facts.actor(j) == facts.actor(upto) and j < upto:
            for d in seen(facts, r):
                place = (d[:2], facts.object[d])
                newest[place] = max(newest.get(place, d), d)
    return newest


def s4(facts: Facts) -> set[Key]:
    found = set()
    for i, dot in facts.applies():
        if dot not in facts.issued or dot in facts.void:
            continue
        at = facts.issued[dot]
        before = [
            j
            for d, j in facts.issued.items()
            if d[:2] == dot[:2] and d not in facts.void and j < at
        ]
        newest, known = (newest_read(facts, upto) for upto in (at, max(before, default=0)))
        causes = facts.causes(dot)
        needed = [
            d
            for place, d in newest.items()
            if d[:2] != dot[:2] and d not in causes and known.get(place) != d
        ]
        if any(not facts.had(i, d) for d in needed):
            found.add(i)
    return facts.keyed(found)


def version_of(facts: Facts, r: Row) -> int | None:
    dot = dot_of(r)
    if r["version"] is None and dot in facts.issued:
        version: int | None = facts.rows[facts.issued[dot]][1]["version"]
        return version
    version = r["version"]
    return version


def writes_before(facts: Facts, i: int, obj: str) -> list[tuple[int, Dot]]:
    """(issued row, dot) of writes that happen-before the read at i and still count for its actor."""
    gone = {d for _, r in facts.group_loads_before(i) for d in facts.gone(r)}
    return [
        (j, d)
        for d, j in facts.issued.items()
        if facts.object[d] == obj and d not in facts.void | gone and facts.before(j, i)
    ]


def stale_reads(facts: Facts) -> set[int]:
    """Reads of assigned objects that are older than a write before them."""
    found = set()
    for i, r in facts.reads:
        if facts.kind(r["object"]) != "assign" or r["frontier"] is not None:
            continue
        if facts.regime(i) == "EVENTUAL":
            continue
        mine, dot = version_of(facts, r), dot_of(r)
        for j, other in writes_before(facts, i, r["object"]):
            version = facts.rows[j][1]["version"]
            if dot is None and mine is None:
                newer = True
            elif mine is not None and version is not None:
                newer = mine < version
            else:
                newer = dot in facts.issued and dot != other and facts.before(facts.issued[dot], j)
            if newer:
                found.add(i)
    return found


def is_plan_act(facts: Facts, i: int) -> bool:
    r = facts.rows[i][1]
    return r["use"] == "act" and facts.objects.get(r["object"], {}).get("kind") == "plan"


def c2(facts: Facts) -> set[Key]:
    found = {i for i in stale_reads(facts) if not is_plan_act(facts, i)}
    for i, r in facts.reads:
        if facts.kind(r["object"]) != "delta" or facts.regime(i) == "EVENTUAL":
            continue
        upto = {d[:2]: d[2] for d in dots(r["frontier"])}
        live = [d for d, o in facts.object.items() if o == r["object"] and d not in facts.void]
        for d in live:
            if d[2] <= upto.get(d[:2], 0):
                causes = facts.causes(d)
                if any(c in causes and c[2] > upto.get(c[:2], 0) for c in live):
                    found.add(i)
    return facts.keyed(found)


def t1(facts: Facts) -> set[Key]:
    return facts.keyed({i for i in stale_reads(facts) if is_plan_act(facts, i)})


def b1(facts: Facts) -> set[Key]:
    found = set()
    bounds = {o: r["staleness_bound"] for o, r in facts.objects.items()}
    for i, r in facts.reads:
        bound = bounds.get(r["object"])
        if bound is None or facts.kind(r["object"]) != "assign":
            continue
        mine = version_of(facts, r)
        if mine is None and dot_of(r) is None:
            mine = 0
        versions = [facts.rows[j][1]["version"] for j, _ in writes_before(facts, i, r["object"])]
        now = max((v for v in versions if v is not None), default=None)
        if mine is not None and now is not None and now - mine > bound:
            found.add(i)
    members = sorted(
        {
            facts.actor(i)
            for i, (t, r) in enumerate(facts.rows)
            if t == "actors" and not r["incarnation"]
        }
    )
    for dot, at in facts.issued.items():
        obj = facts.object[dot]
        if bounds.get(obj) is None or facts.kind(obj) != "delta" or dot in facts.void:
            continue
        if facts.regime(at) != "CAUSAL":
            continue
        mine = [d for d in facts.issued if d[:2] == dot[:2] and facts.object[d] == obj and d <= dot]
        for member in members:
            if member == dot[:2] or member[0] not in (
                facts.objects[obj]["holders"] or [m[0] for m in members]
            ):
                continue
            folded = [d for d in mine if d in facts.void or _folded(facts, member, d, at)]
            if len(folded) < len(mine) - bounds[obj]:
                found.add(at)
    return facts.keyed(found)


def _folded(facts: Facts, member: tuple[int, int], dot: Dot, at: int) -> bool:
    applied = any(
        facts.actor(j) == member
        and r["action"] == "applied"
        and dot_of(r) == dot
        and facts.before(j, at)
        for j, r in facts.updates
    )
    return applied or any(
        facts.actor(j) == member
        and facts.before(j, at)
        and any(d[:2] == dot[:2] and dot[2] <= d[2] for d in dots(r["frontier"]))
        for j, r in facts.loads
    )


def r1(facts: Facts) -> set[Key]:
    """None where a debt was settled without saying anything: the caller leaves such stories out."""
    found = set()
    rows = [(i, r) for i, (t, r) in enumerate(facts.rows) if t == "debt"]
    for i, r in rows:
        if r["action"] != "opened":
            continue
        closing = [(j, x) for j, x in rows if x["debt_id"] == r["debt_id"] and j != i
                   and x["action"] != "opened"]  # fmt: skip
        if not closing or closing[0][1]["action"] == "written_off":
            continue
        j, settled = closing[0]
        fine = set(dots(settled["resolved"])) | facts.void
        upto = {d[:2]: d[2] for d in dots(settled["frontier"])}
        for d in dots(r["in_flight"]):
            if d not in fine and d[2] > upto.get(d[:2], 0):
                found.add(i)
        for k, u in facts.updates:
            d = dot_of(u)
            assert d is not None
            if u["action"] == "discarded" or d in fine or d[2] <= upto.get(d[:2], 0):
                continue
            if r["object"] not in (None, u["object"]):
                continue
            if not (facts.before(i, k) and facts.before(k, j)):
                continue
            applied = [x for x, v in facts.updates if v["action"] == "applied" and dot_of(v) == d]
            if not applied or any(facts.before(x, j) for x in applied):
                found.add(i)
    return facts.keyed(found)


def a2(facts: Facts) -> set[Key]:
    found = set()
    for i, load in facts.loads:
        if load["action"] != "loaded":
            continue
        if load["scope"] == "group":
            gone = facts.gone(load)
        else:
            gone = {
                d
                for d in of_earlier_lives(facts, load, only=facts.actor(i))
                if not any(
                    r["action"] == "applied"
                    and dot_of(r) == d
                    and facts.actor(j) != d[:2]
                    and not facts.before(i, j)
                    for j, r in facts.updates
                )
            }
        for j, (table, r) in enumerate(facts.rows):
            if not facts.before(i, j):
                continue
            if table == "updates" and r["action"] == "applied" and dot_of(r) in gone:
                found.add(j)
            if table == "reads" and (dot_of(r) in gone or gone & set(seen(facts, r))):
                found.add(j)
    return facts.keyed(found)
