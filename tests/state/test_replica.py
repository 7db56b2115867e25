"""Delivery and merge against the definition, by random schedules of all that a network does."""

from __future__ import annotations

from unittest import mock

from hypothesis import given, settings
from hypothesis import strategies as st

from cascade_runtime.state import replica as module
from cascade_runtime.state.replica import Replica
from cascade_runtime.vocabulary.identity import Actor, Dot
from tests.state.model import STATE, World

KEYS = ("a", "b")
moves = st.lists(
    st.tuples(
        st.sampled_from(["put", "put", "deliver", "deliver", "repeat", "drop", "sync"]),
        st.integers(0, 99),
        st.integers(0, 99),
    ),
    max_size=60,
)


def play(world: World, schedule: list[tuple[str, int, int]]) -> None:
    size = len(world.processes)
    for move, one, other in schedule:
        if move == "put":
            world.put(one % size, KEYS[other % len(KEYS)])
        elif move == "sync":
            if one % size != other % size:
                world.sync(one % size, other % size)
        elif world.on_the_way:
            at = one % len(world.on_the_way)
            if move != "drop":
                world.deliver(*world.on_the_way[at])
            if move != "repeat":
                del world.on_the_way[at]
        world.check()


def settle(world: World) -> None:
    """Everybody hears from everybody: all hold the same."""
    size = len(world.processes)
    for _ in range(2):
        for one in range(size):
            for other in range(size):
                if one != other:
                    world.sync(one, other)
    world.check()
    assert len({tuple(p.replica.clock()) for p in world.processes}) == 1
    first = world.processes[0].replica.entries(STATE)
    assert all(p.replica.entries(STATE) == first for p in world.processes)


@settings(max_examples=250, deadline=None)
@given(size=st.integers(2, 4), schedule=moves)
def test_whatever_the_network_does_causes_come_first_and_all_agree(size, schedule):
    world = World(size)
    play(world, schedule)
    settle(world)


@settings(max_examples=250, deadline=None)
@given(size=st.integers(2, 4), schedule=moves, tail=st.integers(0, 5))
def test_who_lacks_more_than_is_kept_takes_a_stand(size, schedule, tail):
    with mock.patch.object(module, "TAIL", tail):
        world = World(size)
        play(world, schedule)
        settle(world)


def test_memory_is_bounded_whatever_was_put():
    replica = Replica(causal=True)
    for number in range(3 * module.TAIL):
        replica.put(Actor(0), STATE, KEYS[number % 2], bytes(1000))
    assert replica.num_bytes == 2000
    assert replica.since([]) is None
    assert len(replica.since([Dot(0, 0, 2 * module.TAIL)]) or ()) == module.TAIL
    for _ in range(20):
        replica.put(Actor(0), STATE, "a", bytes(1 << 20))
    kept = replica.since([Dot(0, 0, 3 * module.TAIL + 14)])
    assert sum(len(u.value) for u in kept or ()) <= module.TAIL_BYTES
    assert replica.since([Dot(0, 0, 3 * module.TAIL)]) is None


def test_no_more_is_held_back_than_the_bound():
    source, far = Replica(causal=True), Replica(causal=True)
    updates = [source.put(Actor(0), STATE, "a", b"") for _ in range(module.MOST_WAITING + 20)]
    for update in updates[1:]:
        far.receive(update)
    assert len(far.waiting()) == module.MOST_WAITING
    assert len(far.receive(updates[0])) == module.MOST_WAITING + 1
    lacking = updates[module.MOST_WAITING + 1 :]
    assert [far.receive(u) for u in lacking] == [[u] for u in lacking]


def test_observed_it_applies_what_comes_once_each_and_asks_for_what_is_missing():
    source, seen = Replica(causal=True), Replica(causal=False)
    first, second, third = (source.put(Actor(0), STATE, k, b"") for k in "aba")
    assert seen.receive(third) == [third]
    assert seen.receive(third) == []
    assert seen.clock() == []
    assert seen.receive(first) == [first]
    assert seen.entry(STATE, "a") == third
    assert source.since(seen.clock()) == [second, third]
    assert [u for update in (second, third) for u in seen.receive(update)] == [second]
    assert seen.clock() == source.clock()
