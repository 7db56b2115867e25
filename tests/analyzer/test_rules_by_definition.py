"""Each rule against its definition, on seeded histories: all that it should find, and nothing else."""

from __future__ import annotations

import os

import pytest

from analyzer.history import History
from analyzer.judge import rules
from tests.analyzer import brute_rules
from tests.analyzer.brute_rules import Facts
from tests.analyzer.causal_story import causal_story

SEEDS = int(os.environ.get("CASCADE_SEEDS", "150"))
OF_UPDATES = ("S3", "S4", "C1", "C2", "B1", "R1", "T1")


def found(history: History, code: str) -> set[tuple[int, int, int]]:
    findings = rules()[code].check(history).findings
    keys = [history.rows.where(f.row) for f in findings]
    assert len(keys) == len(set(keys)), "one report a row"
    return set(keys)


@pytest.mark.parametrize("code", OF_UPDATES)
def test_it_finds_what_its_definition_says(code):
    total = clean = 0
    for seed in range(SEEDS):
        story = causal_story(seed)
        history = History(story.source())
        facts = Facts(story)
        expected = getattr(brute_rules, code.lower())(facts)
        outcome = rules()[code].check(history)
        if outcome.unknown:
            assert code == "R1", (seed, outcome.unknown)
            continue
        assert found(history, code) == expected, seed
        total += len(expected)
        clean += not expected
    assert total > SEEDS // 25 and clean > SEEDS // 25, (total, clean)
