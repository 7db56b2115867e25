"""C3, M1, M2 and T2 by their definitions, and random stories for them."""

from __future__ import annotations

import random
from itertools import product

from tests.analyzer.brute_facts import Facts, Key, dot_of, dots
from tests.analyzer.brute_rules import stale_reads
from tests.story import Story, Teller


def chatter(rng: random.Random, story: Story) -> None:
    """Somebody tells somebody something."""
    one, other = rng.sample(story.ranks, 2)
    one.tell(other)


# ---- C3 --------------------------------------------------------------------------------------------


def c3_story(seed: int) -> Story:
    """Few writes of two objects, and many reads of them."""
    rng = random.Random(seed)
    story = Story(ranks=4, regime="CAUSAL")
    written = []
    for _ in range(rng.randint(6, 14)):
        one = rng.choice(story.ranks)
        one.regime = rng.choice(["CAUSAL"] * 5 + ["EVENTUAL"])
        obj = rng.choice(["x", "x", "y"])
        if len(written) < 2 or rng.random() < 0.15:
            written.append((one.issue(obj), obj))
        elif rng.random() < 0.1:
            chatter(rng, story)
        else:
            dot, obj = rng.choice(written)
            one.read(obj, dot=dot)
    return story


def c3(facts: Facts) -> tuple[set[Key], bool]:
    """(reads that lie on a circle, whether there is one)."""
    stale = stale_reads(facts)
    forced: dict[tuple[int, int], list[int]] = {}
    for i, r in facts.reads:
        dot = dot_of(r)
        if i in stale or facts.regime(i) == "EVENTUAL" or dot not in facts.issued:
            continue
        for other, j in facts.issued.items():
            if other != dot and facts.object[other] == r["object"] and facts.before(j, i):
                forced.setdefault((j, facts.issued[dot]), []).append(i)
    nodes = sorted(facts.issued.values())
    after = {(a, b): a == b or facts.before(a, b) for a, b in product(nodes, nodes)}
    reach = {pair: after[pair] for pair in after}
    for older, newer in forced:
        reach[older, newer] = True
    for k, a, b in product(nodes, nodes, nodes):
        reach[a, b] = reach[a, b] or (reach[a, k] and reach[k, b])
    circle = {i for (older, newer), rows in forced.items() if reach[newer, older] for i in rows}
    return facts.keyed(circle), bool(circle)


# ---- T2 --------------------------------------------------------------------------------------------


def t2_story(seed: int) -> Story:
    """Leases that go to and fro."""
    rng = random.Random(seed)
    story = Story(ranks=3)
    for _ in range(16):
        if rng.random() < 0.4:
            chatter(rng, story)
            continue
        one, action = rng.choice(story.ranks), rng.choice(["granted", "used", "used", "revoked"])
        one.row("leases", action=action, lease_id=rng.choice("AAB"), object="kv", holder=one.me)
    return story


def t2(facts: Facts) -> set[Key]:
    """Used after a revocation, without a grant between the two."""
    rows = [(i, r) for i, (t, r) in enumerate(facts.rows) if t == "leases"]

    def of(lease: str, action: str) -> list[int]:
        return [i for i, r in rows if (r["lease_id"], r["action"]) == (lease, action)]

    return facts.keyed(
        {
            use
            for lease in "AB"
            for use in of(lease, "used")
            if any(
                facts.before(back, use)
                and not any(
                    facts.before(back, grant) and facts.before(grant, use)
                    for grant in of(lease, "granted")
                )
                for back in of(lease, "revoked")
            )
        }
    )


# ---- M1 --------------------------------------------------------------------------------------------


def m1_story(seed: int) -> Story:
    """Saves by all, and loads by those who were there and those who came back."""
    rng = random.Random(seed)
    story = Story(ranks=3, start=False)
    tellers: list[Teller] = list(story.ranks)
    for one in tellers:
        one.start()
    saved: list[tuple[str, list[tuple[int, int, int]], str]] = []
    for _ in range(18):
        one, what = rng.choice(tellers), rng.random()
        if what < 0.3:
            rng.choice(tellers).tell(
                rng.choice([t for t in tellers if t.rank != one.rank] or [one])
            )
        elif what < 0.6:
            dots_ = [(r, 0, rng.randint(1, 4)) for r in range(2) if rng.random() < 0.8]
            scope = rng.choice(["group", "self"])
            # A name is used again: by other ranks, at other frontiers.
            again_as = rng.choice(saved)[0] if saved and rng.random() < 0.4 else None
            name = again_as or f"k{len(saved)}"
            one.checkpoint("saved", name, dots_, scope, durable=rng.random() < 0.8)
            saved.append((name, dots_, scope))
        elif what < 0.75 and len(tellers) < 5:
            again = Teller(story, one.rank, one.incarnation + 1)
            again.start()
            tellers[tellers.index(one)] = again
            if rng.random() < 0.7:
                other = rng.choice([t for t in tellers if t is not again])
                other.view(tellers, joined=[again], reason="joined")
        elif saved:
            name, dots_, scope = rng.choice(saved)
            action = rng.choice(["loaded", "loaded", "loaded", "received"])
            one.checkpoint(action, name, dots_, scope)
            if rng.random() < 0.4:
                one.read(version=1)
    return story


def m1(facts: Facts) -> set[Key]:
    """Loads of what lies behind a durable checkpoint that was known."""
    table = [(i, r) for i, (t, r) in enumerate(facts.rows) if t == "checkpoints"]
    found = set()
    for i, load in table:
        if load["action"] != "loaded":
            continue
        me = facts.actor(i)
        acts = [
            j for j, (t, _) in enumerate(facts.rows)
            if facts.actor(j) == me and t in ("collectives", "updates", "reads")
        ]  # fmt: skip
        got = [j for j, r in table if facts.actor(j) == me and r["action"] == "received"]
        if got and (not acts or got[0] < acts[0]):
            continue
        who = {"rank": me[0], "incarnation": me[1]}
        admitted = [
            j for j, (t, r) in enumerate(facts.rows) if t == "membership" and who in r["joined"]
        ]
        mine = {d[:2]: d[2] for d in dots(load["frontier"])}
        for j, save in table:
            if save["action"] != "saved" or not save["durable"]:
                continue
            if save["checkpoint_id"] == load["checkpoint_id"]:
                continue
            if save["scope"] != "group" and facts.actor(j)[0] != me[0]:
                continue
            its = {d[:2]: d[2] for d in dots(save["frontier"])}
            ahead = all(its.get(a, 0) >= c for a, c in mine.items()) and its != mine
            if ahead and any(facts.before(j, k) for k in admitted or [i]):
                found.add(i)
    return facts.keyed(found)


# ---- M2 --------------------------------------------------------------------------------------------


def m2_story(seed: int) -> Story:
    """A group, and others that stand in for it."""
    rng = random.Random(seed)
    story = Story(ranks=4, start=False)
    for one in story.ranks:
        one.start()
    groups: list[tuple[str, list[Teller]]] = []
    for number in range(rng.randint(2, 4)):
        members = story.ranks if not groups else sorted(
            rng.sample(story.ranks, rng.randint(2, 4)), key=lambda t: t.rank
        )  # fmt: skip
        for _ in range(rng.randint(0, 3)):
            teller = rng.choice(story.ranks)
            before = rng.choice(groups)[1] if groups else story.ranks
            left = [m for m in before if m not in members]
            came = [m for m in members if m not in before]
            teller.view(members, joined=came, departed=left if rng.random() < 0.8 else [])
            chatter(rng, story)
        replaces = rng.choice(groups)[0] if groups and rng.random() < 0.8 else None
        for one in members:
            one.join(f"c{number}", members, label=f"l{number}", replaces=replaces)
        if rng.random() < 0.9:
            story.all_reduce(*members, comm=f"c{number}")
        groups.append((f"c{number}", members))
    return story


def m2(facts: Facts) -> set[Key]:
    """First operations of groups whose difference to what they replace nobody had told."""
    groups = {}
    for t, r in facts.rows:
        if t == "groups":
            groups.setdefault(r["comm_id"], r)
    found = set()
    for comm, r in groups.items():
        used = [
            i for i, (t, x) in enumerate(facts.rows)
            if t == "collectives" and (x["comm_id"], x["cseq"]) == (comm, 0)
        ]  # fmt: skip
        if not used or r["replaces"] not in groups:
            continue
        told = [
            x for i, (t, x) in enumerate(facts.rows)
            if t == "membership" and facts.before(i, used[0])
        ]  # fmt: skip
        old = groups[r["replaces"]]["members"]
        left = [m for m in old if m not in r["members"]]
        came = [m for m in r["members"] if m not in old]
        if not all(any(m in x["departed"] for x in told) for m in left) or not all(
            any(m in x["joined"] for x in told) for m in came
        ):
            found.add(used[0])
    return facts.keyed(found)
