"""Whatever a trace holds, the analysis answers: no crash, no hang, a report of the right form."""

from __future__ import annotations

import random

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from analyzer import analyze
from analyzer.codes import NAMES
from analyzer.render import render
from cascade_runtime.vocabulary.schema import EVENT_TABLES, STRUCTS
from tests.analyzer.random_story import sound_story, wild_story
from tests.story import MemorySource, Story

_RANKS = 4


def _value(rng: random.Random, name: str, storage: str, words: tuple[str, ...]):
    if storage.startswith("list<"):
        return [_value(rng, name, storage[5:-1], words) for _ in range(rng.randrange(4))]
    if storage in STRUCTS:
        return {field: _value(rng, field, kind, ()) for field, kind in STRUCTS[storage]}
    if words:
        return rng.choice(words)
    if storage == "string":
        return rng.choice(["c0", "c1", "params/0", "d1", "dead", "finished"])
    if storage == "bool":
        return rng.random() < 0.5
    if storage == "double":
        return rng.random()
    if name == "incarnation":
        return rng.randrange(2)
    if name.endswith("_ns"):
        return 1_700_000_000_000_000_000 + rng.randrange(10**9)
    return rng.randrange(_RANKS + 1)


def noise(seed: int, size: int) -> MemorySource:
    """Rows of any table with any words; numbers small enough to collide."""
    rng = random.Random(seed)
    story = Story(ranks=_RANKS, start=False)
    seqs: dict[tuple[int, int], int] = {}
    for _ in range(size):
        table = rng.choice(list(EVENT_TABLES.values()))
        row = {}
        for column in table.columns:
            if column.nullable and rng.random() < 0.25:
                row[column.name] = None
            else:
                row[column.name] = _value(rng, column.name, column.type, column.words)
        actor = (row["rank"], row["incarnation"])
        seqs[actor] = seqs.get(actor, -1) + rng.choice([0, 1, 1, 1, 1, 1, 1, 2])
        row |= {"run_id": story.run_id, "seq": max(0, seqs[actor]), "group_id": "world"}
        story.rows.append((table.name, row))
    return story.source(clean=rng.random() < 0.5)


def check(source: MemorySource) -> None:
    report = analyze(source).report
    assert [c.code for c in report.checks] == list(NAMES)
    assert msgspec.json.encode(report)
    assert render(report)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**9), st.integers(0, 150))
def test_noise(seed, size):
    check(noise(seed, size))


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10**9))
def test_sound_and_wild_stories(seed):
    check(sound_story(seed).source())
    check(wild_story(seed).source(clean=False))


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10**9))
def test_sound_stories_break_no_order(seed):
    """Nothing in an execution that could have happened is called a cycle or an unknown source."""
    checks = {c.code: c for c in analyze(sound_story(seed).source()).report.checks}
    assert checks["A3"].verdict == "ok"
    assert checks["A1"].verdict == "ok"
