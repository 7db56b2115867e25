"""Running sums between authors: the newest, one at a time, whole or not at all, and never waiting."""

from __future__ import annotations

import contextlib
import gc
import multiprocessing
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
import xxhash

from cascade_runtime.rank.delta_frames import PIECE_BYTES, Traffic
from cascade_runtime.vocabulary.identity import Actor, Dot
from tests.runtime.delta_rig import ROOT, Author, Process, connect, until


@pytest.fixture
def ends():
    """``ends(author or process)`` closes it with the test."""
    with contextlib.ExitStack() as stack:

        def keep(thing):
            stack.callback(thing.end if isinstance(thing, Process) else thing.deltas.close)
            return thing

        yield keep


def pair(ends, **more):
    one, other = ends(Author(0, **more)), ends(Author(1, **more))
    connect(one, other)
    return one, other


def arrived(author, upto):
    return lambda: any(s.upto >= upto for s in author.deltas.newest)


@pytest.mark.parametrize("num_bytes", [8, PIECE_BYTES, 2 * PIECE_BYTES + 5])
def test_a_sum_arrives_byte_for_byte_and_is_acknowledged_when_it_is_folded(ends, num_bytes):
    one, other = pair(ends, num_bytes=num_bytes)
    one.step()
    until(arrived(other, 1), one, other)
    assert one.deltas.acked == {Actor(1): 0}, "arrived is not folded"
    assert other.fold_all() == [(0, 1, bytes(one.own))]
    until(lambda: one.deltas.acked == {Actor(1): 1}, one, other)
    assert one.deltas.in_flight == []


def test_one_at_a_time_and_the_newest_wins(ends):
    one, other = pair(ends)
    one.step()
    until(arrived(other, 1), one, other)
    for _ in range(9):
        one.step()
    for _ in range(20):
        one.deltas.pump()
        other.deltas.pump()
    assert [s.upto for s in other.deltas.newest] == [1]
    assert [d.counter for d in one.deltas.in_flight] == list(range(1, 11))
    other.fold_all()
    until(arrived(other, 2), one, other)
    (snapshot,) = other.deltas.newest
    assert [s.upto for s in snapshot.steps] == list(range(2, 11)), "what it has not acknowledged"
    assert other.fold_all() == [(0, 10, bytes(one.own))]
    until(lambda: not one.deltas.in_flight, one, other)


def test_deps_and_needs_come_with_it(ends):
    one, other = pair(ends)
    one.step([Dot(2, 0, 7)], [Dot(2, 0, 7), Dot(3, 1, 2)])
    until(arrived(other, 1), one, other)
    (snapshot,) = other.deltas.newest
    assert snapshot.steps[0].deps == [Dot(2, 0, 7)]
    assert snapshot.needs == [Dot(2, 0, 7), Dot(3, 1, 2)]


def test_both_ends_have_the_same_messages(ends):
    one, other = pair(ends)
    for _ in range(3):
        one.step()
        other.step()
        until(lambda: one.deltas.newest and other.deltas.newest, one, other)
        one.fold_all()
        other.fold_all()
        until(lambda: not one.deltas.in_flight + other.deltas.in_flight, one, other)

    def told(author, direction):
        return {(t.number, t.num_bytes) for t in author.traffic if t.direction == direction}

    assert len(told(one, "send")) == 6
    assert told(one, "send") == told(other, "recv") and told(other, "send") == told(one, "recv")
    assert sorted(n for n, _ in told(one, "send")) == list(range(6))
    assert one.traffic[0] == Traffic("send", Actor(1), 0, len(one.own))


def test_everybody_tells_everybody(ends):
    authors = [ends(Author(r)) for r in range(4)]
    connect(*authors)
    for author in authors:
        author.step()
    until(lambda: all(len(a.deltas.newest) == 3 for a in authors), *authors)
    for author in authors:
        assert {(r, b) for r, _, b in author.fold_all()} == {
            (a.actor.rank, bytes(a.own)) for a in authors if a is not author
        }
    until(lambda: not any(a.deltas.in_flight for a in authors), *authors)


# ---- the staleness bound -------------------------------------------------------------------------


def test_the_bound_counts_steps_that_the_slowest_has_not_folded(ends):
    one, other = pair(ends, stride=3, bound=2)
    third = ends(Author(2, stride=3))
    one.deltas.connect({a.actor: a.deltas.address for a in (other, third)})
    other.deltas.connect({one.actor: one.deltas.address})
    for _ in range(2):
        assert one.deltas.may_issue(one.upto + 3)
        one.step()
    assert one.deltas.waits_for(one.upto + 3) == [Actor(1), Actor(2)]
    until(arrived(other, 3), one, other)
    other.fold_all()
    until(lambda: one.deltas.acked[Actor(1)] >= 3, one, other)
    assert one.deltas.waits_for(one.upto + 3) == [Actor(2)] and not one.deltas.may_issue(9)
    one.deltas.connect({other.actor: other.deltas.address})  # the third is in no cohort now
    assert one.deltas.may_issue(9)


def test_what_is_issued_is_in_flight_before_it_is_told(ends):
    one, _ = pair(ends)
    one.deltas.issued(2)
    assert one.deltas.in_flight == [Dot(0, 0, 1), Dot(0, 0, 2)]


def test_all_start_from_the_level_of_the_walk(ends):
    one, other = pair(ends, start=40, bound=1)
    assert one.deltas.in_flight == [] and one.deltas.may_issue(41) and not one.deltas.may_issue(42)
    one.upto = 40
    one.step()
    until(arrived(other, 41), one, other)


def test_without_a_bound_anything_may_be_issued(ends):
    one, _ = pair(ends, bound=None)
    assert one.deltas.may_issue(1 << 40)


# ---- receivers that stand still, die, come back --------------------------------------------------


def folds(process):
    return [(int(line[2]), line[3]) for line in process.look() if line[0] == "folded"]


def resident_bytes():
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def test_a_stopped_receiver_costs_one_snapshot_and_no_time(ends):
    size = 6 * PIECE_BYTES
    one, other = ends(Author(0, size)), ends(Process(1, size))
    other.say("connect", 0, one.deltas.address)
    one.deltas.connect({other.actor: other.address})
    one.step()
    until(lambda: len(folds(other)) == 1 and not one.deltas.in_flight, one)
    other.stop()
    before, cpu, told = resident_bytes(), time.process_time(), len(one.traffic)
    for _ in range(200):
        one.step()  # would hang here, if anything waited
    assert resident_bytes() - before < 2 * size
    assert time.process_time() - cpu < 5.0
    assert len(one.traffic) == told + 1, "one snapshot is under way"
    assert len(one.deltas.in_flight) == 200 and not one.deltas.may_issue(202)
    other.go_on()
    until(lambda: not one.deltas.in_flight, one)
    until(lambda: folds(other)[-1][0] == 201, one)
    assert [upto for upto, _ in folds(other)] == [1, 2, 201]
    assert folds(other)[-1][1] == xxhash.xxh3_64_hexdigest(bytes(one.own))


def test_a_receiver_that_died_is_replaced(ends):
    size = 3 * PIECE_BYTES
    one, dead = ends(Author(0, size)), ends(Process(1, size))
    one.deltas.connect({dead.actor: dead.address})
    one.step()
    dead.stop()
    one.step()
    dead.process.kill()
    for _ in range(20):
        one.step()
    heir = ends(Process(2, size))
    heir.say("connect", 0, one.deltas.address)
    one.deltas.connect({heir.actor: heir.address})
    until(lambda: not one.deltas.in_flight, one)
    until(lambda: folds(heir), one)
    assert folds(heir)[-1] == (one.upto, xxhash.xxh3_64_hexdigest(bytes(one.own)))


def test_the_same_actor_at_another_address_is_told_anew(ends):
    one, first = ends(Author(0)), ends(Author(1))
    connect(one, first)
    one.step()
    until(arrived(first, 1), one, first)
    second = ends(Author(1))
    connect(one, second)
    until(arrived(second, 1), one, second)
    second.fold_all()
    until(lambda: not one.deltas.in_flight, one, second)


def test_a_sender_in_a_process_of_its_own(ends):
    one, other = ends(Author(0, 1000)), ends(Process(1, 1000))
    one.deltas.connect({other.actor: other.address})
    other.say("connect", 0, one.deltas.address)
    other.say("step")
    until(arrived(one, 1), one)
    ((rank, upto, data),) = one.fold_all()
    assert (rank, upto, data[:9]) == (1, 1, (1).to_bytes(9, "little"))


def test_closed_at_once_whatever_was_under_way(ends):
    size = 6 * PIECE_BYTES
    other = ends(Process(1, size))
    other.stop()
    one = Author(0, size)
    one.deltas.connect({other.actor: other.address, Actor(2): "tcp://127.0.0.1:1"})
    one.step()
    begun = time.monotonic()
    one.deltas.close()
    assert time.monotonic() - begun < 10.0  # a linger would be for ever
    one.deltas.close()
    assert threads_of_zeromq() == 0


def test_a_forked_worker_does_no_harm(ends):
    """As a data loader's: it ends with all that it inherited, and the parent's channel goes on."""
    one, other = pair(ends)
    worker = multiprocessing.get_context("fork").Process(target=gc.collect)
    worker.start()
    worker.join(60)
    assert worker.exitcode == 0
    one.step()
    until(arrived(other, 1), one, other)


def threads_of_zeromq():
    names = [(t / "comm").read_text() for t in Path("/proc/self/task").iterdir()]
    return sum("ZMQ" in name for name in names)


# ---- what it costs those that never use it -------------------------------------------------------


def test_zeromq_is_not_loaded_before_there_are_cohorts():
    code = (
        "import sys, cascade_runtime, cascade_runtime.job, cascade_runtime.delivery\n"
        "import cascade_runtime.rank.session, cascade_runtime.rank.sums\n"
        "print('zmq' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=100
    )
    assert done.stdout == "False\n", done.stderr


def test_nothing_is_dropped_among_honest_ends(ends):
    one, other = pair(ends, num_bytes=PIECE_BYTES + 1)
    for _ in range(5):
        one.step()
        until(lambda: other.deltas.newest, one, other)
        other.fold_all()
        until(lambda: not one.deltas.in_flight, one, other)
    assert one.deltas.dropped == other.deltas.dropped == Counter()
