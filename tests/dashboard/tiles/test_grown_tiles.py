"""Tiles of a run that grows are those of a fresh look at it, whatever came when and from where it was read."""

from __future__ import annotations

import random
import threading

import numpy as np
import pytest

from cascade_runtime.vocabulary.events import CollectiveDone
from dashboard.story.live_source import LiveRun
from dashboard.tiles import new_rows
from dashboard.tiles.builder import AGAIN_S, Builder
from dashboard.tiles.content import LANES
from tests.dashboard.story.test_live import seal
from tests.dashboard.tiles.sources import (
    RUN,
    T0,
    actor,
    compute,
    cpu,
    entered,
    gpu,
    group,
    put,
)

GROUPS = {"all": range(6), "left": range(3), "right": range(3, 6), "pair": (0, 3), "lone": (4,)}
MS = 10**6


class Clock:
    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


class Watching:
    """Tiles of the run as they grow."""

    def __init__(self, source):
        self.clock, self.source = Clock(), source
        self.builder = Builder(threading.RLock(), None, self.clock)

    def look(self):
        self.builder.update(self.source, threading.Event())

    @property
    def is_whole(self):
        return self.builder._live.new.is_whole


def looked_at_anew(source):
    fresh = Watching(source)
    fresh.look()
    fresh.clock.now += 10.0  # collectives that hang are not waited for any longer
    fresh.look()
    return fresh


def drawn(builder):
    content = builder.shown
    ranks = content.shown_ranks()
    bounds = np.linspace(0, 4000 * MS, 401).astype(np.int64) + T0 - content.t0
    layers = {one.lane: one.values.tolist() for one in content.layers(LANES, ranks, bounds)}
    return layers | {"ranks": ranks, "upto": content.upto_ns + content.t0}


def job(chance):
    """(agent, records) in the order in which they were made: each rank does one thing at a time."""
    now, seq, cseq = (
        dict.fromkeys(range(6), 0),
        dict.fromkeys(range(6), 1),
        dict.fromkeys(GROUPS, 0),
    )
    for rank in range(6):
        yield rank, [actor(rank)]
    yield 6, [actor(6, kind="agent")]
    comms = list(GROUPS)
    chance.shuffle(comms)
    for comm in comms:
        for rank in GROUPS[comm]:
            told = group(rank, len(GROUPS[comm]), comm, seq[rank])
            seq[rank] += 1
            yield rank, [told]
    for number in range(160):
        comm = chance.choice(comms)
        op = chance.choice(["all_reduce", "barrier", "broadcast", "reduce", None])
        root, one = GROUPS[comm][0], cseq[comm]
        cseq[comm] += 1
        arrival = {r: now[r] + chance.randrange(20 * MS) for r in GROUPS[comm]}
        end = max(arrival.values())
        hangs = chance.random() < 0.1
        for rank in GROUPS[comm]:
            if number > 120 and rank == 5:  # it died
                continue
            at, mine = arrival[rank], seq[rank]
            records = [entered(rank, one, at, comm=comm, op=op, seq=mine, root=root)]
            seq[rank] += 1
            if not hangs:
                start = None if chance.random() < 0.7 else T0 + at + chance.randrange(1, 5)
                done_ns = end + chance.randrange(-2, 3) * MS  # hosts' clocks differ
                records.append(
                    CollectiveDone(RUN, rank, 0, mine, mine + 1, start, T0 + max(done_ns, at))
                )
            now[rank] = end + 3 * MS
            for make in (gpu, cpu):
                if chance.random() < 0.2:
                    records.append(make(rank, seq[rank], at, chance.randrange(130)))
                    seq[rank] += 1
            if chance.random() < 0.1:
                records.append(compute(rank, seq[rank], at, at + chance.randrange(9) * MS))
                seq[rank] += 1
            yield rank, records


def arriving(chance):
    """Batches as agents bring them: some late, out of order, cut anywhere."""
    made = [(number, rank, records) for number, (rank, records) in enumerate(job(chance))]
    late = []
    for number, rank, records in made:
        cut = chance.randrange(len(records) + 1)
        for part, wait in ((records[:cut], 0), (records[cut:], chance.choice([0, 0, 5, 60]))):
            slow = 400 if rank == 2 and 100 < number < 300 else 0
            late.append((number + wait + slow + chance.randrange(4), part))
    late.sort(key=lambda pair: pair[0])
    at = 0
    while at < len(late):
        num = chance.choice([1, 4, 20])
        batch = [record for _, part in late[at : at + num] for record in part]
        at += num
        if batch:
            yield batch


@pytest.mark.parametrize("seed", range(6))
def test_what_grew_is_what_a_fresh_look_draws(store, monkeypatch, seed):
    chance = random.Random(seed)
    monkeypatch.setattr(new_rows, "NOTED_ROWS", chance.choice([10, 100, 10**6]))
    watching, num_compared = None, 0
    batches = list(arriving(chance))
    begin = chance.choice([1, len(batches) // 2])  # who follows may begin in the middle
    for number, batch in enumerate(batches, 1):
        put(store, batch)
        source = LiveRun(store, RUN)
        what = chance.random()
        if what < 0.1:
            store.publish(RUN)
        elif what < 0.2:
            seal(store, RUN)
            if chance.random() < 0.5:  # and what was sealed is not at hand any more
                store._catalog.find(RUN).rows._left._left.clear()
                store._catalog.find(RUN).rows._kept = None
        if number < begin or chance.random() < 0.5:
            continue
        watching = watching or Watching(source)
        watching.clock.now += chance.choice([0.1, 0.3, 2.0])
        watching.look()
        if chance.random() < 0.3:
            continue
        for _ in range(2):  # all may be read again in the first, and then waits for completions
            watching.clock.now += 10.0
            watching.look()
        if watching.builder.is_done(source):  # and nothing is held any more
            assert drawn(watching.builder) == drawn(looked_at_anew(source).builder)
            num_compared += 1
    for _ in range(3):
        watching.clock.now += 10 * AGAIN_S
        put(store, [gpu(9, int(watching.clock.now), 1, 50.0)])
        watching.look()
    watching.clock.now += 10.0
    watching.look()
    assert watching.is_whole and not watching.builder.shown.is_off
    seen = drawn(watching.builder)
    assert seen == drawn(looked_at_anew(source).builder)
    assert num_compared > 3
    assert all(np.any(seen[lane]) for lane in LANES)


def test_what_was_laid_too_early_is_read_again(store):
    put(store, [*(actor(r) for r in range(2)), *(group(r, 2) for r in range(2))])
    put(store, [entered(0, 0, 100 * MS), entered(1, 0, 900 * MS)])
    watching = Watching(LiveRun(store, RUN))
    watching.look()
    assert not np.any(drawn(watching.builder)["waited"])
    assert not watching.builder.is_done(
        watching.source
    )  # it waits for completions, but not for long
    watching.clock.now += 2.0
    watching.look()
    early = drawn(watching.builder)
    assert np.any(early["waited"]) and watching.builder.is_done(watching.source)
    put(store, [CollectiveDone(RUN, r, 0, 10, 11, T0 + at * MS) for r, at in ((0, 500), (1, 900))])
    for _ in range(2):
        watching.clock.now += AGAIN_S + 1
        watching.look()
        put(store, [gpu(1, int(watching.clock.now), 1, 50.0)])
        watching.look()
    seen = drawn(watching.builder)
    assert seen == drawn(looked_at_anew(watching.source).builder)
    assert seen["waited"] != early["waited"]


def test_completions_that_say_nothing_new_cost_no_second_reading(store):
    put(store, [*(actor(r) for r in range(2)), *(group(r, 2) for r in range(2))])
    put(store, [entered(0, 0, 100 * MS), entered(1, 0, 900 * MS)])
    watching = Watching(LiveRun(store, RUN))
    for _ in range(2):
        watching.look()
        watching.clock.now += 2.0
    put(store, [CollectiveDone(RUN, r, 0, 10, 11, None, T0 + 901 * MS) for r in range(2)])
    watching.look()
    assert not watching.builder.shown.is_off
    assert not watching.builder.shown._provisional._laid_open
    assert drawn(watching.builder) == drawn(looked_at_anew(watching.source).builder)


def test_what_was_laid_otherwise_is_read_again_though_nothing_comes(store):
    put(store, [*(actor(r) for r in range(3)), group(0, 2)])
    put(store, [entered(0, 0, 100 * MS), entered(1, 0, 900 * MS)])
    watching = Watching(LiveRun(store, RUN))
    for _ in range(2):
        watching.look()
        watching.clock.now += 2.0
    assert np.any(drawn(watching.builder)["waited"])
    put(store, [group(2, 3)])  # it has a third member, who has not entered; and all hang
    watching.look()
    assert watching.builder.shown.is_off and not watching.builder.is_done(watching.source)
    watching.clock.now += AGAIN_S + 1
    for _ in range(2):
        watching.look()
        watching.clock.now += 2.0
    assert watching.builder.is_done(watching.source)
    assert not np.any(drawn(watching.builder)["waited"])


def test_a_wait_laid_early_is_known_until_its_completion_is_read(store, monkeypatch):
    """A look at the newest rows leaves out who lags behind."""
    put(store, [*(actor(r) for r in range(3)), *(group(r, 2) for r in range(2))])
    put(store, [entered(0, 0, 100 * MS), entered(1, 0, 900 * MS)])
    watching = Watching(LiveRun(store, RUN))
    watching.look()
    watching.clock.now += 2.0
    watching.look()
    assert np.any(drawn(watching.builder)["waited"])
    monkeypatch.setattr(new_rows, "rows_after", lambda news, place: None)  # nothing is at hand
    put(store, [gpu(2, 1, 1000 * 1000 * MS, 50.0)])
    watching.clock.now += 1000.0
    watching.look()  # at everything; from here on the newest rows are far ahead
    put(store, [CollectiveDone(RUN, r, 0, 10, 11, T0 + at * MS) for r, at in ((0, 500), (1, 900))])
    watching.clock.now += 0.1
    watching.look()
    assert not watching.is_whole and not watching.builder.shown.is_off
    watching.clock.now += 1000.0
    watching.look()
    assert watching.is_whole and watching.builder.shown.is_off
    for _ in range(2):
        watching.clock.now += AGAIN_S + 1
        watching.look()
    assert drawn(watching.builder) == drawn(looked_at_anew(watching.source).builder)
