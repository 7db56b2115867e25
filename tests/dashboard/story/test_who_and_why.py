"""Sentences of a story: who somebody is, what a detector saw, and why a check has no answer yet."""

from __future__ import annotations

import pytest

from cascade_runtime.vocabulary.report import CheckResult, Report
from dashboard.story.actor_names import ActorNames, party
from dashboard.story.actors import Cast
from dashboard.story.fault_words import fault_words
from dashboard.story.model import Actor
from dashboard.story.reasons import but_so_far, lost_for_good, named, pending
from dashboard.story.teller import Teller as Speaker
from dashboard.story.trace_source import TraceRun as Run
from tests.dashboard.story.kit import trace_of
from tests.story import Story


def cast(*agents):
    """Four ranks, and agents on these hosts."""
    made = [(rank, "rank", "a") for rank in range(4)]
    made += [(4 + n, "agent", host) for n, host in enumerate(agents)]
    actors = [
        Actor(rank=r, incarnation=0, kind=k, host=h, name=None, first_ns=0, last_ns=1, end=None)
        for r, k, h in made
    ]
    return Cast(actors, frozenset(), {}, {}, [], [])


@pytest.mark.parametrize(
    ("agents", "named_4"),
    [
        ((), "rank 4"),
        (("a",), "the host agent"),
        (("a", "b"), "the agent of a"),
        (("a", "a"), "agent 4"),
        ((None, "b"), "agent 4"),
    ],
)
def test_agents_are_no_ranks(agents, named_4):
    names = ActorNames(cast(*agents))
    assert names(2) == "rank 2" and names(2, 1) == "rank 2.1"
    assert names(4) == named_4


def test_who_took_part():
    assert party(4, 1) == "4 ranks and 1 agent"
    assert party(1, 0) == "1 rank" and party(64, 8) == "64 ranks and 8 agents"


@pytest.mark.parametrize(
    ("fault", "signal", "value", "unit", "said"),
    [
        ("GPU_FAIL_STOP", "dead", -9.0, "exit status", "rank 2 died (SIGKILL): GPU_FAIL_STOP"),
        ("GPU_FAIL_STOP", "dead", 3.0, "exit status", "rank 2 died (exit code 3): GPU_FAIL_STOP"),
        ("GPU_FAIL_STOP", "dead", -999.0, None, "rank 2 died (exit code -999): GPU_FAIL_STOP"),
        ("GPU_FAIL_STOP", "dead", -1e300, None, "rank 2 died (exit code -1e+300): GPU_FAIL_STOP"),
        ("GPU_FAIL_STOP", "dead", float("inf"), None, "rank 2 died (exit code inf): GPU_FAIL_STOP"),
        ("GPU_FAIL_STOP", "dead", None, None, "rank 2 died: GPU_FAIL_STOP"),
        ("GPU_FAIL_STOP", "unreachable", 5.5, "s", "rank 2 was not reached for 5.5 s: GPU_FAIL_STOP"),
        ("STABLE_SYNC", "calm_rounds", 5.0, "steps",
         "rank 2 counted 5 steps without a fault: STABLE_SYNC"),
        ("LINK_DELAY_HIGH", "round_trip", 80.0, "ms", "LINK_DELAY_HIGH: round trip 80 ms, rank 2"),
        ("OPERATOR", None, None, None, "OPERATOR, rank 2"),
    ],
)  # fmt: skip
def test_what_a_detector_saw(fault, signal, value, unit, said):
    row = {"fault": fault, "signal": signal, "value": value, "unit": unit}
    assert fault_words(row, "rank 2") == said


def report(*checks, gaps=()):
    """One with these (code, verdict, reason)."""
    made = [
        CheckResult(code=c, name="n", verdict=v, num_checked=0, num_violations=0, reason=r)
        for c, v, r in checks
    ]
    fields = dict.fromkeys(Report.__struct_fields__)
    return Report(**fields | {"checks": made, "gaps": list(gaps)})


def test_what_rows_may_still_answer_is_told_from_what_is_lost():
    told = report(
        ("A1", "unknown", "rank 3 has no events, so what it did is not known"),
        ("G3", "unknown", "rank 0 lacks event 7 (dropped)"),
        ("L5", "unknown", "messages was not recorded, so the order of the cut is open"),
        ("R3", "unknown", "the run did not end cleanly, and debt x stood open"),
        ("L1", "ok", None),
        gaps=[{"recorded": True, "checks": ["G3"]}, {"recorded": False, "checks": ["A1"]}],
    )
    assert [c.code for c in lost_for_good(told)] == ["G3", "L5"]
    assert [c.code for c in pending(told)] == ["A1", "R3"]
    said = but_so_far(told, is_live=True)
    assert said.endswith("; 2 checks not judged yet: rows still coming")
    assert said.startswith(", but 2 checks cannot be answered: ")
    assert named(pending(told)) == "A1 n, R3 n"
    assert but_so_far(report(("L1", "ok", None)), is_live=True) == ""


def test_the_end_that_a_live_analysis_puts_behind_each_rank_is_still_to_come():
    of_live = {"recorded": True, "reason": "not_supplied", "first_seq": 766, "last_seq": None}
    told = report(
        ("G3", "unknown", "rank 0 lacks events from 766 on (not supplied)"),
        gaps=[of_live | {"checks": ["G3"]}],
    )
    assert lost_for_good(told) == []
    assert but_so_far(told, is_live=True) == "; 1 check not judged yet: rows still coming"
    for really in ({"reason": "dropped"}, {"last_seq": 790}):
        told.gaps = [of_live | {"checks": ["G3"]} | really]
        assert [c.code for c in lost_for_good(told)] == ["G3"]


def test_a_live_run_does_not_say_that_checks_cannot_be_answered(tmp_path):
    """One rank's rows are a moment late: a hole that the next rows fill."""
    s = Story(ranks=2)
    a, b = s.ranks
    for one in s.ranks:
        one.begin(0)
        one.read("params/0", version=0)
    a.lose(7)
    b.tell(a)
    run = Run(trace_of(s, tmp_path / "t", judged=True, clean=False))
    run.is_open = lambda: True
    run.is_judged_whole = lambda: False
    verdict = Speaker(run).story().story.verdict
    run.close()
    assert verdict.state == "judging"
    assert "cannot be answered" not in verdict.sentence
    assert verdict.sentence.endswith("not judged yet: rows still coming.")
    late = {check.code for check in verdict.checks if check.is_pending}
    assert late and late <= {c.code for c in verdict.checks if c.verdict == "unknown"}
    (line,) = (line for line in verdict.detail if line.startswith("Not judged yet"))
    names = {check.code: check.name for check in verdict.checks}
    assert all(f"{code} {names[code]}" in line for code in late)
