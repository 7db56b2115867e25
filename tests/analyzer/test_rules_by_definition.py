"""Each rule against its definition, on seeded histories: all that it should find, and nothing else."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import NamedTuple

import pytest

from analyzer.history import History
from analyzer.judge import rules
from tests.analyzer import (
    brute_groups,
    brute_others,
    brute_rules,
    brute_sessions,
    brute_trace,
    brute_visible,
    brute_walks,
)
from tests.analyzer.brute_facts import Facts, Key
from tests.analyzer.causal_story import causal_story
from tests.analyzer.walk_story import walk_story
from tests.story import Story

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
    return _judge_all(causal_story, OF_UPDATES, brute_rules)


def _judge_all(
    tell: Callable[[int], Story], codes: Sequence[str], definitions: ModuleType
) -> dict[str, list[Judged]]:
    answers: dict[str, list[Judged]] = {code: [] for code in codes}
    for seed in range(SEEDS):
        story = tell(seed)
        history, facts = History(story.source()), Facts(story)
        # What circles say of order is nothing (A3).
        for code in codes if not history.hb.cycles else ():
            outcome = rules()[code].check(history)
            keys = [history.rows.where(f.row) for f in outcome.findings]
            assert len(keys) == len(set(keys)), "one report a row"
            if outcome.unknown is None:
                expected = getattr(definitions, code.lower())(facts)
                answers[code].append(Judged(seed, set(keys), expected))
    return answers


def _same(answers: list[Judged]) -> None:
    """Nothing missed, nothing extra; and both kinds of stories are among them."""
    for one in answers:
        assert one.found == one.expected, one.seed
    broken = sum(bool(one.expected) for one in answers)
    assert SEEDS // 30 < broken < len(answers) - SEEDS // 30
    assert len(answers) > SEEDS // 2


OF_SESSIONS = ("A1", "A5", "S1", "S2", "R2")


@pytest.fixture(scope="module")
def in_sessions() -> dict[str, list[Judged]]:
    """As ``judged``, stories of what one actor sees and does after another."""
    return _judge_all(brute_sessions.session_story, OF_SESSIONS, brute_sessions)


@pytest.mark.parametrize("code", OF_SESSIONS)
def test_of_sessions(in_sessions, code):
    _same(in_sessions[code])


OF_WALKS = ("L1", "L2", "L3", "L4", "L5", "L6", "L7", "L8", "R3", "R4")


@pytest.fixture(scope="module")
def in_walks() -> dict[str, list[Judged]]:
    """As ``judged``, stories of walks and debts."""
    return _judge_all(walk_story, OF_WALKS, brute_walks)


@pytest.mark.parametrize("code", OF_WALKS)
def test_of_walks(in_walks, code):
    _same(in_walks[code])


@pytest.mark.parametrize("code", OF_UPDATES)
def test_it_finds_what_its_definition_says(judged, code):
    _same(judged[code])


def of_rule(code: str, history: History) -> set[Key]:
    return {history.rows.where(f.row) for f in rules()[code].check(history).findings}


OF_ITS_OWN = (
    {"A4": brute_visible}
    | dict.fromkeys(("G1", "G2", "M3"), brute_groups)
    | dict.fromkeys(("M1", "M2", "T2"), brute_others)
)


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


@pytest.mark.parametrize("code", ["Q1", "Q2", "Q3", "Q5"])
def test_of_the_trace_itself(code):
    """They say ok or unknown, of the whole trace."""
    doubtful = 0
    for seed in range(SEEDS):
        story = brute_trace.q_story(seed)
        expected = getattr(brute_trace, code.lower())(story)
        outcome = rules()[code].check(History(story.source()))
        assert (outcome.unknown is not None) == expected, seed
        doubtful += expected
    assert SEEDS // 30 < doubtful < SEEDS - SEEDS // 10
