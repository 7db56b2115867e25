"""A1, A5, S1, S2 and R2 by their definitions, and random stories for them."""

from __future__ import annotations

import random

from tests.analyzer.brute_facts import Facts, Key, Row, dot_of, dots
from tests.story import Dot, Story


def session_story(seed: int) -> Story:
    """Few objects, many reads and applies of them, loads between, and now and then something odd."""
    rng = random.Random(seed)
    odd = rng.choice([0.0, 0.03, 0.1])
    story = Story(ranks=3, regime="CAUSAL")
    story.ranks[0].declare("d", "delta")
    issued: list[tuple[Dot, str]] = []
    version = 0
    for _ in range(45):
        one, what = rng.choice(story.ranks), rng.random()
        one.regime = rng.choice(["CAUSAL"] * 4 + ["STRONG", "EVENTUAL", None])
        if what < 0.2 or not issued:
            obj = rng.choice("xyd")
            number = None
            if obj == "x" and rng.random() < 0.7:
                version += 1
                number = version
            mine = [d for d, o in issued if o == obj and d[0] == one.rank]
            again = rng.choice(mine) if mine and rng.random() < 5 * odd else None
            issued.append((one.issue(obj, number, dot=again), obj))
        elif what < 0.4:
            dot, obj = rng.choice(issued)
            if rng.random() < odd:
                dot = (dot[0], dot[1], dot[2] + rng.choice([9, 99]))
            digest = (
                rng.choice(["aa", "ab"]) if rng.random() < 3 * odd else rng.choice(["aa", None])
            )
            one.apply(dot, obj, digest=digest)
        elif what < 0.43:
            dot, obj = rng.choice(issued)
            rng.choice([one, story.ranks[dot[0]]]).discard(dot, obj)
        elif what < 0.5:
            one.tell(rng.choice([t for t in story.ranks if t is not one]))
        elif what < 0.54:
            frontier = [rng.choice(issued)[0] for _ in range(2)]
            one.checkpoint(rng.choice(["loaded", "received"]), "k", frontier, "self")
        else:
            _read(rng, one, issued, odd)
    return story


def _read(rng: random.Random, one, issued: list[tuple[Dot, str]], odd: float) -> None:
    newest = issued[-3:] if rng.random() < 0.6 else issued
    dot, obj = rng.choice(newest)
    use = rng.choice(["forward", "forward", "act"])
    if obj == "d":
        frontier = [rng.choice(issued)[0] for _ in range(rng.randint(0, 3))]
        if rng.random() < odd:
            frontier.append((9, 0, 1))  # nobody's
        one.read(obj, frontier=frontier, use=use)
    elif rng.random() < 0.1:
        one.read(obj, use=use)
    elif rng.random() < odd:
        one.read(obj, dot=(dot[0], 0, dot[2] + 99), use=use)
    elif obj == "x" and rng.random() < 0.4:
        one.read(obj, version=rng.randint(0, 6), use=use)
    else:
        one.read(obj, dot=dot, use=use)


def a1(facts: Facts) -> set[Key]:
    loaded = {d for _, r in facts.loads for d in dots(r["frontier"])}
    found = set()
    for i, r in facts.updates + facts.reads:
        if r.get("action", "applied") != "applied":
            continue
        named = ([dot_of(r)] if dot_of(r) else []) + dots(r.get("frontier"))
        for d in named:
            assert d is not None
            inside = any(d[:2] == x[:2] and d[2] <= x[2] for x in loaded)
            if d not in facts.issued and d[2] > 0 and not inside:
                found.add(i)
    return facts.keyed(found)


def a5(facts: Facts) -> set[Key]:
    found = set()
    for dot in facts.object:
        issues = [i for i, r in facts.updates if r["action"] == "issued" and dot_of(r) == dot]
        applies = [
            (i, r["digest"])
            for i, r in facts.updates
            if r["action"] == "applied" and dot_of(r) == dot and r.get("digest")
        ]
        if len(issues) > 1:
            found.add(issues[1])
            continue
        other = [i for i, digest in applies if digest != applies[0][1]]
        found |= set(other[:1])
    return facts.keyed(found)


def _session(facts: Facts, i: int) -> int:
    return sum(facts.actor(j) == facts.actor(i) and j < i for j, _ in facts.loads)


def _earlier(facts: Facts, rows: list[tuple[int, Row]], i: int) -> list[tuple[int, Row]]:
    """Those of the same actor, session and object before row i."""
    obj = facts.rows[i][1]["object"]
    return [
        (j, r)
        for j, r in rows
        if j < i
        and facts.actor(j) == facts.actor(i)
        and _session(facts, j) == _session(facts, i)
        and r["object"] == obj
    ]


def _older(facts: Facts, one: Dot | None, other: Dot | None) -> bool:
    if one == other or other is None:
        return False
    if one is None:
        return True
    if one not in facts.issued or other not in facts.issued:
        return False
    i, j = facts.issued[one], facts.issued[other]
    a, b = facts.rows[i][1]["version"], facts.rows[j][1]["version"]
    return a < b if a is not None and b is not None else facts.before(i, j)


def _judged(facts: Facts) -> list[tuple[int, Row]]:
    return [(i, r) for i, r in facts.reads if facts.regime(i) != "EVENTUAL"]


def s1(facts: Facts) -> set[Key]:
    found = set()
    own = [
        (i, r)
        for i, r in facts.updates
        if r["action"] == "issued"
        and dot_of(r) not in facts.void
        and dot_of(r)[:2] == facts.actor(i)
    ]
    for i, r in _judged(facts):
        mine = _earlier(facts, own, i)
        if r["use"] != "forward" or not mine:
            continue
        if r["version"] is not None:
            versions = [x["version"] for _, x in mine if x["version"] is not None]
            broken = bool(versions) and r["version"] < max(versions)
        elif r["frontier"] is not None:
            upto = [d[2] for d in dots(r["frontier"]) if d[:2] == facts.actor(i)]
            broken = max(upto, default=0) < dot_of(mine[-1][1])[2]
        else:
            last, seen = dot_of(mine[-1][1]), dot_of(r)
            behind = seen is not None and seen[:2] == last[:2] and seen[2] < last[2]
            broken = behind or _older(facts, seen, last)
        if broken:
            found.add(i)
    return facts.keyed(found)


def s2(facts: Facts) -> set[Key]:
    found = set()
    for i, r in _judged(facts):
        before = _earlier(facts, facts.reads, i)
        if r["version"] is not None:
            broken = any(
                x["version"] is not None
                and x["version"] > r["version"]
                and dot_of(x) not in facts.void
                for _, x in before
            )
        elif r["frontier"] is not None:
            now = _covered(facts, r)
            broken = any(
                now.get(author, 0) < counter
                for _, x in before
                if x["frontier"] is not None
                for author, counter in _covered(facts, x).items()
            )
        else:
            broken = any(
                _older(facts, dot_of(r), dot_of(x))
                for _, x in before
                if x["frontier"] is None and x["version"] is None
                and dot_of(x) is not None and dot_of(x) not in facts.void
            )  # fmt: skip
        if broken:
            found.add(i)
    return facts.keyed(found)


def _covered(facts: Facts, r: Row) -> dict[tuple[int, int], int]:
    """Per author its last dot on the object that the frontier covers."""
    found: dict[tuple[int, int], int] = {}
    for d in dots(r["frontier"]):
        on = [
            x[2]
            for x, obj in facts.object.items()
            if x[:2] == d[:2] and x[2] <= d[2] and obj == r["object"] and x not in facts.void
        ]
        found[d[:2]] = max([found.get(d[:2], 0), *on])
    return found


def r2(facts: Facts) -> set[Key]:
    found = set()
    applies = [(i, r) for i, r in facts.updates if r["action"] == "applied"]
    for i, r in applies:
        if facts.kind(r["object"]) != "delta":
            continue
        dot = dot_of(r)
        again = any(dot_of(x) == dot for _, x in _earlier(facts, applies, i))
        mine = [x for j, x in facts.loads if facts.actor(j) == facts.actor(i) and j < i]
        inside = bool(mine) and any(
            d[:2] == dot[:2] and dot[2] <= d[2] for d in dots(mine[-1]["frontier"])
        )
        if again or inside:
            found.add(i)
    return facts.keyed(found)
