"""Q1, Q2, Q3 and Q5 by their definitions, and random traces with rows lost, doubled and misdated."""

from __future__ import annotations

import random
from itertools import pairwise
from typing import Any

from tests.analyzer.random_story import sound_story
from tests.story import Story

Row = dict[str, Any]


def q_story(seed: int) -> Story:
    """A sound story; then rows vanish, come twice, or change their time."""
    rng = random.Random(seed)
    story = sound_story(seed, ranks=3, actions=20)
    for _ in range(rng.choice([0, 1, 1, 2])):
        place = rng.randrange(len(story.rows))
        table, row = story.rows[place]
        what = rng.random()
        if what < 0.3:
            del story.rows[place]
        elif what < 0.4:
            first = [r for _, r in story.rows if r["rank"] == row["rank"] and r["seq"] < 2]
            story.rows = [(t, r) for t, r in story.rows if r not in first]
        elif what < 0.55:
            story.rows.append((table, dict(row)))
        elif what < 0.75:
            story.rows.append((table, {**row, "step": 99}))
        else:
            row[rng.choice(["wall_ns", "mono_ns"])] -= rng.choice([10**6, 10**10])
    return story


def _actors(story: Story) -> list[list[Row]]:
    """Each actor's rows by number, one of each."""
    found: dict[tuple[int, int], dict[int, Row]] = {}
    for _, row in story.rows:
        found.setdefault((row["rank"], row["incarnation"]), {}).setdefault(row["seq"], row)
    return [[rows[seq] for seq in sorted(rows)] for rows in found.values()]


def q1(story: Story) -> bool:
    return any(
        later["seq"] > row["seq"] + 1 for rows in _actors(story) for row, later in pairwise(rows)
    )


def q2(story: Story) -> bool:
    seen: dict[tuple[int, int, int], set[str]] = {}
    for table, row in story.rows:
        key = (row["rank"], row["incarnation"], row["seq"])
        seen.setdefault(key, set()).add(repr((table, sorted(row.items(), key=str))))
    return any(len(texts) > 1 for texts in seen.values())


def q3(story: Story) -> bool:
    return any(
        later[name] < row[name]
        for rows in _actors(story)
        for row, later in pairwise(rows)
        for name in ("wall_ns", "mono_ns")
    )


def q5(story: Story) -> bool:
    return any(rows[0]["seq"] > 0 for rows in _actors(story))
