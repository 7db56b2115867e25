"""Actors, dots and clocks."""

from __future__ import annotations

import pytest
from hypothesis import find, given
from hypothesis import strategies as st

from cascade_runtime.vocabulary.identity import Actor, Clock, Dot, EventRef
from tests.vocabulary.strategies import ACTORS, LAWS, clocks, dots


@given(clocks(), clocks(), clocks())
@LAWS
def test_clocks_are_partially_ordered(a, b, c):
    assert a <= a
    assert (a <= b and b <= a) == (a == b)
    assert not (a <= b and b <= c) or a <= c
    assert (a >= b) == (b <= a)
    assert a.concurrent(b) == b.concurrent(a) == (not a <= b and not b <= a)


@given(clocks(), clocks(), clocks())
@LAWS
def test_merge_is_the_least_upper_bound(a, b, c):
    merged = a.merge(b)
    assert a <= merged
    assert b <= merged
    assert (a <= c and b <= c) == (merged <= c)
    assert merged == b.merge(a)
    assert a.merge(a) == a
    assert merged.merge(c) == a.merge(b.merge(c))


@given(clocks(), clocks())
@LAWS
def test_merge_makes_a_new_clock(a, b):
    before = a.dots()
    a.merge(b).cover(Dot(9, 0, 9))
    assert a.dots() == before


@given(clocks(), clocks())
@LAWS
def test_a_clock_is_at_most_another_when_that_covers_all_of_its_dots(a, b):
    assert (a <= b) == all(b.covers(dot) for dot in a.dots())


@given(clocks(), dots())
@LAWS
def test_covering_a_dot_covers_what_its_author_did_before_and_nothing_else(clock, dot):
    before = Clock(clock.dots())
    clock.cover(dot)
    assert before <= clock
    assert all(clock.covers(Dot(dot.rank, dot.incarnation, c)) for c in range(1, dot.counter + 1))
    assert clock.upto(dot.actor) == max(before.upto(dot.actor), dot.counter)
    others = [d.actor for d in before.dots() if d.actor != dot.actor]
    assert all(clock.upto(actor) == before.upto(actor) for actor in others)
    assert not clock.covers(Dot(dot.rank, dot.incarnation, clock.upto(dot.actor) + 1))


@given(st.lists(dots()))
@LAWS
def test_dots_round_trip_and_do_not_depend_on_their_order(given_dots):
    clock = Clock(given_dots)
    assert Clock(clock.dots()) == Clock(reversed(given_dots)) == clock
    assert clock.dots() == sorted(clock.dots())
    assert len({d.actor for d in clock.dots()}) == len(clock.dots())
    assert all(clock.covers(d) for d in given_dots)


def test_concurrent_clocks_exist_and_are_found():
    a, b = find(st.tuples(clocks(), clocks()), lambda pair: pair[0].concurrent(pair[1]))
    assert not a.covers(b.dots()[0]) or not b.covers(a.dots()[0])
    assert a != b


def test_a_restarted_rank_is_another_actor():
    clock = Clock([Dot(2, 0, 7)])
    assert not clock.covers(Dot(2, 1, 1))
    assert clock.upto(Actor(2, 1)) == 0
    assert clock.upto(Actor(2)) == 7


def test_clocks_are_no_keys_because_they_change():
    with pytest.raises(TypeError):
        hash(Clock())
    assert Clock() != "a clock"


def test_clocks_and_actors_print_the_incarnation_only_after_a_restart():
    assert str(Actor(3)) == "3"
    assert str(Actor(3, 2)) == "3.2"
    assert repr(Clock([Dot(1, 2, 4), Dot(0, 0, 9)])) == "Clock(0:9, 1.2:4)"


@given(st.lists(ACTORS))
@LAWS
def test_actors_sort_by_rank_then_incarnation(actors):
    assert sorted(actors) == sorted(actors, key=lambda a: (a.rank, a.incarnation))


def test_a_dot_knows_its_author_and_an_event_its_address():
    assert Dot(3, 1, 9).actor == Actor(3, 1)
    assert EventRef(0, 0, 4) < EventRef(0, 1, 0) < EventRef(1, 0, 0)
