"""A rank that came back is named, with the time that it was away."""

from __future__ import annotations

from types import SimpleNamespace

from dashboard.story.returns import newcomers_of, returns_of


def facts(*changes):
    columns = ("what", "rank", "incarnation", "reason", "epoch", "wall_ns")
    rows = [dict(zip(columns, change, strict=True)) for change in changes]
    return SimpleNamespace(rows=SimpleNamespace(changes=rows), since=lambda ns: ns - 1_000)


LOST = ("departed", 2, 0, "failed", 1, 1_000)


def test_a_rank_that_came_back():
    (one,) = returns_of(facts(LOST, ("joined", 2, 1, "joined", 5, 3_200_001_000)))
    assert (one.lost_ns, one.back_ns) == (0, 3_200_000_000)
    assert one.words() == (
        "Rank 2 came back as 2.1 at 3.2 s (epoch 5), 3.2 s after it was lost at 0.0 s."
    )


def test_one_that_did_not_and_one_that_only_finished():
    assert returns_of(facts(LOST)) == []
    assert (
        returns_of(facts(("departed", 2, 0, "finished", 1, 1), ("joined", 2, 1, "joined", 2, 2)))
        == []
    )
    assert returns_of(facts(("joined", 2, 0, "started", 0, 1))) == []


def test_each_time_that_it_came_back():
    again = [("joined", 2, 1, "joined", 2, 2_000), ("departed", 2, 1, "stopped", 3, 3_000)]
    found = returns_of(facts(LOST, *again, ("joined", 2, 2, "joined", 4, 7_000)))
    assert [(r.incarnation, r.back_ns - r.lost_ns) for r in found] == [(1, 1_000), (2, 4_000)]


START = ("joined", 2, 0, "started", 0, 1_000)


def test_a_rank_that_was_no_member_before():
    (one,) = newcomers_of(facts(START, ("joined", 4, 0, "joined", 3, 3_200_001_000)))
    assert one.words() == ("Rank 4 joined at 3.2 s (epoch 3); it had been no member before.")


def test_who_starts_with_the_job_or_comes_back_is_no_newcomer():
    assert newcomers_of(facts(START, LOST, ("joined", 2, 1, "joined", 5, 5_000))) == []
    twice = [("joined", 4, 0, "joined", 3, 2_000), ("departed", 4, 0, "failed", 4, 3_000)]
    (one,) = newcomers_of(facts(START, *twice, ("joined", 4, 1, "joined", 5, 4_000)))
    assert (one.rank, one.at_ns) == (4, 1_000)
