"""G1, G2 and M3 by their definitions, and random stories for them."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

from tests.analyzer.brute_facts import Facts, Key, dots
from tests.story import Story, Teller


def _minority(rows: list[tuple[int, Any]]) -> set[int]:
    """Those that hold other than what most hold; all where no value has most."""
    counts = Counter(value for _, value in rows).most_common()
    if len(counts) < 2:
        return set()
    if counts[0][1] == counts[1][1]:
        return {i for i, _ in rows}
    return {i for i, value in rows if value != counts[0][0]}


def _grouped(pairs: list[tuple[Any, int, Any]]) -> set[int]:
    groups: dict[Any, list[tuple[int, Any]]] = {}
    for key, i, value in pairs:
        groups.setdefault(key, []).append((i, value))
    return set().union(*(_minority(rows) for rows in groups.values())) if groups else set()


# ---- G2 --------------------------------------------------------------------------------------------


def g2_story(seed: int) -> Story:
    """Collectives of which now and then a member does something else."""
    rng = random.Random(seed)
    story = Story(ranks=4)
    odd = rng.choice([0.0, 0.02, 0.1])
    for cseq in range(6):
        members = rng.sample(story.ranks, rng.randint(2, 4))
        common = {"op": rng.choice(["all_reduce", "all_gather"]), "dtype": "float32",
                  "label": "bucket/0", "num_bytes": 1024}  # fmt: skip
        for one in members:
            mine = dict(common)
            for name, others in (("op", ["all_reduce", "all_gather"]), ("dtype", ["int8"]),
                                 ("label", ["bucket/1"]), ("num_bytes", [4096, 8])):  # fmt: skip
                if rng.random() < odd:
                    mine[name] = rng.choice(others)
            one.done(one.enter("c0", cseq, **mine))
    return story


def g2(facts: Facts) -> set[Key]:
    names = ("op", "dtype", "label", "num_bytes", "root")
    return facts.keyed(
        _grouped(
            [
                ((r["comm_id"], r["cseq"]), i, tuple(r.get(n) for n in names))
                for i, (t, r) in enumerate(facts.rows)
                if t == "collectives"
            ]
        )
    )


# ---- G1 --------------------------------------------------------------------------------------------


def g1_story(seed: int) -> Story:
    """Digests by version and by frontier, reads by version, mostly equal."""
    rng = random.Random(seed)
    story = Story(ranks=3, regime="CAUSAL")
    odd = rng.choice([0.0, 0.05, 0.3])
    for _ in range(4):
        story.ranks[0].issue("x")
    for _ in range(14):
        one = rng.choice(story.ranks)
        one.regime = rng.choice(["STRONG", "STRONG", "CAUSAL"])
        one.epoch, one.step = rng.choice([0, 0, 1]), rng.choice([0, 1])
        digest = "aa" if rng.random() >= odd else rng.choice(["ab", "ac"])
        what = rng.random()
        if what < 0.4:
            one.digest(digest, rng.choice("xy"), version=rng.choice([1, 2]))
        elif what < 0.7:
            one.digest(digest, "x", frontier=[(0, 0, rng.randint(1, 4))])
        else:
            one.read("y", version=3 if rng.random() >= odd else 4)
    return story


def g1(facts: Facts) -> set[Key]:
    by_digest, by_read = [], []
    for i, (t, r) in enumerate(facts.rows):
        if t == "digests" and r["version"] is not None and r["regime"] == "STRONG":
            by_digest.append((("v", r["object"], r["version"], r["epoch"]), i, r["digest"]))
        elif t == "digests" and r["version"] is None:
            by_digest.append((("f", r["object"], *dots(r["frontier"])), i, r["digest"]))
        elif t == "reads" and r["regime"] == "STRONG":
            by_read.append(((r["object"], r["epoch"], r["step"]), i, r["version"]))
    return facts.keyed(_grouped(by_digest) | _grouped(by_read))


# ---- M3 --------------------------------------------------------------------------------------------


def m3_story(seed: int) -> Story:
    """Actors that are removed, replaced and taken back, and act in this epoch or that."""
    rng = random.Random(seed)
    story = Story(ranks=3)
    tellers: list[Teller] = list(story.ranks)
    epoch = 0
    for _ in range(14):
        one, what = rng.choice(tellers), rng.random()
        if what < 0.25:
            epoch += 1
            gone = rng.choice(tellers)
            one.epoch = epoch
            one.view([t for t in tellers if t is not gone], departed=[gone])
        elif what < 0.3:
            lives = [t.incarnation for t in tellers if t.rank == one.rank]
            again = Teller(story, one.rank, max(lives) + 1)
            again.start()
            epoch += 1
            again.epoch = epoch
            tellers.append(again)
            again.view([again, *[t for t in story.ranks if t.rank != one.rank]], joined=[again])
        else:
            one.epoch = rng.randint(max(0, epoch - 3), epoch)
            one.read(version=1)
    return story


def m3(facts: Facts) -> set[Key]:
    views = [r for t, r in facts.rows if t == "membership"]
    found = set()
    for i, (t, r) in enumerate(facts.rows):
        if t not in ("collectives", "updates", "reads"):
            continue
        rank, incarnation = facts.actor(i)
        fences = [
            v["epoch"]
            for v in views
            if {"rank": rank, "incarnation": incarnation} in v["departed"]
            or any(m["rank"] == rank and m["incarnation"] > incarnation for m in v["members"])
        ]
        back = [
            v["epoch"] for v in views if {"rank": rank, "incarnation": incarnation} in v["members"]
        ]
        fence = min(fences, default=r["epoch"] + 1)
        if fence <= r["epoch"] and not any(fence < b <= r["epoch"] for b in back):
            found.add(i)
    return facts.keyed(found)
