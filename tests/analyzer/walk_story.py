"""Random stories of walks, debts and the work between, with a row or two changed."""

from __future__ import annotations

import random

from cascade_runtime.vocabulary.policy import load_policy
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
    kind = rng.choice(
        [
            "decisions",
            "decisions",
            "transitions",
            "debt",
            "reads",
            "reads",
            "reads",
            "heard",
            "committed",
        ]
    )
    if kind in ("heard", "committed"):
        _forget(rng, story, kind)
        return
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
        if rng.random() < 0.5:
            row["regime"] = rng.choice(sorted(LEVEL))
        else:
            row["epoch"] = max(0, row["epoch"] + rng.choice([-1, 1]))
    else:
        lead = {k: row[k] for k in list(row)[:10]}
        story.rows[place] = ("steps", lead | {"phase": "end"})


def _forget(rng: random.Random, story: Story, kind: str) -> None:
    """A message is not received, or a rank does not commit."""
    latest = story.agents[0].epoch
    places = [
        i
        for i, (t, r) in enumerate(story.rows)
        if (t == "messages" and r["direction"] == "recv" and kind == "heard")
        or (
            t == "transitions"
            and r["phase"] == "committed"
            and r["rank"] < 3
            and r["new_epoch"] == latest
            and kind == "committed"
        )
    ]
    place = rng.choice(places)
    row = story.rows[place][1]
    story.rows[place] = ("steps", {k: row[k] for k in list(row)[:10]} | {"phase": "end"})
