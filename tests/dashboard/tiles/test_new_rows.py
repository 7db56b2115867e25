"""Rows of a run that grows come in any order, and each is read once."""

from __future__ import annotations

import random

import pytest

from cascade_runtime.vocabulary.events import CollectiveDone
from dashboard.story.live_source import LiveRun
from dashboard.tiles import new_rows, seen_rows
from dashboard.tiles.new_rows import NewRows
from tests.dashboard.story.test_live import seal
from tests.dashboard.tiles.sources import RUN, T0, actor, entered, gpu, put


def read(reader, source):
    rows = reader.read(source).rows
    return list(zip(rows.rank.tolist(), rows.seq.tolist(), strict=True))


SECOND = 10**9


@pytest.fixture(params=["news", "noted", "sql"])
def how(request, monkeypatch):
    """What comes is at hand; is noted all the time; is never at hand."""
    if request.param == "noted":
        monkeypatch.setattr(new_rows, "NOTED_ROWS", 7)
    if request.param == "sql":
        monkeypatch.setattr(new_rows, "rows_after", lambda news, place: None)


@pytest.mark.parametrize("every_look_is_whole", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_batches_out_of_order_lose_no_row_and_double_none(store, seed, every_look_is_whole, how):
    chance = random.Random(seed)
    now = 0.0
    batches = []
    for rank in range(3):
        for begin in range(1, 60, 5):
            some = [gpu(rank, n, n * 20 * SECOND, 50.0) for n in range(begin, begin + 5)]
            batches.append(some)
    put(store, [actor(r) for r in range(3)])
    source, reader = LiveRun(store, RUN), NewRows(lambda: now)
    found = read(reader, source)
    for at in range(0, len(batches), 4):  # as several connections of a sender bring them
        part = batches[at : at + 4]
        chance.shuffle(part)
        for batch in part:
            put(store, batch)
            now += 1000.0 if every_look_is_whole else 0.4
            found += read(reader, source)
    now += 1000.0
    found += read(reader, source)
    expected = [(r, 0) for r in range(3)] + [(row.rank, row.seq) for b in batches for row in b]
    assert sorted(found) == sorted(expected)


def test_a_hole_that_is_never_filled_does_not_grow_without_end(store, monkeypatch, how):
    monkeypatch.setattr(seen_rows, "MOST_AHEAD", 20)
    put(store, [actor(0)])
    source, reader = LiveRun(store, RUN), NewRows()
    found = read(reader, source)
    for n in range(2, 200):  # seq 1 was lost
        put(store, [gpu(0, n, n * 1000, 50.0)])
        found += read(reader, source)
        assert all(len(seen.ahead) <= 20 for seen in reader._seen._seen.values())
        assert reader._seen.num_noted <= new_rows.NOTED_ROWS + 1
    assert found == [(0, n) for n in range(200) if n != 1]


def test_in_the_news_it_is_known_how_far_each_actor_was_read(store, monkeypatch):
    monkeypatch.setattr(new_rows, "NOTED_ROWS", 7)
    put(store, [actor(0), entered(0, 1, 1000, seq=1)])  # and that one stays open
    source, reader = LiveRun(store, RUN), NewRows()
    found = read(reader, source)
    for n in range(2, 100):
        put(store, [gpu(0, n, n * 1000, 50.0)])
        found += read(reader, source)
        [(_, _, upto)] = reader._seen.upto()
        assert upto + reader._seen.num_noted == n and reader._seen.num_noted <= 8
        assert not any(len(seen.ahead) for seen in reader._seen._seen.values())
    assert reader._seen.open() == [(0, 0, 1)]
    assert found == [(0, n) for n in range(100) if n != 1]


@pytest.mark.parametrize("apart", [1000, SECOND])
def test_what_completes_while_one_is_away_is_read_however_far_others_are(store, monkeypatch, apart):
    """Also where a lost row keeps the marks back, so that what is kept of later rows is cut."""
    monkeypatch.setattr(new_rows, "NOTED_ROWS", 7)
    monkeypatch.setattr(seen_rows, "MOST_AHEAD", 20)
    clock = Clock()
    put(store, [actor(0)])
    source, reader = LiveRun(store, RUN), NewRows(clock)
    found = read(reader, source)
    for n in range(2, 300):  # seq 1 was lost
        put(store, [entered(0, n, n * apart, seq=n) if n == 10 else gpu(0, n, n * apart, 50.0)])
        found += read(reader, source)
    assert reader._seen.upto()[0][2] > 200
    put(store, [CollectiveDone(RUN, 0, 0, 10, 300, None, T0 + 300 * apart)])
    seal(store, RUN)
    store._catalog.find(RUN).rows._left._left.clear()
    store._catalog.find(RUN).rows._kept = None
    for _ in range(3):  # a look at the newest only, and at everything
        found += read(reader, source)
        clock.now += 1000.0
    assert sorted(found) == [(0, n) for n in range(300) if n != 1]
    assert not reader._seen.open()


@pytest.mark.parametrize("seed", range(4))
def test_who_was_away_reads_what_he_missed_once(store, monkeypatch, seed):
    """Some looks find the news at hand, others do not; collectives count when they have completed."""
    monkeypatch.setattr(new_rows, "NOTED_ROWS", 25)
    chance = random.Random(seed)
    clock = Clock()
    put(store, [actor(r) for r in range(3)])
    source, reader = LiveRun(store, RUN), NewRows(clock)
    found, late = read(reader, source), []
    for n in range(1, 150):
        rank = chance.randrange(3)
        at = n * chance.choice([1, SECOND])
        batch = [entered(rank, n, at, seq=n)]
        if chance.random() < 0.9:
            completion = CollectiveDone(RUN, rank, 0, n, n + 1, None, T0 + at + 5)
            (batch if chance.random() < 0.6 else late).append(completion)
        put(store, batch)
        if late and chance.random() < 0.3:
            put(store, [late.pop(chance.randrange(len(late)))])
        what = chance.random()
        if what < 0.1:
            store.publish(RUN)
        elif what < 0.2:  # into a segment, and nobody keeps its rows
            seal(store, RUN)
            store._catalog.find(RUN).rows._left._left.clear()
            store._catalog.find(RUN).rows._kept = None
        clock.now += chance.choice([0.3, 3.0])
        if chance.random() < 0.5:
            found += read(reader, source)
    clock.now += 1000.0
    found += read(reader, source)
    clock.now += 1000.0
    found += read(reader, source)
    waiting = reader.read(source).waiting
    still = set(zip(waiting.rank.tolist(), waiting.seq.tolist(), strict=True))
    stored = source.query_whole(
        "SELECT rank, seq FROM actors UNION ALL SELECT rank, seq FROM collectives"
    )
    every = set(zip(stored["rank"].to_pylist(), stored["seq"].to_pylist(), strict=True))
    assert len(found) == len(set(found)) and not still & set(found)
    assert set(found) | still == every and still


class Clock:
    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now
