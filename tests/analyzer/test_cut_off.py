"""The end of a file may be cut off: no hole shows it, the others' messages do."""

from __future__ import annotations

import pytest

from analyzer import analyze
from tests.analyzer.runs import kill_one_run
from tests.story import Story

ABSENCE = {"A1", "R2", "R3", "R4", "L3", "L5", "L7", "L8", "G3", "G4"}


def _without_the_end(story: Story, rank: int) -> Story:
    mine = [row for _, row in story.rows if row["rank"] == rank]
    first = next(row["seq"] for t, row in story.rows if t == "messages" and row["rank"] == rank)
    assert 0 < first < len(mine) - 1
    story.rows = [(t, r) for t, r in story.rows if r["rank"] != rank or r["seq"] < first]
    return story


@pytest.mark.parametrize("rank", [0, 1, 3, 4])
def test_a_message_from_beyond_the_end_makes_it_unknown(rank):
    report = analyze(_without_the_end(kill_one_run(), rank).source()).report
    assert [v.sentence for v in report.violations] == []
    assert report.verdict == "unknown"
    told = {c.code: c.reason for c in report.checks if c.verdict == "unknown"}
    assert set(told) >= ABSENCE
    assert "received a message from it whose sending is not recorded" in told["L5"]
    assert told["L5"].startswith("agent 4" if rank == 4 else f"rank {rank}")
    (gap,) = report.gaps
    assert (gap["rank"], gap["first_seq"], gap["reason"]) == (rank, None, "not_supplied")


def _one_sided(dies: bool) -> Story:
    s = Story(ranks=2, agents=1)
    a, b = s.ranks
    a.recv(b.send(a))
    s.rows = [
        (t, r) for t, r in s.rows if (t, r["rank"], r.get("direction")) != ("messages", 1, "send")
    ]
    b.seq -= 1
    s.walk("CAUSAL", "GPU_FAIL_STOP", members=[a], departed=[b] if dies else [])
    s.settle_all()
    return s


def test_a_dead_actor_ends_where_it_ends():
    assert analyze(_one_sided(dies=True).source()).report.gaps == []
    assert analyze(_one_sided(dies=False).source()).report.gaps != []


def test_an_import_may_know_one_end_of_a_message():
    source = _one_sided(dies=False).source()
    source.meta.mode = "imported"
    assert analyze(source).report.gaps == []
