from __future__ import annotations

import gc
import json
import threading
import time
import weakref

import numpy as np
import pyarrow as pa
import pytest

from cascade_runtime.vocabulary.errors import BadUsage
from dashboard.story import sources_of_store
from dashboard.story.live_source import LiveRun
from dashboard.tiles import RunTiles, run_tiles, tiles_of
from tests.collector.traces import make_meta
from tests.dashboard.tiles.sources import (
    RUN,
    T0,
    LocalRun,
    actor,
    compute,
    cpu,
    entered,
    gpu,
    group,
    put,
)

WAIT_S = 60.0


def until(true):
    """Wait for a condition."""
    end = time.monotonic() + WAIT_S
    while not true():
        assert time.monotonic() < end, "it did not come true"
        threading.Event().wait(0.005)


def head_of(tiles, lanes=("waited",), a=0, b=10**6, w=4, ranks=None):
    body = tiles.tile(a, b, w, lanes, ranks)
    size = int.from_bytes(body[:4], "little")
    head = json.loads(body[4 : 4 + size])
    data = np.frombuffer(body[4 + size :], np.uint8)
    for layer in head["layers"]:
        end = layer["offset"] + len(layer["rows"]) * layer["cols"]
        layer["data"] = data[layer["offset"] : end].reshape(-1, layer["cols"])
    return head


@pytest.fixture
def start():
    """Makes tiles that are stopped in the end."""
    made = []

    def make(source, **more):
        made.append((RunTiles(source, **more), source))  # tiles do not keep it alive
        return made[-1][0]

    yield make
    for tiles, _ in made:
        tiles.close()


# ---- saved ---------------------------------------------------------------------------------------

ROWS = [
    *(actor(r) for r in range(3)),
    actor(3, "agent"),
    *(group(r, 2) for r in range(2)),
    entered(0, 0, 100_000), entered(1, 0, 400_000),
    entered(1, 1, 500_000), entered(0, 1, 600_000),
]  # fmt: skip


def test_a_saved_run_without_results_shows_what_its_collectives_say(start):
    source = LocalRun(ROWS)
    tiles = start(source)
    assert tiles.wait(WAIT_S) and tiles.building is None
    head = head_of(tiles)
    assert head["source"] == "provisional" and head["upto_ns"] == 600_000
    assert head["layers"][0]["rows"] == [0, 1, 2], "rank 2 has a lane though it never waited"
    assert tiles.window_sums(0, 10**6) == {
        0: (0.0003, 0.0001), 1: (0.0001, 0.0003), 2: (0.0, 0.0),
    }  # fmt: skip
    assert tiles.window_sums(200_000, 300_000)[0] == (0.0001, 0.0)


def test_a_judged_run_shows_what_the_analysis_says(start):
    source = LocalRun(ROWS)
    source.judged = True
    source.results["waits"] = waits(
        [(0, 0, 250_000, None, 1), (1, 1, 90_000, 2, 0), (0, 1, 0, None, None)]
    )
    tiles = start(source)
    assert tiles.wait(WAIT_S)
    head = head_of(tiles)
    assert head["source"] == "judged"
    assert head["upto_ns"] == 600_000, "the run's last row, though no lane shows it"
    assert tiles.window_sums(0, 10**6) == {
        0: (0.00025, 0.0), 1: (0.00009, 0.0), 2: (0.0, 0.00009),
    }  # fmt: skip  # the last arriver of the first is not to blame for it: nobody is
    assert tiles.window_sums(340_000, 360_000)[0] == (0.00001, 0.0)


def waits(rows):
    """(rank, cseq, wait_ns, root_rank, last_rank)"""
    from collector.schema.arrow import arrow_schema

    made = [
        {
            "comm_id": "c", "cseq": c, "rank": r, "incarnation": 0, "wait_ns": w,
            "root_rank": root, "last_rank": last, "is_open": False,
        }
        for r, c, w, root, last in rows
    ]  # fmt: skip
    return pa.Table.from_pylist(made, schema=arrow_schema("waits"))


def test_it_is_judged_when_the_judging_ends(start):
    source = LocalRun(ROWS)
    tiles = start(source)
    assert tiles.wait(WAIT_S)
    before = tiles.version
    source.results["waits"] = waits([(0, 0, 250_000, None, 1)])
    source.judged = True
    assert tiles.wait(WAIT_S)
    assert head_of(tiles)["source"] == "judged" and tiles.version != before
    assert tiles.window_sums(0, 10**6)[0] == (0.00025, 0.0)


def test_what_was_built_is_kept_for_the_next_opening(start, tmp_path):
    (tmp_path / "trace").mkdir()
    (tmp_path / "trace" / "trace.json").write_text("{}")
    sums, queries = [], []
    for _ in range(2):
        source = LocalRun(ROWS)
        source.judged, source.path = True, tmp_path / "trace"
        source.results["waits"] = waits([(0, 0, 250_000, None, 1)])
        tiles = start(source, cache=tmp_path / "cache")
        assert tiles.wait(WAIT_S)
        sums.append(tiles.window_sums(0, 10**6))
        queries.append(source.num_queries)
    assert sums[0] == sums[1] and queries[0] > 0 and queries[1] == 0


def test_parts_of_a_large_run_come_together(start, monkeypatch):
    monkeypatch.setattr("dashboard.tiles.rows.ROWS_A_PART", 3)
    source = LocalRun(ROWS)
    source.results["waits"] = waits([(0, 0, 250_000, None, 1), (1, 1, 90_000, 2, 0)])
    tiles = start(source)
    assert tiles.wait(WAIT_S)
    assert tiles.window_sums(0, 10**6)[0] == (0.0003, 0.0001)
    source.judged = True
    assert tiles.wait(WAIT_S)
    assert tiles.window_sums(0, 10**6)[1] == (0.00009, 0.0)  # nobody is to blame for the first


def test_percent_lanes(start):
    rows = [
        gpu(0, 1, 10, 30.0),
        gpu(1, 1, 20, 90.4),
        cpu(0, 2, 15, 55.0),
        cpu(0, 3, 16, 1.0, unit="load"),
    ]
    tiles = start(LocalRun(rows))
    assert tiles.wait(WAIT_S)
    gpus, cpus = head_of(tiles, ("gpu", "cpu"), 0, 100, 1)["layers"]
    assert gpus["data"].ravel().tolist() == [30, 30, 90, 30, 90, 2]
    assert cpus["data"].ravel().tolist() == [55, 55, 55, 55, 55, 1]


def test_busy_spans_of_an_import_stand_for_the_cpu(start):
    tiles = start(LocalRun([compute(0, 1, 0, 40), compute(0, 2, 60, 100), compute(1, 1, 0, 100)]))
    assert tiles.wait(WAIT_S)
    (layer,) = head_of(tiles, ("cpu",), 0, 100, 2)["layers"]
    assert layer["data"].T.tolist() == [[80, 80, 100, 80, 100, 2]] * 2


def test_a_run_that_cannot_be_read_is_tried_again(start, monkeypatch):
    monkeypatch.setattr(run_tiles, "RETRY_S", 0.01)
    source = LocalRun(ROWS)
    right, fails = source.query, [BadUsage("no", where="sql"), ZeroDivisionError()]

    def query(sql):
        if fails:
            raise fails.pop()
        return right(sql)

    source.query = query
    tiles = start(source)
    assert head_of(tiles)["layers"][0]["cols"] == 4
    assert tiles.wait(WAIT_S) and tiles.window_sums(0, 10**6)[0][0] == 0.0003


def test_the_tiles_of_a_source_live_as_long_as_it():
    source = LocalRun(ROWS)
    assert tiles_of(source) is tiles_of(source)
    assert tiles_of(LocalRun()) is not tiles_of(source)


# ---- live ----------------------------------------------------------------------------------------


class Clock:
    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


def test_nobody_looking_costs_nothing(start):
    source = LocalRun(ROWS, is_live=True)
    clock = Clock()
    tiles = start(source, mono_s=clock)
    assert source.num_queries == 0, "nobody has looked yet"
    tiles.look()
    until(lambda: tiles.building is None)
    clock.now = run_tiles.LOOK_S + 1
    until(lambda: tiles._thread is None)
    asked = source.num_queries
    source.rows += [entered(r, 2, 700_000 + r) for r in range(2)]
    assert source.num_queries == asked
    tiles.look()
    until(lambda: tiles.window_sums(0, 10**6)[0][0] > 0.0003)


def test_rows_of_a_store_are_each_read_once_and_late_ones_are_not_lost(start, store):
    store.put_meta(make_meta(run_id=RUN, created_ns=T0, ended_ns=None, clean_end=None))
    put(store, [actor(r) for r in range(3)] + [group(r, 3) for r in range(3)])
    source = LiveRun(store, RUN)
    tiles = start(source)
    assert tiles.wait(WAIT_S)
    expected = 0.0
    for lap in range(4):
        begin = lap * 1_000_000
        some = [entered(r, lap, begin + 1000 * r) for r in (0, 1)]
        put(store, some)
        before = tiles.version
        assert tiles.wait(WAIT_S)
        sums = tiles.window_sums(0, 10**9)
        assert sums[0][0] + sums[1][0] == pytest.approx(expected)
        if lap % 2:  # rank 2's agent was slow: two at once, long after the others'
            put(store, [entered(2, n, n * 1_000_000 + 500_000) for n in (lap - 1, lap)])
            expected += 2 * (500_000 + 499_000) / 1e9
            until(lambda expected=expected: _waited(tiles) == pytest.approx(expected))
            assert tiles.version != before
        if lap == 1:
            store.publish(RUN)  # into Parquet; nothing may come twice
    assert tiles.window_sums(0, 10**9)[2] == (0.0, pytest.approx(expected))
    assert head_of(tiles)["source"] == "provisional"


def _waited(tiles):
    sums = tiles.window_sums(0, 10**9)
    return sums[0][0] + sums[1][0]


def test_tiles_can_be_drawn_while_rows_come(start):
    source = LocalRun(ROWS, is_live=True)
    tiles = start(source)
    assert tiles.wait(WAIT_S)
    seen, stop = [], threading.Event()

    def draw():
        while not stop.is_set():
            seen.append(head_of(tiles, w=64)["layers"][0]["data"].sum())

    drawing = threading.Thread(target=draw)
    drawing.start()
    for n in range(2, 30):
        source.rows += [entered(r, n, 10**6 + n * 10_000 + r * 5_000) for r in range(2)]
    until(lambda: tiles.window_sums(0, 10**7)[1][1] > 0.00043)
    stop.set()
    drawing.join(WAIT_S)
    assert seen


def test_a_run_that_ended_is_brought_up_to_date_when_it_is_judged_though_nobody_zooms(start):
    source = LocalRun(ROWS)
    tiles = start(source)
    assert tiles.wait(WAIT_S)
    assert head_of(tiles)["source"] == "provisional" and tiles.keep_up(grows=False) is None
    source.results["waits"] = waits([(0, 0, 250_000, None, 1)])
    source.judged = True
    before = tiles.version
    assert tiles.keep_up(grows=False) is not None, "the page goes on asking"
    until(lambda: tiles.keep_up(grows=False) is None)
    assert tiles.version != before and head_of(tiles)["source"] == "judged"


def test_sums_from_before_the_judging_say_that_something_is_still_read(start):
    """A page must not take them for the last word, nor wait long for that one."""
    source = LocalRun(ROWS)
    tiles = start(source)
    assert tiles.wait(WAIT_S) and tiles.window(0, 10**6).building is None
    source.results["waits"] = waits([(0, 0, 250_000, None, 1)])
    source.judged = True
    seen = []
    until(lambda: seen.append(tiles.window(0, 10**6)) or seen[-1].building is None)
    assert [one.kind for one in seen[:1]] == ["provisional"] and seen[0].building is not None
    assert all(one.building is not None for one in seen if one.kind == "provisional")
    assert seen[-1].kind == "judged"
    assert head_of(tiles)["building"] is None


def test_what_was_judged_while_it_was_read_does_not_wait_for_as_long_as_reading_took(
    start, monkeypatch
):
    """Reading a saved run keeps nobody from anything: no pause is due, however long it took."""
    source, clock, pauses = LocalRun(ROWS), Clock(), []
    source.results["waits"] = waits([(0, 0, 250_000, None, 1)])
    tiles = start(source, mono_s=clock)
    update = tiles._builder.update

    def slow(*how):
        update(*how)
        clock.now += 20
        source.judged = True  # meanwhile

    monkeypatch.setattr(tiles._builder, "update", slow)
    wait = tiles._stopping.wait
    monkeypatch.setattr(tiles._stopping, "wait", lambda s: pauses.append(s) or wait(min(s, 0.01)))
    tiles.look()
    until(lambda: tiles._thread is None)
    assert head_of(tiles)["source"] == "judged"
    assert pauses and max(pauses) <= run_tiles.PAUSE_S


def test_times_count_from_the_t0_of_who_asks(start, store):
    """Rows came before the job's trace.json, and an earlier row after that."""
    put(store, [actor(r, at=5_000_000) for r in range(2)] + [group(r, 2) for r in range(2)])
    put(store, [entered(r, 0, 10_000_000 + 1_000_000 * r) for r in range(2)])
    source = LiveRun(store, RUN)
    tiles = start(source)
    assert tiles.wait(WAIT_S)
    for created in (T0 - 3_000_000, T0 - 7_000_000):
        store.put_meta(make_meta(run_id=RUN, created_ns=created, ended_ns=None, clean_end=None))
        assert tiles.wait(WAIT_S)
        begin = 10_000_000 + T0 - created
        for t0, shift in ((None, 0), (created, 0), (T0, T0 - created)):
            a = begin - shift
            assert tiles.window(a, a + 10**6, t0).by_rank[0] == (0.001, 0.0)
            assert tiles.window(a - 10**6, a, t0).by_rank[0] == (0.0, 0.0)
            body = tiles.tile(a, a + 10**6, 1, ["waited"], [0], t0)
            head = json.loads(body[4 : 4 + int.from_bytes(body[:4], "little")])
            assert head["t0_ns"] == str(T0 if t0 == T0 else created)
            assert head["upto_ns"] == a + 10**6 and body[-8] == 255


def test_a_live_run_that_nobody_holds_leaves_no_rows_behind(store):
    put(store, [actor(0), entered(0, 0, 1_000)])
    source = LiveRun(store, RUN)
    tiles = tiles_of(source)
    assert tiles.wait(WAIT_S)
    gone, thread = weakref.ref(source), tiles._thread
    del source
    gc.collect()
    until(lambda: gone() is None)
    if thread is not None:
        thread.join(WAIT_S)
        assert not thread.is_alive()


def test_sources_that_close_end_what_reads_in_the_background(store):
    put(store, [actor(0), entered(0, 0, 1_000)])
    sources = sources_of_store(store)
    source = sources.get(RUN)
    tiles = tiles_of(source)
    assert tiles.wait(WAIT_S)
    sources.close()
    assert tiles._thread is None
    tiles.look()
    assert tiles._thread is None
