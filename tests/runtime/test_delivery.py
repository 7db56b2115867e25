"""Which snapshots may be folded together, against every subset; and the order of what they apply."""

from __future__ import annotations

import time
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cascade_runtime.delivery import NotCausal, Snapshot, Step, dots_of, foldable, in_order
from cascade_runtime.vocabulary.identity import Actor, Clock, Dot

ME = Actor(0)


def dot(rank, counter, incarnation=0):
    return Dot(rank, incarnation, counter)


def snapshot(rank, upto, needs=(), steps=None):
    if steps is None:
        steps = [Step(upto, list(needs))]
    return Snapshot(Actor(rank), upto, list(needs), steps)


def brute(frontier, newest):
    """The union of all subsets in which nothing is missing."""
    told = [s for s in newest if not frontier.covers(dot(s.origin.rank, s.upto))]
    good = set()
    for size in range(len(told) + 1):
        for some in combinations(told, size):
            have = frontier.merge(Clock([dot(s.origin.rank, s.upto) for s in some]))
            if all(have.covers(n) for s in some for n in s.needs):
                good.update(s.origin for s in some)
    return [s for s in sorted(told, key=lambda s: s.origin) if s.origin in good]


clocks = st.dictionaries(st.integers(0, 5), st.integers(1, 4), max_size=6)


@st.composite
def any_snapshots(draw):
    """Needs of all kinds, also such as no run could give."""
    frontier = Clock([dot(r, c) for r, c in draw(clocks).items()])
    origins = draw(st.lists(st.integers(1, 5), unique=True))
    return frontier, [
        snapshot(r, draw(st.integers(1, 4)), [dot(*n) for n in draw(clocks).items()])
        for r in origins
    ]


@settings(deadline=None)
@given(any_snapshots())
def test_the_largest_set_that_misses_nothing(given_):
    frontier, newest = given_
    chosen = foldable(frontier, newest)
    assert chosen == brute(frontier, newest)
    assert chosen == foldable(frontier, reversed(newest))
    have = frontier.merge(Clock([dot(s.origin.rank, s.upto) for s in chosen]))
    assert all(have.covers(n) for s in chosen for n in s.needs)


class Run:
    """Origins that issue and fold, as a real run would: rank 0 is the receiver in question."""

    def __init__(self, num_origins, stride):
        self.stride = stride
        self.actors = [Actor(r) for r in range(num_origins)]
        self.clocks = [Clock() for _ in self.actors]
        self.told = [Clock() for _ in self.actors]
        self.steps = [[] for _ in self.actors]
        self.needs = [[] for _ in self.actors]

    def issue(self, rank):
        deps = [
            d
            for d in self.clocks[rank].dots()
            if d.rank != rank and d.counter > self.told[rank].upto(d.actor)
        ]
        self.told[rank] = Clock(self.clocks[rank].dots())
        upto = self.clocks[rank].upto(Actor(rank)) + self.stride
        self.needs[rank].append([d for d in self.clocks[rank].dots() if d.rank != rank])
        self.steps[rank].append(Step(upto, deps))
        self.clocks[rank].cover(dot(rank, upto))

    def snapshot(self, rank, index, known=0):
        """As of its ``index``-th step; the receiver has acknowledged ``known``."""
        steps = [s for s in self.steps[rank][: index + 1] if s.upto > known]
        return Snapshot(Actor(rank), steps[-1].upto, self.needs[rank][index], steps)

    def fold(self, rank, pairs):
        """Fold what may be folded of these (rank, index of step)."""
        newest = [
            self.snapshot(r, i)
            for r, i in pairs
            if r != rank and self.steps[r][i].upto > self.clocks[rank].upto(Actor(r))
        ]
        chosen = foldable(self.clocks[rank], newest)
        before = Clock(self.clocks[rank].dots())
        assert len(newest) > 6 or chosen == brute(before, newest)
        for origin, step in in_order(before, chosen):
            assert all(before.covers(d) for d in step.deps), "after all that it depends on"
            assert step.upto == before.upto(origin) + self.stride, "no counter left out"
            before.cover(dot(origin.rank, step.upto))
        for s in chosen:
            self.clocks[rank].cover(dot(s.origin.rank, s.upto))
        assert before == self.clocks[rank]
        return newest, chosen


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_runs_of_up_to_eight_origins_fold_in_causal_order(data):
    count = data.draw(st.integers(2, 8))
    run = Run(count, data.draw(st.integers(1, 3)))
    rank = st.integers(0, count - 1)
    for _ in range(data.draw(st.integers(1, 40))):
        if data.draw(st.booleans()):
            run.issue(data.draw(rank))
        else:
            issued = [r for r in range(count) if run.steps[r]]
            pairs = [(r, data.draw(st.integers(0, len(run.steps[r]) - 1))) for r in issued]
            run.fold(data.draw(rank), pairs)
    # Whoever hears everybody's newest misses nothing: nobody waits for ever.
    newest, chosen = run.fold(0, [(r, len(run.steps[r]) - 1) for r in range(count) if run.steps[r]])
    assert len(newest) == len(chosen)


def test_two_jumps_that_need_each_other_are_folded_together():
    steps_1 = [Step(1, []), Step(2, [dot(2, 1)])]
    steps_2 = [Step(1, []), Step(2, [dot(1, 1)])]
    one = snapshot(1, 2, [dot(2, 1)], steps_1)
    two = snapshot(2, 2, [dot(1, 1)], steps_2)
    assert foldable(Clock(), [one]) == []
    assert foldable(Clock(), [one, two]) == [one, two]
    order = [(o.rank, s.upto) for o, s in in_order(Clock(), [two, one])]
    assert order == [(1, 1), (2, 1), (2, 2), (1, 2)]


def test_nothing_old_is_folded_again_nor_applied_again():
    frontier = Clock([dot(1, 4)])
    old = snapshot(1, 4, [dot(9, 9)])
    assert foldable(frontier, [old]) == []
    new = snapshot(1, 8, steps=[Step(2, []), Step(4, []), Step(6, []), Step(8, [])])
    assert [s.upto for _, s in in_order(frontier, foldable(frontier, [new]))] == [6, 8]


def test_a_restarted_rank_is_another_origin():
    again = Snapshot(Actor(1, 1), 1, [dot(1, 5)], [Step(1, [])])
    assert foldable(Clock([dot(1, 4)]), [again]) == []
    assert foldable(Clock([dot(1, 5)]), [again]) == [again]


@pytest.mark.parametrize(
    "chosen",
    [
        [snapshot(1, 1, [dot(2, 1)]), snapshot(2, 1, [dot(1, 1)])],
        [snapshot(1, 1, [dot(3, 1)])],
    ],
    ids=["circle", "never told"],
)
def test_no_order_is_said(chosen):
    with pytest.raises(NotCausal, match="1:1"):
        in_order(Clock(), chosen)


def test_dots_of_a_step():
    assert dots_of(Actor(3, 1), Step(9, []), 3) == [Dot(3, 1, 7), Dot(3, 1, 8), Dot(3, 1, 9)]


def test_the_largest_case_costs_no_time_of_a_step():
    """Eight origins, each sixteen steps ahead, everybody knowing of everybody."""
    run = Run(8, 4)
    for _ in range(16):
        for rank in range(8):
            run.issue(rank)
        for rank in range(1, 8):
            run.fold(rank, [(r, len(run.steps[r]) - 1) for r in range(8)])
    newest = [run.snapshot(r, 15) for r in range(1, 8)]
    frontier = Clock([dot(0, 64)])
    least = min(_timed(frontier, newest) for _ in range(20))
    assert least < 0.005, f"{least * 1e6:.0f} us"


def _timed(frontier, newest):
    begun = time.process_time()
    assert len(in_order(frontier, foldable(frontier, newest))) == 7 * 16
    return time.process_time() - begun
