"""Each rule against its definition, on seeded histories: all that it should find, and nothing else."""

from __future__ import annotations

import os
from typing import NamedTuple

import pytest

from analyzer.history import History
from analyzer.judge import rules
from tests.analyzer import brute_others, brute_rules, brute_visible
from tests.analyzer.brute_facts import Facts, Key
from tests.analyzer.causal_story import causal_story

SEEDS = int(os.environ.get("CASCADE_SEEDS", "100"))
"""More are asked for by hand."""

OF_UPDATES = ("A2", "S3", "S4", "C1", "C2", "B1", "R1", "T1")


class Judged(NamedTuple):
    """One history by one rule."""

    seed: int
    found: set[Key]
    expected: set[Key]


@pytest.fixture(scope="module")
def judged() -> dict[str, list[Judged]]:
    """All histories by all rules; those of which a rule cannot say are left out."""
    answers: dict[str, list[Judged]] = {code: [] for code in OF_UPDATES}
    for seed in range(SEEDS):
        story = causal_story(seed)
        history, facts = History(story.source()), Facts(story)
        for code in OF_UPDATES:
            outcome = rules()[code].check(history)
            keys = [history.rows.where(f.row) for f in outcome.findings]
            assert len(keys) == len(set(keys)), "one report a row"
            if outcome.unknown is None:
                expected = getattr(brute_rules, code.lower())(facts)
                answers[code].append(Judged(seed, set(keys), expected))
    return answers


@pytest.mark.parametrize("code", OF_UPDATES)
def test_it_finds_what_its_definition_says(judged, code):
    for one in judged[code]:
        assert one.found == one.expected, one.seed
    broken = sum(bool(one.expected) for one in judged[code])
    assert SEEDS // 30 < broken < len(judged[code]) - SEEDS // 30, "both kinds are among them"
    assert len(judged[code]) > SEEDS // 2


def of_rule(code: str, history: History) -> set[Key]:
    return {history.rows.where(f.row) for f in rules()[code].check(history).findings}


OF_ITS_OWN = {"A4": brute_visible} | dict.fromkeys(("M1", "M2", "T2"), brute_others)


@pytest.mark.parametrize("code", OF_ITS_OWN)
def test_in_stories_of_its_own(code):
    tell = getattr(OF_ITS_OWN[code], f"{code.lower()}_story")
    definition = getattr(OF_ITS_OWN[code], code.lower())
    broken = 0
    for seed in range(2 * SEEDS):
        story = tell(seed)
        expected = definition(Facts(story))
        assert of_rule(code, History(story.source())) == expected, seed
        broken += bool(expected)
    assert SEEDS // 10 < broken < 2 * SEEDS - SEEDS // 10


def test_circles_of_what_was_seen():
    """One report a circle, and circles may share reads: so there is one where there should be any."""
    broken = 0
    for seed in range(2 * SEEDS):
        story = brute_others.c3_story(seed)
        circle, is_broken = brute_others.c3(Facts(story))
        found = of_rule("C3", History(story.source()))
        assert bool(found) == is_broken, seed
        assert found <= circle, seed
        broken += is_broken
    assert SEEDS // 10 < broken < 2 * SEEDS - SEEDS // 10
