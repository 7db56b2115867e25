"""From which step on a replica differs, and in which it was still equal."""

from __future__ import annotations

import pytest

from analyzer import analyze
from analyzer.columns import NULL
from analyzer.odd_stretches import Compared, stretches
from collector.trace.samples import sample_traces
from collector.trace.trace_folder import open_trace
from tests.story import Story


def compared(text: str) -> list[Compared]:
    """``=`` equal, ``x`` odd, ``?`` odd in a step that is not known: one a step from 0 on."""
    return [Compared(i, NULL if c == "?" else i, c != "=") for i, c in enumerate(text)]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", {}),
        ("====", {}),
        ("==xxx", {2: "from step 2 on (equal in step 1)"}),
        ("xxx", {0: "from step 0 on"}),
        ("=xx=", {1: "in steps 1 to 2 (equal in step 0 and again in step 3)"}),
        ("xx=", {0: "in steps 0 to 1 (equal again in step 2)"}),
        ("==x", {2: "in step 2 (equal in step 1)"}),
        ("=x=xx", {1: "in step 1 (equal in step 0 and again in step 2)",
                   3: "from step 3 on (equal in step 2)"}),
        ("=?", {}),
    ],
)  # fmt: skip
def test_stretches(text, told):
    assert stretches(compared(text)) == told


def test_the_first_finding_says_from_which_step_on():
    with open_trace(sample_traces()["silent-restore"]) as trace:
        report = analyze(trace).report
    first, *more = report.violations
    assert first.sentence.startswith(
        "rank 2 differs from 3 other replicas in params/0 from step 25 on (equal in step 23): "
        "at version 25 it has digest "
    )
    assert more and not any("from step" in one.sentence for one in more)


def test_on_a_tie_both_are_named_and_neither_is_many():
    s = Story(ranks=2)
    for step in range(4):
        for one in s.ranks:
            one.begin(step)
            one.digest("aa" if step < 2 or one.rank == 0 else "ab", version=step)
            one.end()
    found = [v.sentence for v in analyze(s.source()).report.violations if v.code == "G1"]
    assert [said.partition(":")[0] for said in found if "from step" in said] == [
        "rank 0 differs from rank 1 in params/0 from step 2 on (equal in step 1)",
        "rank 1 differs from rank 0 in params/0 from step 2 on (equal in step 1)",
    ]
    assert len(found) == 4
