"""Causal consistency of a small history by its definition: every order of its transactions is tried."""

from __future__ import annotations

import random
from itertools import permutations

Operation = tuple[str, int, int]
Transaction = tuple[int, list[Operation]]
"""(session, operations)."""


def random_history(seed: int) -> list[Transaction]:
    """Up to six transactions of three sessions; values are unique for each key, and mostly known."""
    rng = random.Random(seed)
    plan = []
    for _ in range(rng.randint(3, 6)):
        operations = [(rng.choice("rrw"), rng.randrange(2)) for _ in range(rng.randint(1, 3))]
        plan.append((rng.randrange(3), operations))
    numbers = iter(range(1, 99))
    valued = [
        (session, [(verb, key, next(numbers)) for verb, key in operations])
        for session, operations in plan
    ]
    wild = rng.random() < 0.3
    ever = {
        key: [0, *(v for _, ops in valued for verb, k, v in ops if (verb, k) == ("w", key))]
        for key in (0, 1)
    }
    upto: dict[int, list[int]] = {0: [0], 1: [0]}
    found: list[Transaction] = []
    for session, operations in valued:
        seen: list[Operation] = []
        for verb, key, number in operations:
            if verb == "w":
                upto[key].append(number)
            among = ever[key] if wild else upto[key][-3:]
            seen.append((verb, key, number if verb == "w" else rng.choice(among)))
        found.append((session, seen))
    return found


def is_causal(history: list[Transaction]) -> bool:
    """Whether some order of all transactions explains every read."""
    writer = {(k, v): t for t, (_, ops) in enumerate(history) for verb, k, v in ops if verb == "w"}
    last = {}
    for t, (_, ops) in enumerate(history):
        for verb, k, v in ops:
            if verb == "w":
                last[t, k] = v
    outside: list[tuple[int, int, int | None]] = []
    for t, (_, ops) in enumerate(history):
        own: dict[int, int] = {}
        for verb, k, v in ops:
            if verb == "w":
                own[k] = v
            elif k in own:
                if own[k] != v:
                    return False
            else:
                source = writer.get((k, v))
                if source == t or (source is None and v != 0):
                    return False
                if source is not None and last[source, k] != v:
                    return False
                outside.append((t, k, source))
    num = len(history)
    before = [[False] * num for _ in range(num)]
    for a in range(num):
        for b in range(a + 1, num):
            before[a][b] = history[a][0] == history[b][0]
    for t, _, source in outside:
        if source is not None:
            before[source][t] = True
    for k in range(num):
        for a in range(num):
            for b in range(num):
                before[a][b] = before[a][b] or (before[a][k] and before[k][b])
    if any(before[t][t] for t in range(num)):
        return False
    return any(_explains(order, before, outside, last) for order in permutations(range(num)))


def _explains(order, before, outside, last) -> bool:
    place = {t: i for i, t in enumerate(order)}
    if any(before[a][b] and place[a] > place[b] for a in place for b in place):
        return False
    for t, key, source in outside:
        for other, at in place.items():
            overwrites = other != source and (other, key) in last and before[other][t]
            if overwrites and (source is None or at > place[source]):
                return False
    return True


def as_blocks(history: list[Transaction]) -> str:
    """In the form with dashes and equals signs."""
    sessions: dict[int, list[str]] = {}
    for session, ops in history:
        sessions.setdefault(session, []).append("\n".join(f"{o} {k} {v}" for o, k, v in ops))
    return "\n=====\n".join("\n-----\n".join(one) for one in sessions.values()) + "\n"


def as_lines(history: list[Transaction]) -> str:
    """In the form with one operation a line."""
    return "".join(
        f"{o}({k},{v},{session},{number})\n"
        for number, (session, ops) in enumerate(history)
        for o, k, v in ops
    )
