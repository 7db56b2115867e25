"""The pass must agree with happens-before by its definition, on any small trace."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analyzer.history import History
from tests.analyzer.brute import closure
from tests.analyzer.random_story import sound_story, wild_story
from tests.story import Story


def assert_agrees(story: Story) -> History:
    history = History(story.source())
    keys, reach = closure(story.rows)
    rows = history.rows
    assert [rows.where(i) for i in range(rows.n)] == keys
    for i in range(rows.n):
        for j in range(rows.n):
            if i != j:
                assert history.happens_before(i, j) == bool(reach[i] >> j & 1), (keys[i], keys[j])
    return history


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**9), st.integers(2, 5))
def test_agrees_with_the_definition(seed, ranks):
    history = assert_agrees(sound_story(seed, ranks))
    assert history.hb.cycles == []


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**9))
def test_cycles_are_found_and_nothing_hangs(seed):
    story = wild_story(seed)
    _, reach = closure(story.rows)
    history = History(story.source())
    cyclic = any(reach[i] >> i & 1 for i in range(len(reach)))
    assert bool(history.hb.cycles) == cyclic
    for cycle in history.hb.cycles:
        for row in cycle:
            assert reach[row] >> row & 1, "every row of a reported cycle lies on one"
    if not cyclic:
        assert_agrees(story)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**9))
def test_paths_are_paths_and_shortest(seed):
    story = sound_story(seed, ranks=4, actions=30)
    history = History(story.source())
    rows, hb = history.rows, history.hb
    for i in range(0, rows.n, 3):
        for j in range(rows.n):
            path = hb.path(i, j)
            if not hb.before(i, j):
                assert path == []
                continue
            assert (path[0].row, path[-1].row) == (i, j)
            for hop, following in pairwise(path):
                assert hb.before(hop.row, following.row)
                inside = rows.actor[hop.row] == rows.actor[following.row]
                assert (following.edge == "program order") == bool(inside)


def test_collective_completes_just_before_done_seq():
    s = Story(ranks=2)
    a, b = s.ranks
    ra, rb = a.enter(cseq=0), b.enter(cseq=0)
    during = a.row("steps", phase="begin")  # a launched it and went on
    late = b.row("steps", phase="begin")
    a.done(ra)
    after = a.row("steps", phase="end")
    b.done(rb, rb["seq"] + 1)
    history = History(s.source())
    at = {
        name: history.rows.row_at(history.rows.actor_code(row["rank"], 0), row["seq"])
        for name, row in (
            ("ra", ra),
            ("rb", rb),
            ("during", during),
            ("late", late),
            ("after", after),
        )
    }
    assert not history.happens_before(at["rb"], at["during"])
    assert history.happens_before(at["rb"], at["after"])
    assert history.happens_before(at["ra"], at["late"])


@pytest.mark.parametrize(("op", "forward", "backward"), [
    ("all_reduce", True, True),
    ("broadcast", True, False),
    ("reduce", False, True),
])  # fmt: skip
def test_collectives_order_by_kind(op, forward, backward):
    s = Story(ranks=2)
    rows = s.all_reduce(op=op, root=0)
    ends = [m.row("steps", phase="end") for m in s.ranks]
    history = History(s.source())
    place = [history.rows.row_at(r["rank"], r["seq"]) for r in rows]
    done = [history.rows.row_at(r["rank"], r["seq"]) for r in ends]
    assert history.happens_before(place[0], done[1]) == forward
    assert history.happens_before(place[1], done[0]) == backward


def test_control_plane_implies_nothing_without_messages():
    s = Story(ranks=2)
    a, b = s.ranks
    ack = a.walk_row("acknowledged", "CAUSAL", s.ranks)
    commit = b.walk_row("committed", "CAUSAL", s.ranks)
    history = History(s.source())
    at = [history.rows.row_at(r["rank"], r["seq"]) for r in (ack, commit)]
    assert not history.happens_before(at[0], at[1])


def test_new_incarnation_follows_its_checkpoint_not_its_predecessor():
    from tests.story import Teller

    s = Story(ranks=2)
    a, b = s.ranks
    b.checkpoint("saved", "k1")
    mark = b.row("steps", phase="end")
    last = a.row("steps", phase="end")
    again = Teller(s, 0, incarnation=1)
    first = again.start(started_from="k1")
    loaded = again.checkpoint("loaded", "k1")
    history = History(s.source())
    rows = history.rows
    new = rows.actor_code(0, 1)
    load = rows.row_at(new, loaded["seq"])
    assert not history.happens_before(rows.row_at(0, last["seq"]), load)
    assert not history.happens_before(rows.row_at(rows.actor_code(1, 0), mark["seq"]), load)
    assert history.happens_before(rows.row_at(rows.actor_code(1, 0), mark["seq"] - 1), load)
    assert first["seq"] == 0
