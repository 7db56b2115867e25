"""Causal consistency of a small history by its definition: every order of its transactions is tried."""

from __future__ import annotations

import random
from itertools import permutations, product

Operation = tuple[str, int, int]
Transaction = tuple[int, list[Operation]]
"""(session, operations)."""


def random_history(seed: int) -> list[Transaction]:
    """Up to six transactions of three sessions; values are mostly known.

    In a third of them writes repeat each other, or the initial 0.
    """
    rng = random.Random(seed)
    plan = []
    for _ in range(rng.randint(3, 6)):
        operations = [(rng.choice("rrw"), rng.randrange(2)) for _ in range(rng.randint(1, 3))]
        plan.append((rng.randrange(3), operations))
    numbers = iter(range(1, 99))
    repeats = [0, 0, 1, 2] if rng.random() < 0.35 else []
    valued = [
        (session, [(verb, key, rng.choice([next(numbers), *repeats])) for verb, key in operations])
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


def is_doubtful(history: list[Transaction], in_blocks: bool) -> bool:
    """Whether a read may have seen one of several writes, or (not in blocks) the initial value as well as one."""
    written = [(k, v) for _, ops in history for verb, k, v in ops if verb == "w"]
    return any(
        written.count((k, v)) + (v == 0 and not in_blocks) > 1
        and not any(verb == "w" and key == k for verb, key, _ in ops[:i])
        for _, ops in history
        for i, (seen, k, v) in enumerate(ops)
        if seen == "r"
    )


def is_causal(history: list[Transaction], in_blocks: bool) -> bool:
    """Whether some order of all transactions, and some choice of what each read saw, explains every read."""
    written = {(k, v) for _, ops in history for verb, k, v in ops if verb == "w"}
    last = {}
    for t, (_, ops) in enumerate(history):
        for verb, k, v in ops:
            if verb == "w":
                last[t, k] = v
    outside: list[tuple[int, int]] = []
    choices: list[list[int | None]] = []
    for t, (_, ops) in enumerate(history):
        own: dict[int, int] = {}
        for verb, k, v in ops:
            if verb == "w":
                own[k] = v
            elif k in own:
                if own[k] != v:
                    return False
            else:
                initial = v == 0 and not (in_blocks and (k, v) in written)
                sources: list[int | None] = [None] if initial else []
                sources += [
                    w for (w, key), left in last.items() if (key, left) == (k, v) and w != t
                ]
                outside.append((t, k))
                choices.append(sources)
    return any(
        _is_causal(history, [(*read, w) for read, w in zip(outside, chosen, strict=True)], last)
        for chosen in product(*choices)
    )


def _is_causal(history, outside, last) -> bool:
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
