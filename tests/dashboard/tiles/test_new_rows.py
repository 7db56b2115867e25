"""Rows of a run that grows come in any order, and each is read once."""

from __future__ import annotations

import random

import pytest

from dashboard.story.live_source import LiveRun
from dashboard.tiles import new_rows
from dashboard.tiles.new_rows import NewRows
from tests.dashboard.tiles.sources import RUN, actor, gpu, put


def read(reader, source):
    rows = reader.read(source)
    return list(zip(rows.rank.tolist(), rows.seq.tolist(), strict=True))


SECOND = 10**9


@pytest.mark.parametrize("every_look_is_whole", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_batches_out_of_order_lose_no_row_and_double_none(store, seed, every_look_is_whole):
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


def test_a_hole_that_is_never_filled_does_not_grow_without_end(store, monkeypatch):
    monkeypatch.setattr(new_rows, "MOST_AHEAD", 20)
    put(store, [actor(0)])
    source, reader = LiveRun(store, RUN), NewRows()
    found = read(reader, source)
    for n in range(2, 200):  # seq 1 was lost
        put(store, [gpu(0, n, n * 1000, 50.0)])
        found += read(reader, source)
        assert all(len(seen.ahead) <= 20 for seen in reader._seen.values())
    assert found == [(0, n) for n in range(200) if n != 1]
