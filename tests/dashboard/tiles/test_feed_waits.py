from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dashboard.tiles import feed_waits
from dashboard.tiles.feed_waits import Lanes, Provisional, add_judged
from dashboard.tiles.rows import COLLECTIVES, GROUPS, UNKNOWN, Rows
from tests.dashboard.tiles import brute

N_TO_N, ONE_TO_N, N_TO_ONE = range(3)


def rows(what, entries):
    """entries: (rank, comm, cseq, kind, root, begin_ns, end_ns or None)."""
    rank, comm, cseq, kind, root, begin, end = zip(*entries, strict=True) if entries else [()] * 7

    def ints(values):
        return np.array(values, np.int64)

    none = ints([0] * len(rank))
    ends = ints([int(UNKNOWN) if e is None else e for e in end])
    return Rows(
        ints([what] * len(rank)), ints(rank), none, none, none, ints(cseq), ints(kind), ints(root),
        ints(begin), ends, none.astype(float), pa.array(comm, pa.string()),
    )  # fmt: skip


def group(comm, size):
    return (0, comm, size, -1, -1, 0, None)


def waits_of(instance):
    """(rank, start, end, by) by the definitions."""
    _, _, _, kind, root, _, _ = instance[0]
    needed = [e for e in instance if kind == N_TO_N or (e[0] == root) == (kind == ONE_TO_N)]
    if not needed or (kind != N_TO_N and root < 0):
        return []
    last = max(e[5] for e in needed)
    by = min(e[0] for e in needed if e[5] == last)
    waiters = [e for e in instance if kind == N_TO_N or (e[0] == root) == (kind == N_TO_ONE)]
    ends = [(e[0], e[5], last if e[6] is None else min(last, e[6])) for e in waiters]
    return [(r, s, e, by) for r, s, e in ends if e > s]


@st.composite
def runs(draw):
    """Instances of two communicators, of which some members may never come, in any order of rows."""
    sizes = {"x": draw(st.integers(1, 4)), "y": draw(st.integers(1, 4))}
    whole, entries = [], []
    for comm, size in sizes.items():
        for cseq in range(draw(st.integers(0, 6))):
            kind, root = draw(st.integers(0, 2)), draw(st.integers(-1, size - 1))
            members = []
            for rank in range(size):
                begin = cseq * 20 + draw(st.integers(0, 60))
                end = draw(st.none() | st.integers(begin, begin + 90))
                members.append((rank, comm, cseq, kind, root, begin, end))
            if draw(st.integers(0, 4)) == 0:
                members.pop()  # it never comes
            else:
                whole.append(members)
            entries += members
    entries = draw(st.permutations(entries))
    cuts = sorted(draw(st.lists(st.integers(0, len(entries)), max_size=4)))
    parts = [entries[a:b] for a, b in zip([0, *cuts], [*cuts, len(entries)], strict=True)]
    return sizes, whole, parts, draw(st.integers(0, len(parts)))


@settings(max_examples=60, deadline=None)
@given(runs())
def test_waits_are_found_in_whichever_order_rows_come(made):
    sizes, whole, parts, groups_at = made
    lanes, feed = Lanes(), Provisional(0)
    groups = rows(GROUPS, [group(c, s) for c, s in sizes.items()])
    for at, part in enumerate([*parts, []]):
        feed.add(lanes, rows(COLLECTIVES, part), groups if at == groups_at else rows(GROUPS, []))
    waits = [wait for instance in whole for wait in waits_of(instance)]
    known = {}
    for rank, start, end, _ in waits:
        known.setdefault(rank, []).append((start, end))
    for a, b in ((-10, 10**6), (20, 61), (50, 57)):
        waited = lanes.waited.sums(a, b)
        assert waited == {r: brute.inside(known[r], a, b, union=True) for r in sorted(known)}
    # What is said to be caused is what was waited, to the nanosecond, and by nobody else.
    caused = lanes.caused.sums(-10, 10**6)
    assert sum(caused.values()) == sum(lanes.waited.sums(-10, 10**6).values())
    assert set(caused) <= {by for *_, by in waits}
    assert feed.num_pending == sum(map(len, parts)) - sum(map(len, whole))


def test_entries_whose_members_never_come_are_given_up_at_last(monkeypatch):
    monkeypatch.setattr(feed_waits, "MAX_PENDING", 10)
    lanes, feed = Lanes(), Provisional(0)
    groups = rows(GROUPS, [group("x", 2)])
    for cseq in range(30):
        feed.add(lanes, rows(COLLECTIVES, [(0, "x", cseq, 0, -1, cseq, None)]), groups)
    assert feed.num_pending == 10 and feed.num_given_up == 20
    feed.add(lanes, rows(COLLECTIVES, [(1, "x", 29, 0, -1, 40, None)]), rows(GROUPS, []))
    assert lanes.waited.sums(0, 100) == {0: 11}  # the newest were kept
    assert lanes.caused.sums(0, 100) == {1: 11}


def test_communicators_that_nothing_is_kept_of_are_forgotten(monkeypatch):
    """A sender names them; those that are kept go on as before."""
    monkeypatch.setattr(feed_waits, "MAX_PENDING", 10)
    monkeypatch.setattr(feed_waits, "MAX_COMMS", 40)
    lanes, feed = Lanes(), Provisional(0)
    for number in range(1000):
        comm, at = f"c{number}", 10 * number
        sized = [group(comm, 2)] if number % 2 else []  # of the others nobody tells the members
        feed.add(lanes, rows(COLLECTIVES, [(0, comm, 0, 0, -1, at, None)]), rows(GROUPS, sized))
        earlier = number - 4  # is pending
        entry = [(1, f"c{earlier}", 0, 0, -1, 10 * earlier + 3, None)] if earlier % 2 else []
        feed.add(lanes, rows(COLLECTIVES, entry), rows(GROUPS, []))
        assert len(feed._codes) <= 101 and len(feed._sizes) <= 256
    whole = [number for number in range(996) if number % 2]
    assert lanes.waited.sums(0, 10_000) == {0: 3 * len(whole)}
    assert lanes.caused.sums(0, 10_000) == {1: 3 * len(whole)}


def test_a_wait_laid_early_is_known_when_communicators_are_forgotten(monkeypatch):
    monkeypatch.setattr(feed_waits, "MAX_COMMS", 8)
    lanes, feed = Lanes(), Provisional(0)
    none = rows(COLLECTIVES, [])
    fill = [(0, f"c{number}", 0, 0, -1, 5, None) for number in range(20)]
    monkeypatch.setattr(feed_waits, "MAX_PENDING", 3)
    feed.add(lanes, rows(COLLECTIVES, fill), rows(GROUPS, []))
    both = rows(COLLECTIVES, [(rank, "x", 0, 0, -1, 10 + 50 * rank, None) for rank in range(2)])
    for now_s in (0.0, 5.0, 6.0):
        feed.add(lanes, none, rows(GROUPS, [group("x", 2)]), both, now_s)
    assert lanes.waited.sums(0, 100) == {0: 50} and feed.num_laid == 2
    more = [(0, f"d{number}", 0, 0, -1, 5, None) for number in range(20)]
    feed.add(lanes, rows(COLLECTIVES, more), rows(GROUPS, []), both, 7.0)
    feed.add(lanes, none, rows(GROUPS, []), both, 8.0)
    assert len(feed._codes) <= 5 and feed.num_laid == 2  # not once more
    ended = [(rank, "x", 0, 0, -1, 10 + 50 * rank, 40 + 30 * rank) for rank in range(2)]
    feed.add(lanes, rows(COLLECTIVES, ended), rows(GROUPS, []), none, 9.0)
    assert feed.is_off and not feed._laid_open


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 0, 1)])
def test_judged_waits_lie_behind_those_that_cover_their_begin(order):
    """The analysis counts of overlapping waits each moment once; the lane must not take it off again."""
    told = [(100, 50, 1), (120, 40, 2), (300, 5, 1)]  # ready, counted, by: the second until 190
    rank = [3, 3, 3]
    told = [told[i] for i in order]
    lanes = Lanes()
    begin, wait, by = zip(*told, strict=True)
    columns = {"rank": rank, "incarnation": [0] * 3, "begin_ns": begin, "wait_ns": wait, "by": by}
    add_judged(lanes, 100, pa.table(columns))
    assert lanes.waited.sums(-100, 1000) == {3: 95}
    assert lanes.caused.sums(-100, 1000) == {1: 55, 2: 40}
    assert lanes.waited.sums(50, 90) == {3: 40}
