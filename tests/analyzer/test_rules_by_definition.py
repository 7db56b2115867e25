"""Each rule against its definition, on seeded histories: all that it should find, and nothing else."""

from __future__ import annotations

import os
from typing import NamedTuple

import pytest

from analyzer.history import History
from analyzer.judge import rules
from tests.analyzer import brute_rules
from tests.analyzer.brute_rules import Facts, Key
from tests.analyzer.causal_story import causal_story

SEEDS = int(os.environ.get("CASCADE_SEEDS", "150"))
"""A thousand take ten minutes."""

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
