"""A4 by its definition, and random stories for it."""

from __future__ import annotations

import random

from tests.analyzer.brute import edges_of, sightings
from tests.analyzer.brute_facts import Facts, Key, dot_of, dots
from tests.story import Story


def a4_story(seed: int) -> Story:
    """Updates that are told of, seen in collectives, loaded, and now and then seen without a way."""
    rng = random.Random(seed)
    story = Story(ranks=3, regime="CAUSAL")
    issued = []
    careful = rng.random() < 0.5
    for _ in range(22):
        one, what = rng.choice(story.ranks), rng.random()
        one.regime = rng.choice(["CAUSAL", "STRONG", "CAUSAL", "EVENTUAL"])
        if what < 0.25 or not issued:
            issued.append((one.issue(obj := rng.choice("xy")), obj))
        elif what < 0.45:
            one.tell(rng.choice([t for t in story.ranks if t is not one]))
        elif what < 0.53:
            story.all_reduce(*rng.sample(story.ranks, rng.choice([2, 3])), comm=f"c{rng.random()}")
        elif what < 0.6:
            one.checkpoint("loaded", "of yesterday", [rng.choice(issued)[0]], "self")
        else:
            dot, obj = rng.choice(issued)
            if careful and rng.random() < 0.8:
                story.ranks[dot[0]].tell(*[t for t in story.ranks if t.rank not in (dot[0],)])
            if what < 0.8:
                one.apply(dot, obj)
            else:
                one.read(obj, **rng.choice([{"dot": dot}, {"frontier": [dot]}]))
    return story


def a4(facts: Facts) -> set[Key]:
    """Rows that see another's update though nothing else leads to them from its issue."""
    _, edges = edges_of(facts.rows)
    seen = sightings(facts.rows)
    found = set()
    for write, row in seen:
        if facts.actor(write) == facts.actor(row) or facts.regime(row) == "EVENTUAL":
            continue
        behind, left = {row}, [row]
        while left:
            at = left.pop()
            for source in {a for a, b in edges if b == at and not (at == row and (a, b) in seen)}:
                if source not in behind:
                    behind.add(source)
                    left.append(source)
        dot = dot_of(facts.rows[write][1])
        loads = [dots(r["frontier"]) for i, r in facts.loads if facts.before(i, row)]
        assert dot is not None
        loaded = any(d[:2] == dot[:2] and dot[2] <= d[2] for frontier in loads for d in frontier)
        if write not in behind and not loaded:
            found.add(row)
    return facts.keyed(found)
