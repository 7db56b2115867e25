"""When a fault was answered, from rows that are made up; real jobs are struck where the benchmarks run."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks._struck import NUM_RANKS, VICTIM, Struck
from benchmarks.detection import Answered, answered, spread_of

MS = 1_000_000
AT = 1000 * MS
AGENT = NUM_RANKS


def health(ms: float, **other: Any) -> dict[str, Any]:
    told = {"mono_ns": AT + int(ms * MS), "fault": "GPU_FAIL_STOP", "subject_rank": VICTIM}
    return told | other


def message(ms: float, **other: Any) -> dict[str, Any]:
    return {"mono_ns": AT + int(ms * MS), "rank": AGENT, "direction": "send"} | other


def proposal(ms: float, *ranks: int, **other: Any) -> dict[str, Any]:
    members = [{"rank": rank, "incarnation": 0} for rank in ranks]
    return {"mono_ns": AT + int(ms * MS), "phase": "proposed", "members": members} | other


def struck(**rows: list[dict[str, Any]]) -> Struck:
    every = {"health": [], "messages": [], "transitions": [], "membership": []} | rows
    no_job: Any = None
    return Struck(AT, no_job, every)


def test_the_first_action_is_the_first_message_after_an_agent_has_written_down_what_it_saw() -> (
    None
):
    told = struck(
        health=[health(30.0), health(12.0), health(1.0, subject_rank=0), health(2.0, fault=None)],
        messages=[
            message(-500.0),
            message(5.0),  # of something else
            message(13.0, rank=0),
            message(13.5, direction="recv"),
            message(14.0),
            message(20.0),
        ],
        transitions=[
            proposal(9.0, 0, 1, VICTIM, 3),
            proposal(40.0, 0, 1, 3, phase="committed"),
            proposal(33.0, 0, 1, 3),
            proposal(90.0),  # the job's end
        ],
    )
    assert answered(told) == Answered(12.0, 14.0, 33.0)


@pytest.mark.parametrize("missing", ["health", "messages", "transitions"])
def test_a_fault_that_was_not_answered_is_no_figure(missing: str) -> None:
    rows = {
        "health": [health(1.0)],
        "messages": [message(2.0)],
        "transitions": [proposal(3.0, 0, 1, 3)],
    }
    assert answered(struck(**rows)) is not None
    assert answered(struck(**(rows | {missing: []}))) is None


def test_all_three_moments_are_told() -> None:
    told = spread_of([Answered(1.0, 2.0, 30.0), Answered(3.0, 4.0, 10.0)])
    assert told == {
        "seen (median/p95/max)": "1.0/3.0/3.0",
        "acted (median/p95/max)": "2.0/4.0/4.0",
        "proposed (median/p95/max)": "10.0/30.0/30.0",
        "jobs": 2,
    }
