"""Questions while rows come in: what is converted in the background is what an answer holds anyway."""

from __future__ import annotations

import gc
import itertools
import random
import threading
import time
import weakref
from contextlib import suppress

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cascade_runtime.vocabulary.errors import BadUsage
from collector.hot import converter, hot_rows, left_rows
from collector.hot.asking import Asking
from collector.hot.open_rows import OpenRows
from collector.schema.arrow import arrow_schema
from collector.schema.rows import table_to_events
from collector.trace.trace_writer import write_results
from tests.collector.store.rows import (
    RUN,
    batch,
    check,
    done,
    entered,
    in_order,
    queried,
    rows_of,
    send,
    step,
    steps,
)

DEADLINE_S = 20.0


def hot(store, run=RUN):
    return store._catalog.find(run).rows


def until(holds):
    """Wait for a condition."""
    end = time.monotonic() + DEADLINE_S
    while not holds():
        assert time.monotonic() < end
        threading.Event().wait(0.005)


def mixed(chance, seq, waiting):
    """A batch of steps, collectives and completions of collectives of any batch before."""
    records = []
    for at in range(seq, seq + chance.randrange(2, 9)):
        if chance.random() < 0.4:
            records.append(entered(at))
            waiting.append(at)
        else:
            records.append(step(at))
    seq += len(records)
    while waiting and chance.random() < 0.5:
        records.append(done(waiting.pop(chance.randrange(len(waiting)))))
    return records, seq


@pytest.fixture
def by_hand(monkeypatch):
    """Nothing is converted in the background."""
    monkeypatch.setattr(converter, "EVERY_S", 3600.0)


@pytest.mark.parametrize("seed", range(4))
def test_answers_do_not_depend_on_when_rows_are_converted(embedded, by_hand, seed):
    chance = random.Random(seed)
    store = embedded(segment_rows=40)
    sent, waiting, seq = [], [], 0
    for _ in range(40):
        records, seq = mixed(chance, seq, waiting)
        send(store, *records)
        sent += records
        what = chance.random()
        if what < 0.4:
            hot(store).convert_waiting()
            assert hot(store).num_waiting == 0
        elif what < 0.5:
            store.publish()
        elif what < 0.7:
            assert queried(store) == rows_of(sent)
    check(store, sent)


def test_a_completion_after_conversion_comes_the_short_way(embedded, by_hand, monkeypatch):
    store = embedded()
    send(store, entered(0), step(1))
    hot(store).convert_waiting()
    sent = batch([done(0), step(2)])
    monkeypatch.setattr(sent, "_make", None)  # a record of it would have to be made
    assert store.append(sent).result(DEADLINE_S).num_rows == 2
    assert send(store, done(0)).num_duplicates == 1
    check(store, [entered(0), step(1), done(0), step(2)])


def test_rows_are_converted_soon_while_somebody_asks(embedded, monkeypatch):
    monkeypatch.setattr(converter, "EVERY_S", 0.01)
    store = embedded()
    send(store, *steps(0, 9))
    assert queried(store) == steps(0, 9)
    send(store, *steps(10, 19))
    until(lambda: hot(store).num_waiting == 0)
    assert queried(store) == steps(0, 19)


def test_few_rows_wait_while_nobody_asks(embedded, monkeypatch):
    monkeypatch.setattr(converter, "EVERY_S", 0.0)
    monkeypatch.setattr(converter, "LEAST_ROWS", 15)
    store = embedded()
    send(store, *steps(0, 9))
    assert hot(store).num_waiting == 10
    send(store, *steps(10, 19))
    until(lambda: hot(store).num_waiting == 0)


def test_a_question_sees_what_was_acknowledged_before_it(embedded, monkeypatch):
    """Under load, with everything at work that moves rows from one place to another."""
    monkeypatch.setattr(converter, "EVERY_S", 0.002)
    store = embedded(segment_rows=200, give_way_s=0.005)
    sent, acked, stopping, problems = [], [0], threading.Event(), []

    def feed():
        chance, waiting, seq = random.Random(1), [], 0
        while not stopping.is_set():
            records, seq = mixed(chance, seq, waiting)
            send(store, *records)
            sent.extend(records)
            acked[0] = seq

    def publish():
        while not stopping.wait(0.01):
            store.publish()

    def guarded(work):
        try:
            work()
        except Exception as error:
            problems.append(error)

    threads = [threading.Thread(target=guarded, args=(work,)) for work in (feed, publish)]
    for thread in threads:
        thread.start()
    try:
        until(lambda: acked[0] or problems)
        for number in range(60):
            least = acked[0]
            both = "(SELECT seq FROM steps UNION ALL SELECT seq FROM collectives)"
            sql = f"SELECT count(*), count(DISTINCT seq), max(seq) FROM {both} WHERE {number} >= 0"
            (row,) = store.query(sql, RUN).to_pylist()
            num_rows, num_distinct, last = row.values()
            assert num_rows == num_distinct == last + 1 >= least
    finally:
        stopping.set()
        for thread in threads:
            thread.join()
    assert not problems
    check(store, sent)


def test_small_chunks_are_put_together(embedded, by_hand):
    store = embedded(segment_rows=120)
    for number in range(50):
        send(store, *steps(2 * number, 2 * number + 1))
        store.publish()
    chunks = hot(store).snapshot().tables["steps"]
    assert sum(rows.num_rows for rows in chunks) == 100
    assert len(chunks) <= 7
    send(store, *steps(100, 129))
    check(store, steps(0, 129))  # makes a segment of them
    assert "steps" not in hot(store).snapshot().tables


def test_who_takes_an_older_answer_converts_nothing(embedded, by_hand, monkeypatch):
    store = embedded()
    send(store, *steps(0, 9))
    hot(store).convert_waiting()
    send(store, *steps(10, 19))

    def fails():
        raise AssertionError("nothing is to be converted")

    with monkeypatch.context() as patch:
        patch.setattr(hot(store), "_convert", fails)
        with hot(store)._converting:  # nor waited for
            sql = "SELECT count(*) AS n FROM steps"
            assert store.query(sql, RUN, max_age_s=DEADLINE_S).to_pylist() == [{"n": 10}]
    assert queried(store) == steps(0, 19)


def test_rows_that_were_sealed_are_at_hand_for_a_follower_for_a_while(
    embedded, by_hand, monkeypatch
):
    monkeypatch.setattr(left_rows, "LEFT_S", 600.0)  # however slow the machine is
    monkeypatch.setattr(hot_rows, "LEFT_S", 600.0)
    store = embedded(segment_rows=1)
    send(store, *steps(0, 9))
    place = store.news(RUN).place
    send(store, *steps(10, 19))
    store.publish()
    assert "steps" not in hot(store).snapshot().tables
    (rows,) = store.news(RUN).after(place, "steps")
    assert rows["seq"].to_pylist() == list(range(10, 20))
    monkeypatch.setattr(left_rows, "LEFT_S", 0.0)
    assert store.news(RUN).after(place, "steps") is None  # whoever follows asks for all of them
    assert not hot(store)._left.tables()
    monkeypatch.setattr(left_rows, "FOLLOWED_S", 0.0)
    send(store, *steps(20, 29))
    store.publish()
    assert not hot(store)._left.tables()  # nobody follows: nothing is kept
    check(store, steps(0, 29))


def test_sealed_rows_are_counted_and_do_not_outlive_the_last_follower(
    embedded, by_hand, monkeypatch
):
    monkeypatch.setattr(left_rows, "LEFT_S", 600.0)  # however slow the machine is
    monkeypatch.setattr(hot_rows, "LEFT_S", 600.0)
    store = embedded(segment_rows=1)
    send(store, *steps(0, 9))
    store.news(RUN)
    send(store, *steps(10, 19))
    store.publish()
    store.news(RUN)
    gone = weakref.ref(hot(store)._kept.snapshot.left["steps"][0])
    assert hot(store).num_rows == 0 and hot(store).num_bytes >= gone().nbytes > 0
    monkeypatch.setattr(left_rows, "LEFT_S", 0.0)
    monkeypatch.setattr(hot_rows, "LEFT_S", 0.0)
    store._publisher.publish_all()  # as it does all the time, and nothing came
    gc.collect()
    assert gone() is None and hot(store).num_bytes == 0
    check(store, steps(0, 19))


def test_open_rows_follow_their_list():
    rows = OpenRows()
    a, b, c = entered(1), entered(2), entered(3)
    changed = entered(2, completed=None)
    for now in ([], [a, b], [a, b, c], [a, changed, c], [c], [b, a], []):
        assert in_order(table_to_events("collectives", rows.table(now))) == in_order(now)


# ---- sessions ------------------------------------------------------------------------------------


def test_a_session_knows_new_columns_of_results(embedded):
    store = embedded()
    send(store, *steps(0, 1))
    store.publish()
    root = hot_root(store)
    results = {"waits": pa.table({"run_id": [RUN], "rank": pa.array([3], pa.int32())})}
    (root / "results" / "waits").mkdir(parents=True)
    file = root / "results" / "waits" / "rows.parquet"
    pq.write_table(results["waits"], file)
    for more in (None, "extra", "another"):
        if more:
            pq.write_table(results["waits"].append_column(more, pa.array([7])), file)
        found = store.query("SELECT * FROM waits", RUN).to_pylist()
        assert found == [{"run_id": RUN, "rank": 3, **({more: 7} if more else {})}]


def test_a_session_follows_results_that_are_written_again(embedded):
    store = embedded()
    send(store, *steps(0, 1))
    store.publish()
    sql = "SELECT count(*) AS n FROM regime_timeline"
    for number in (0, 2, 1):
        held = {"group_id": "world", "rank": 0, "incarnation": 0, "epoch": 0, "regime": "STRONG"}
        row = {**held, "start_ns": 0, "end_ns": 1, "run_id": RUN}
        rows = pa.Table.from_pylist([row] * number, arrow_schema("regime_intervals"))
        write_results(hot_root(store), {"regime_intervals": rows})
        assert store.query(sql, RUN).to_pylist() == [{"n": number}]


def hot_root(store):
    return store._catalog.find(RUN).files.root


def test_sessions_do_not_mix_runs(embedded):
    store = embedded()
    for run, num in (("run-1", 2), ("run-2", 5)):
        send(store, *steps(0, num - 1, run=run))
    sql = "SELECT count(*) AS n FROM steps"
    for run, num in (("run-1", 2), ("run-2", 5), (None, 7), ("run-1", 2)) * 2:
        assert store.query(sql, run).to_pylist() == [{"n": num}]
    assert store.query("SELECT count(*) AS n FROM collectives", None).to_pylist() == [{"n": 0}]


@pytest.mark.parametrize(
    "sql",
    ["CREATE TABLE kept AS SELECT 1", "SET threads = 1", "SELECT 1; SELECT 2", "", "SELECT x"],
)
def test_a_statement_leaves_nothing_behind(embedded, sql):
    store = embedded()
    send(store, *steps(0, 1))
    with suppress(BadUsage):
        store.query(sql, RUN)
    with pytest.raises(BadUsage, match="kept"):
        store.query("SELECT * FROM kept", RUN)
    found = store.query("SELECT view_name FROM duckdb_views() WHERE NOT internal", RUN)
    assert found.num_rows == 0
    assert queried(store) == steps(0, 1)


def test_a_database_that_broke_is_not_used_again(embedded, monkeypatch):
    store = embedded()
    send(store, *steps(0, 9))
    assert queried(store) == steps(0, 9)
    (broken,) = store._live_sql._idle

    def fails(*_):
        raise duckdb.FatalException("the database has been invalidated")

    monkeypatch.setattr(broken, "_answer", fails)
    with pytest.raises(BadUsage, match="invalidated"):
        store.query("SELECT 1", RUN)
    assert queried(store) == steps(0, 9)
    assert broken not in store._live_sql._idle


def test_questions_at_once(embedded):
    store = embedded()
    send(store, *steps(0, 99))
    found = []

    def ask(number):
        sql = f"SELECT count(*) AS n FROM steps WHERE seq < {number}"
        found.extend((number, store.query(sql, RUN).to_pylist()[0]["n"]) for _ in range(5))

    threads = [threading.Thread(target=ask, args=(10 * n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 40
    assert all(number == seen for number, seen in found)


# ---- giving way ----------------------------------------------------------------------------------


def test_work_gives_way_to_a_question_and_not_for_long():
    asking = Asking(0.05)
    assert not asking.lately
    with asking.question():
        begin = time.monotonic()
        asking.give_way()
        assert time.monotonic() - begin >= 0.04
    assert asking.lately
    patient = Asking(DEADLINE_S)
    asked = threading.Event()

    def ask():
        with patient.question():
            asked.set()

    thread = threading.Thread(target=ask)
    thread.start()
    asked.wait(DEADLINE_S)
    begin = time.monotonic()
    patient.give_way()  # until the answer, not until the deadline
    assert time.monotonic() - begin < DEADLINE_S / 2
    thread.join()


def test_rows_come_in_during_a_question_without_end(embedded):
    store = embedded(give_way_s=0.01)
    with store._asking.question():
        send(store, *steps(0, 9))
        store.publish()
    check(store, steps(0, 9))


def test_nothing_gives_way_to_a_question_that_nobody_waits_for(embedded, monkeypatch):
    store = embedded(give_way_s=DEADLINE_S)
    send(store, *steps(0, 9))
    right, waited = store._live_sql.query, []

    def query(*args):
        begin = time.monotonic()
        send(store, *steps(10, 19))  # commits while the question is being answered
        waited.append(time.monotonic() - begin)
        return right(*args)

    monkeypatch.setattr(store._live_sql, "query", query)
    sql = "SELECT count(*) AS n FROM steps"
    assert store.query(sql, RUN, background=True).to_pylist() == [{"n": 20}]
    assert waited[0] < DEADLINE_S / 2
    assert store._asking.lately  # rows are made ready for the next one all the same


def test_rows_that_cannot_be_converted_are_told_once_and_tried_more_seldom(
    embedded, monkeypatch, caplog
):
    monkeypatch.setattr(converter, "EVERY_S", 0.002)
    store = embedded()
    tries = []

    def fails():
        tries.append(time.monotonic())
        raise ValueError("a row that is no row")

    monkeypatch.setattr(hot_of(store), "convert_waiting", fails)
    with store._asking.question():
        pass
    begin, seq = time.monotonic(), 0
    while len(tries) < 5:
        assert time.monotonic() - begin < DEADLINE_S
        send(store, step(seq))
        seq += 1
    pauses = [b - a for a, b in itertools.pairwise(tries)]
    assert all(pause >= 0.002 * 2 ** (n + 1) for n, pause in enumerate(pauses))
    told = [r for r in caplog.records if "cannot be converted" in r.getMessage()]
    assert len(told) == 1


def hot_of(store):
    send(store, step(10**6))
    return hot(store)
