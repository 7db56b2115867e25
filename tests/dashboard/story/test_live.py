"""A live run's story, told while rows come, is in the end the story of its trace."""

from __future__ import annotations

import threading
from pathlib import Path

import msgspec
import pytest

from cascade_runtime.vocabulary.schema import EVENT_TABLES
from collector.hot import hot_rows
from collector.hot.options import StoreOptions
from collector.schema.rows import table_to_events
from collector.storage._interface import NoSuchRun
from collector.storage.embedded import EmbeddedStore
from collector.trace.samples import sample_traces
from collector.trace.trace_folder import open_trace
from collector.wire.decode import MSGPACK, decode
from collector.wire.records import encode_msgpack
from dashboard.live.run_watch import RunWatch
from dashboard.story import sources_of_store
from dashboard.story.teller import Teller
from dashboard.story.trace_source import TraceRun
from tests.dashboard.story.kit import DEADLINE_S, check


class Clock:
    """Stands still until it is moved: what is asked takes no time, and pauses end when a test says so."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture
def store(tmp_path):
    opened = EmbeddedStore(tmp_path / "data", StoreOptions(publish_every_s=3600.0))
    yield opened
    opened.close()


def rows_of(name):
    with open_trace(sample_traces()[name]) as trace:
        rows = [r for table in EVENT_TABLES for r in table_to_events(table, trace.table(table))]
        return trace.meta, sorted(rows, key=lambda r: (r.wall_ns, r.rank, r.seq))


def feed(store, rows):
    store.append(decode(MSGPACK, encode_msgpack(rows))).result(20)


def seal(store, run_id):
    """Bring all rows into segments, as when the memory is crowded."""
    run = store._catalog.find(run_id)
    store._publisher.publish(run, whole=True)


def begun(meta):
    return msgspec.structs.replace(meta, ended_ns=None, clean_end=None)


PARTS = ("actors", "ranks", "missing", "groups", "regimes", "walks", "marks", "debts", "silent", "gaps",
         "verdict", "violations", "waits", "incidents", "t0_ns", "t1_ns", "measured")  # fmt: skip


@pytest.mark.parametrize("name", ["clean", "kill-one"])
def test_told_in_pieces_it_is_the_trace_in_the_end(store, name):
    meta, rows = rows_of(name)
    store.put_meta(begun(meta))
    source = sources_of_store(store).get(meta.run_id)
    clock = Clock()
    teller = Teller(source, clock)
    waiting = teller.story().story
    assert (waiting.run.state, waiting.verdict.state) == ("waiting", "none")
    assert waiting.verdict.sentence == "Waiting: no row has come yet."
    root = store.run(meta.run_id).path
    versions = {waiting.version}
    piece = len(rows) // 4 + 1
    for begin in range(0, len(rows), piece):
        feed(store, rows[begin : begin + piece])
        clock.now += 1000.0
        told = teller.story()
        versions.add(told.version)
        check(told.story)
        assert told.story.run.state == "live"
        assert told.story.verdict.state == "judging"
        assert told.story.verdict.sentence.startswith("Running: ")
        assert told.story.run.num_rows == min(begin + piece, len(rows))
        pulse = teller.pulse()
        assert pulse["version"] == told.version and pulse["state"] == "live"
        if begin == piece:
            store.publish(meta.run_id)
            assert RunWatch(Path(root)).judge()
            clock.now += 1000.0
            assert "no promise broken so far" in teller.story().story.verdict.sentence
    assert len(versions) == 5
    store.put_meta(meta)
    store.publish(meta.run_id)
    clock.now += 1000.0
    assert teller.story().story.verdict.state == "judging"  # it ended, and was judged in the middle
    RunWatch(Path(root)).judge()
    clock.now += 1000.0
    live = teller.story().story
    run = TraceRun(name)
    assert run.wait_until_judged(DEADLINE_S)
    saved = Teller(run).story().story
    run.close()
    for part in PARTS:
        assert msgspec.to_builtins(getattr(live, part)) == msgspec.to_builtins(
            getattr(saved, part)
        ), part
    here, there = msgspec.to_builtins(live.run), msgspec.to_builtins(saved.run)
    assert here | {"judged_ns": 0} == there | {"judged_ns": 0}


def test_what_was_read_a_moment_ago_is_brought_up_to_date(store):
    """The last rows come within a pause: nothing more comes, and the story is told to its end."""
    meta, rows = rows_of("clean")
    store.put_meta(begun(meta))
    clock = Clock()
    teller = Teller(sources_of_store(store).get(meta.run_id), clock)
    feed(store, rows[:1000])
    first = teller.story()
    feed(store, rows[1000:])
    assert teller.story() is first  # the pause
    assert teller.pulse()["version"] != first.version
    clock.now += 100.0
    assert teller.story().story.t1_ns == rows[-1].wall_ns - int(first.story.t0_ns)
    assert teller.story().version == teller.version()


def test_runs_that_are_not_there(store):
    sources = sources_of_store(store)
    with pytest.raises(NoSuchRun):
        sources.get("nothing")
    meta, rows = rows_of("clean")
    feed(store, rows[:10])
    assert sources.get(meta.run_id) is sources.get(meta.run_id)
    store.drop(meta.run_id)
    with pytest.raises(NoSuchRun):
        sources.get(meta.run_id)


def test_rows_after_a_judgement_of_a_silent_run_are_not_called_judged(store):
    """A run that fell silent was judged as a whole, and then it went on."""
    meta, rows = rows_of("kill-one")
    store.put_meta(begun(meta))
    source = sources_of_store(store).get(meta.run_id)
    clock = Clock()
    teller = Teller(source, clock)
    half = len(rows) // 2
    feed(store, rows[:half])
    store.publish(meta.run_id)
    watch = RunWatch(Path(store.run(meta.run_id).path), mono_s=clock)
    assert watch.judge() and watch.is_preliminary and not source.is_judged_whole()
    clock.now += 1000.0
    assert watch.judge() and source.is_judged_whole()
    told = teller.story().story
    assert told.verdict.judged_upto_ns == told.t1_ns
    feed(store, rows[half : half + 500])  # in the journal alone
    clock.now += 1000.0
    assert not source.is_judged_whole()
    told = teller.story().story
    assert told.verdict.state in ("judging", "violated")
    assert told.verdict.judged_upto_ns < told.t1_ns
    store.publish(meta.run_id)  # in the folder, where nobody has judged it
    assert not source.is_judged_whole()
    assert watch.judge() and not source.is_judged_whole()
    clock.now += 1000.0
    assert watch.judge() and source.is_judged_whole()


@pytest.mark.parametrize("at_hand", [True, False])
def test_a_late_spool_and_the_first_row_of_a_table_are_seen_though_nothing_more_comes(
    store, monkeypatch, at_hand
):
    """The last batch holds rows of minutes ago, and a table's first ones.

    Rows that are not at hand any more are looked for by quick looks, which leave some out.
    """
    if not at_hand:
        monkeypatch.setattr(hot_rows, "FOLLOWED_S", 0.0)
    meta, rows = rows_of("kill-one")
    late = [r for r in rows if r.rank == 2]
    others = [r for r in rows if r.rank != 2 and type(r).__name__ != "Debt"]
    debts = [r for r in rows if r.rank != 2 and type(r).__name__ == "Debt"]
    assert late and debts
    far = [msgspec.structs.replace(r, wall_ns=r.wall_ns + 180 * 10**9) for r in others[-400:]]
    store.put_meta(begun(meta))
    clock = Clock()
    teller = Teller(sources_of_store(store).get(meta.run_id), clock)
    feed(store, late[:5] + others[:-400] + far[:200])
    assert not teller.story().story.debts
    clock.now += 1.5
    feed(store, far[200:] + late[5:] + debts)
    if not at_hand:
        seal(store, meta.run_id)
    clock.now += 1.0
    told = teller.story()
    if not at_hand:
        assert told.version != teller.version()  # it says itself that it is not all
        clock.now += 10.0
        told = teller.story()
    assert told.version == teller.version()
    (actor,) = [a for a in told.story.actors if (a.rank, a.incarnation) == (2, 0)]
    last = max(late, key=lambda r: r.seq)
    assert actor.last_ns == last.wall_ns - int(told.story.t0_ns)
    assert told.story.debts


def test_whoever_asks_while_it_is_told_gets_what_was_told_before(store, monkeypatch):
    meta, rows = rows_of("clean")
    store.put_meta(begun(meta))
    clock = Clock()
    source = sources_of_store(store).get(meta.run_id)
    teller = Teller(source, clock)
    feed(store, rows[:1000])
    first = teller.story()
    feed(store, rows[1000:])
    clock.now += 100.0
    right, asked, go_on = teller._keeper.facts, threading.Event(), threading.Event()

    def facts():
        asked.set()
        assert go_on.wait(DEADLINE_S)
        return right()

    monkeypatch.setattr(teller._keeper, "facts", facts)
    telling = threading.Thread(target=teller.story)
    telling.start()
    assert asked.wait(DEADLINE_S)
    assert teller.story() is first  # at once
    go_on.set()
    telling.join(DEADLINE_S)
    assert teller.story() is not first
