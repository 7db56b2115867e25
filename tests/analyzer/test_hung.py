"""An operation that never completes: how long it was waited for, and who is convicted of it."""

from __future__ import annotations

import pytest

from analyzer import analyze
from tests.analyzer.test_waits import quick, waits_of
from tests.story import MS, Story


def hung(s: Story, told_s: tuple[float, ...], still_s: float = 2.0, waited_s: int = 4) -> Story:
    """All but the last enter and wait, with a row each second; an agent sees the last one still."""
    for one in s.ranks:
        one.join("c0", s.ranks)
    s.all_reduce()
    began = s.now
    for one in s.ranks[:-1]:
        one.step = 7
        one.enter("c0", 1)
    for second in range(1, waited_s + 1):
        s.now = began + second * 1000 * MS
        for one in s.ranks[:-1]:
            row = one.health("pending", one)
            row |= {"detector": "wait", "value": float(second), "unit": "s"}
    for at in told_s:
        s.now = began + int(at * 1000 * MS)
        row = s.agents[0].health("stands_still", s.ranks[-1])
        row |= {"detector": "slow", "value": still_s, "threshold": 0.5, "unit": "s"}
    return s


def test_a_wait_that_goes_on_counts_to_the_waiters_last_sign_of_life():
    s = hung(quick(ranks=3, agents=1), (3.5,))
    waits, rows = waits_of(s, clean=False)
    found = {r["rank"]: r for r in rows if r["is_open"]}
    assert set(found) == {0, 1}
    for row in found.values():
        assert row["wait_ns"] == pytest.approx(4000 * MS, rel=1e-3)
        assert (row["root_rank"], row["cause"]) == (2, "absent rank")
    assert {r.rank: r.caused_s for r in waits.by_rank}[2] == pytest.approx(8.0, rel=1e-3)


@pytest.mark.parametrize(("told_s", "still_s", "certain"), [
    ((3.5,), 2.0, True),
    ((), 2.0, False),  # nobody looked
    ((0.5,), 2.0, False),  # it may have come since
    ((3.5,), 0.1, False),  # it goes on
])  # fmt: skip
def test_who_is_seen_standing_still_is_convicted_of_the_wait(told_s, still_s, certain):
    s = hung(quick(ranks=3, agents=1), told_s, still_s)
    report = analyze(s.source(clean=False)).report
    assert [(x.rank, x.certain) for x in report.suspects] == [(2, certain)]
    assert report.violations == []
    assert next(c for c in report.checks if c.code == "G3").verdict == "unknown"


@pytest.mark.parametrize("has_begun", [False, True])
def test_an_author_at_the_staleness_bound_holds_nobody_up(has_begun: bool) -> None:
    """Others of its cohort wait in the next step, and it waits for another cohort's folds."""
    s = quick(ranks=3, agents=1)
    for one in s.ranks:
        one.join("c0", s.ranks)
    s.all_reduce()
    began = s.now
    author, *others = s.ranks
    author.step = 7
    for one in others:
        one.step = 8
        one.begin(8)
        one.enter("c0", 1)
    for second in range(1, 5):
        s.now = began + second * 1000 * MS
        for one in s.ranks:
            row = one.health("room" if one is author else "pending", one)
            row |= {"detector": "wait", "value": float(second), "unit": "s"}
    if has_begun:
        author.begin(8)
        s.now += 2000 * MS
        author.health("late", author)
    report = analyze(s.source(clean=False)).report
    assert [x.rank for x in report.suspects] == ([author.rank] if has_begun else [])
    assert bool(report.violations) == has_begun
