"""What every store does, whatever it is made of: one suite for all plug-ins of collector.storage."""

from __future__ import annotations

import random
import threading
import time

import pytest

from cascade_runtime.vocabulary.errors import BadUsage
from collector.storage._interface import (
    Mark,
    NoSuchRun,
    Receipt,
    RunDropped,
    StoreDown,
)
from collector.wire.batch import BadBatch
from tests.collector.store.rows import (
    RUN,
    arrow_batch,
    batch,
    check,
    done,
    entered,
    gap,
    in_folder,
    json_batch,
    queried,
    rows_of,
    send,
    sent_meta,
    step,
    steps,
)


def marks(store, run=RUN):
    return {(mark.rank, mark.incarnation): mark.seq for mark in store.marks(run)}


def test_a_batch_is_acknowledged_with_marks(opener):
    store = opener()
    assert send(store, *steps(0, 4)) == Receipt(5, 0, [Mark(RUN, 0, 0, 4)])
    check(store, steps(0, 4))


def test_a_batch_sent_again_is_dropped_and_acknowledged_as_before(opener):
    store = opener()
    sent = [*steps(0, 4), entered(5), done(5), *steps(0, 3, rank=1)]
    first = send(store, *sent)
    again = send(store, *sent)
    assert again == Receipt(0, len(sent), first.marks)
    check(store, sent)


def test_partial_duplicates_bring_what_is_new(opener):
    store = opener()
    send(store, *steps(0, 4))
    assert send(store, *steps(3, 6)) == Receipt(2, 2, [Mark(RUN, 0, 0, 6)])
    check(store, steps(0, 6))


def test_the_order_of_batches_does_not_matter(opener):
    store = opener()
    sent = [r for seq in range(40) for r in (entered(seq), done(seq))] + steps(40, 80)
    batches = [sent[i : i + 7] for i in range(0, len(sent), 7)] * 2
    random.Random(3).shuffle(batches)
    for records in batches:
        send(store, *records)
    assert marks(store) == {(0, 0): 80}
    check(store, sent)


def test_several_runs_and_actors_in_one_batch(opener):
    store = opener()
    sent = [step(0), step(0, run="run-2"), step(1), step(0, rank=1), step(0, incarnation=1)]
    receipt = send(store, *sent)
    assert receipt.num_rows == 5
    assert set(receipt.marks) == {
        Mark(RUN, 0, 0, 1), Mark(RUN, 1, 0, 0), Mark(RUN, 0, 1, 0), Mark("run-2", 0, 0, 0),
    }  # fmt: skip
    check(store, sent)
    check(store, sent, "run-2")
    assert queried(store, None) == rows_of(sent)


def test_the_three_body_forms_bring_the_same(opener):
    store = opener()
    rows = [*steps(0, 4), gap(5, 5, 7), *steps(8, 9)]
    for run, make in (("a", batch), ("b", json_batch), ("c", arrow_batch)):
        mine = [type(row)(run, *list(_fields(row))[1:]) for row in rows]
        receipt = store.append(make(mine)).result(20)
        assert receipt == Receipt(8, 0, [Mark(run, 0, 0, 9)])
        assert store.append(make(mine)).result(20).num_duplicates == 8
        check(store, mine, run)


def _fields(row):
    return (getattr(row, name) for name in row.__struct_fields__)


def test_what_came_in_one_form_is_a_duplicate_in_another(opener):
    store = opener()
    store.append(arrow_batch(steps(0, 5))).result(20)
    assert store.append(json_batch(steps(4, 7))).result(20).num_duplicates == 2
    assert send(store, *steps(0, 8)).num_rows == 1
    check(store, steps(0, 8))


# ---- marks ---------------------------------------------------------------------------------------


def test_a_mark_stops_below_a_hole_and_goes_on_when_it_is_filled(opener):
    store = opener()
    assert send(store, *steps(3, 5)).marks == [Mark(RUN, 0, 0, -1)]
    assert send(store, *steps(0, 1)).marks == [Mark(RUN, 0, 0, 1)]
    assert send(store, step(2)).marks == [Mark(RUN, 0, 0, 5)]
    assert marks(store) == {(0, 0): 5}


def test_a_gaps_row_covers_a_hole(opener):
    store = opener()
    send(store, *steps(0, 1), *steps(8, 9))
    assert marks(store) == {(0, 0): 1}
    assert send(store, gap(2, 2, 7)).marks == [Mark(RUN, 0, 0, 9)]
    assert marks(opener()) == {(0, 0): 9}


def test_a_row_that_turns_up_in_a_covered_hole_is_taken(opener):
    store = opener()
    send(store, *steps(0, 1), gap(2, 2, 7), *steps(8, 9))
    assert send(store, step(5)).num_rows == 1
    check(store, [*steps(0, 1), gap(2, 2, 7), step(5), *steps(8, 9)])


# ---- collectives ---------------------------------------------------------------------------------

E, D = "entered", "done"
ORDERS = [
    [[E, D]], [[D, E]], [[E], [D]], [[D], [E]], [[E], [D], [D]], [[D], [D], [E]],
    [[E, D], [D]], [[D, E], [E, D]], [[E, D, D]],
]  # fmt: skip


@pytest.mark.parametrize("between", ["nothing", "publish", "reopen"])
def test_a_completion_joins_its_row_in_every_order(opener, between):
    store = opener()
    made = {"entered": entered, "done": done}
    counts = dict.fromkeys(range(len(ORDERS)), 0)
    for turn in range(3):
        for number, batches in enumerate(ORDERS):
            for kinds in batches[turn : turn + 1]:
                records = [made[kind](0, rank=number) for kind in kinds]
                counts[number] += send(store, *records).num_rows
        if between == "publish":
            store.publish()
        elif between == "reopen":
            store = opener()
    assert set(counts.values()) == {2}, "one for the row, one for its completion"
    expected = [make(0, rank=n) for n in range(len(ORDERS)) for make in (entered, done)]
    check(store, expected)
    check(opener(), expected)


def test_row_and_completion_in_batches_of_one_commit(opener):
    """Batches that wait together are committed together."""
    store = opener()
    for _ in range(20):
        futures = [
            store.append(batch([record])) for record in (entered(0), done(0), done(0), entered(0))
        ]
        receipts = [future.result(20) for future in futures]
    assert sum(receipt.num_rows for receipt in receipts) == 0
    check(store, [entered(0), done(0)])


def test_many_at_once_whatever_falls_into_one_commit(opener):
    store = opener()
    records = [record for seq in range(100) for record in (entered(seq), done(seq))]
    futures = [store.append(batch([record])) for record in records]
    assert sum(future.result(20).num_rows for future in futures) == 200
    check(store, records)


def test_a_completion_without_its_row_is_kept_for_it(opener):
    store = opener()
    assert send(store, done(3)).num_rows == 1
    assert send(store, done(3)) == Receipt(0, 1, [Mark(RUN, 0, 0, -1)])
    store = opener()
    assert queried(store) == []
    assert send(store, done(3)).num_duplicates == 1
    assert send(store, *steps(0, 2), entered(3)).num_rows == 4
    check(store, [*steps(0, 2), entered(3), done(3)])


def test_what_was_told_of_a_run_does_not_lose_a_completion(opener):
    """trace.json may be sent at any moment."""
    store = opener()
    send(store, done(0))
    store.publish()
    send(store, entered(0))
    store.put_meta(sent_meta())
    check(opener(), [entered(0), done(0)])


def test_a_completion_of_a_row_that_needs_none_is_dropped(opener):
    store = opener()
    send(store, step(0), entered(1), done(1))
    assert send(store, done(0), done(1)).num_duplicates == 2
    check(store, [step(0), entered(1), done(1)])


def test_a_completion_long_after_the_run_was_over(opener):
    store = opener(publish_every_s=0.01, idle_s=0.0)
    store.put_meta(sent_meta(ended_ns=9_000))
    send(store, entered(0), *steps(1, 3))
    wait_until(lambda: store.stats().num_hot_rows <= 1 and store.stats().num_segments)
    check(store, [entered(0), *steps(1, 3)])
    store = opener()
    check(store, [entered(0), *steps(1, 3)])
    assert send(store, done(0)).num_rows == 1
    assert send(store, done(0)).num_duplicates == 1
    check(store, [entered(0), done(0), *steps(1, 3)])
    check(opener(), [entered(0), done(0), *steps(1, 3)])


@pytest.mark.parametrize("form", [batch, json_batch])
def test_a_completion_twice_in_one_commit(opener, form):
    """The row came in an earlier commit, so what waits knows it and the two do not know each other."""
    store = opener()
    send(store, entered(0), entered(1))
    free, begun = threading.Event(), threading.Event()
    held = store._writer.do(lambda: (begun.set(), free.wait(20)))
    assert begun.wait(20)
    futures = [store.append(form([record])) for record in (done(0), done(0), done(1), done(0))]
    free.set()
    held.result(20)
    assert [future.result(20).num_rows for future in futures] == [1, 0, 1, 0]
    check(store, [entered(0), entered(1), done(0), done(1)])


def test_rows_after_the_run_was_over_are_taken(opener):
    store = opener(publish_every_s=0.01, idle_s=0.0)
    store.put_meta(sent_meta(ended_ns=9_000))
    for seq in range(0, 30, 3):
        send(store, *steps(seq, seq + 2))
    check(store, steps(0, 29))
    store = opener(publish_every_s=0.01, idle_s=0.0)
    assert send(store, *steps(20, 35)).num_rows == 6
    check(store, steps(0, 35))
    check(opener(), steps(0, 35))


def test_damage_upstream_makes_open_collectives_unknown(opener):
    store = opener()
    send(store, entered(0), entered(1), done(1))
    send(store, gap(2, 2, 2, reason="corrupt"))
    (first, *_) = queried(store)
    assert (first.seq, first.completed) == (0, None)
    store.publish()
    assert in_folder(store)[0].completed is None
    assert queried(opener())[0].completed is None


# ---- runs ----------------------------------------------------------------------------------------


def test_a_run_is_made_up_until_its_trace_json_comes(opener):
    store = opener()
    send(store, *steps(0, 3), step(0, rank=1))
    assert store.meta(RUN).mode == "imported"
    assert store.run(RUN).state == "live"
    store.put_meta(sent_meta(ended_ns=None, clean_end=None))
    assert store.meta(RUN) == sent_meta(ended_ns=None, clean_end=None)
    store.put_meta(sent_meta())
    for reopen in (False, True):
        opened = opener() if reopen else store
        summary = opened.run(RUN)
        assert (summary.state, summary.name, summary.num_rows) == ("ended", "small", 5)
        assert opened.meta(RUN) == sent_meta()
        check(opened, [*steps(0, 3), step(0, rank=1)])


def test_trace_json_before_any_row(opener):
    store = opener()
    store.put_meta(sent_meta())
    assert store.run(RUN).num_rows == 0
    store = opener()
    assert store.meta(RUN) == sent_meta()
    send(store, *steps(0, 2))
    check(store, steps(0, 2))


def test_trace_json_is_in_the_folder_after_a_close(opener):
    opener().put_meta(sent_meta(name="first"))
    opener().put_meta(sent_meta(name="second"))
    store = opener()
    store.publish()
    with_name = store.run(RUN)
    assert with_name.name == "second"
    opener.close()
    assert '"second"' in (opener.data / "runs" / RUN / "trace.json").read_text()


def test_runs_are_listed_newest_first(opener):
    store = opener()
    for run in ("c", "a", "b"):
        send(store, step(0, run=run))
    assert [run.run_id for run in store.runs()] == ["b", "a", "c"]
    assert [run.run_id for run in opener().runs()] == ["b", "a", "c"]


def test_strange_run_ids_are_runs_like_others(opener):
    store = opener()
    strange = ["...", "x" * 200, "ünï", "a b", "%2F", "*", "a'b", "-", "~", "a\\b"]
    for run in strange:
        send(store, step(0, run=run))
    store.publish()
    opened = opener()
    assert {run.run_id for run in opened.runs()} == set(strange)
    assert queried(opened, None) == rows_of(step(0, run=run) for run in strange)
    for run in strange:
        assert in_folder(opened, run) == [step(0, run=run)]


@pytest.mark.parametrize("run", ["", ".", "..", "a/b", "x" * 201, "\x00", "a\nb"])
def test_ids_that_nobody_could_ask_for_are_refused(opener, run):
    store = opener()
    with pytest.raises(BadBatch, match="run"):
        send(store, step(0, run=run))
    assert store.runs() == []


def test_unknown_runs(opener):
    store = opener()
    for ask in (store.meta, store.marks, store.run, store.drop, store.publish):
        with pytest.raises(NoSuchRun):
            ask("no such")
    with pytest.raises(NoSuchRun):
        store.query("SELECT 1", "no such")


def test_a_dropped_run_is_gone_and_refused(opener):
    store = opener()
    send(store, *steps(0, 3))
    send(store, *steps(0, 3, run="other"))
    store.publish()
    folder = store.run(RUN).path
    store.drop(RUN)
    for reopen in (False, True):
        opened = opener() if reopen else store
        with pytest.raises(NoSuchRun):
            opened.run(RUN)
        with pytest.raises(RunDropped):
            send(opened, step(4))
        with pytest.raises(RunDropped):
            send(opened, step(4, run="other"), step(9), step(0, run="third"))
        with pytest.raises(RunDropped):
            opened.put_meta(sent_meta())
        assert [run.run_id for run in opened.runs()] == ["other"]
        check(opened, steps(0, 3, run="other"), "other")
    assert not [file for file in (opener.data / "runs").iterdir() if RUN in file.name], folder


def test_a_refused_batch_leaves_nothing_behind(opener):
    """Its rows are taken when they come again without the run that was dropped."""
    store = opener()
    send(store, step(0, run="gone"))
    store.drop("gone")
    with pytest.raises(RunDropped):
        send(store, step(0), step(0, run="gone"), step(0, run="new"))
    assert store.runs() == []
    assert send(store, step(0), step(0, run="new")).num_rows == 2
    opened = opener()
    check(opened, [step(0)])
    check(opened, [step(0, run="new")], "new")


# ---- SQL -----------------------------------------------------------------------------------------


def test_sql_that_fails_says_why(opener):
    store = opener()
    send(store, step(0))
    for sql in ("SELEC 1", "SELECT nothing FROM steps", ""):
        with pytest.raises(BadUsage):
            store.query(sql)


def test_sql_reads_named_views_and_several_runs(opener):
    store = opener()
    send(store, *steps(0, 3), *steps(0, 1, run="other"))
    counted = "SELECT run_id, count(*) AS n FROM steps GROUP BY ALL ORDER BY ALL"
    assert store.query(counted).to_pydict() == {"run_id": ["other", RUN], "n": [2, 4]}
    assert store.query("SELECT * FROM open_debt").num_rows == 0


# ---- closed, and beside each other ---------------------------------------------------------------


def test_a_closed_store_takes_and_gives_nothing(opener):
    store = opener()
    send(store, step(0))
    store.close()
    store.close()
    for call in (
        lambda: store.append(batch([step(1)])),
        lambda: store.put_meta(sent_meta()),
        lambda: store.marks(RUN),
        lambda: store.query("SELECT 1"),
        store.publish,
        lambda: store.drop(RUN),
    ):
        with pytest.raises(StoreDown):
            call()
    assert store.problem()


def test_two_stores_never_have_one_folder(opener):
    store = opener()
    with pytest.raises(BadUsage, match="another collector"):
        opener.kind.open(opener.data, {})
    send(store, step(0))
    check(opener(), [step(0)])


def test_close_stores_what_was_accepted(opener):
    store = opener()
    futures = [store.append(batch([step(seq)])) for seq in range(200)]
    store.close()
    assert all(future.result(0).num_rows == 1 for future in futures)
    check(opener(), steps(0, 199))


def wait_until(condition, seconds=20):
    """Wait for a condition, without a fixed sleep."""
    ticker = threading.Event()
    for _ in range(int(seconds / 0.01)):
        if condition():
            return
        ticker.wait(0.01)
    raise AssertionError("it did not come to pass")


def test_queries_see_whole_prefixes_while_rows_come(opener):
    store = opener(publish_every_s=0.02, segment_rows=200)
    num_senders, num_batches = 3, 40
    finished = threading.Event()
    wrong = []

    def send_all(rank):
        for number in range(num_batches):
            first = number * 10
            rows = [
                entered(first, rank),
                *steps(first + 1, first + 8, rank=rank),
                entered(first + 9, rank),
            ]
            send(store, *rows, done(first, rank))

    def look():
        before = {}
        sql = """SELECT rank, count(*) AS n, count(DISTINCT seq) AS d, max(seq) AS m FROM
                 (SELECT rank, seq FROM steps UNION ALL SELECT rank, seq FROM collectives)
                 GROUP BY rank"""
        try:
            while not finished.is_set():
                for row in store.query(sql, RUN).to_pylist() if store.runs() else []:
                    assert row["n"] == row["d"] == row["m"] + 1, row
                    assert row["n"] >= before.get(row["rank"], 0), (row, before)
                    before[row["rank"]] = row["n"]
                store.publish()
        except Exception as error:
            wrong.append(error)

    senders = [threading.Thread(target=send_all, args=(rank,)) for rank in range(num_senders)]
    readers = [threading.Thread(target=look) for _ in range(2)]
    for thread in [*senders, *readers]:
        thread.start()
    for thread in senders:
        thread.join()
    finished.set()
    for thread in readers:
        thread.join()
    assert not wrong
    assert store.run(RUN).num_rows == num_senders * num_batches * 10
    expected = [
        record
        for rank in range(num_senders)
        for first in range(0, num_batches * 10, 10)
        for record in (
            entered(first, rank), done(first, rank), *steps(first + 1, first + 8, rank=rank),
            entered(first + 9, rank),
        )
    ]  # fmt: skip
    check(store, expected)
    check(opener(), expected)


# ---- rows that go on -----------------------------------------------------------------------------


def num_steps(store, **how):
    (row,) = store.query(
        "SELECT count(*) AS n, max(seq) AS last FROM steps", RUN, **how
    ).to_pylist()
    assert row["n"] == 0 or row["n"] == row["last"] + 1
    return row["n"]


def test_an_answer_may_be_as_old_as_one_says_and_no_older(opener):
    store = opener()
    send(store, *steps(0, 9))
    assert num_steps(store, max_age_s=3600.0) in (0, 10)
    assert num_steps(store) == 10
    send(store, *steps(10, 19))
    assert num_steps(store, max_age_s=3600.0) in (0, 10, 20)
    end = time.monotonic() + 20.0
    while num_steps(store, max_age_s=0.05) < 20:  # within so long it is seen
        assert time.monotonic() < end
    assert num_steps(store) == 20
    both = "SELECT (SELECT count(*) FROM steps) + (SELECT count(*) FROM collectives) AS n"
    send(store, step(20), entered(21))
    (row,) = store.query(both, RUN, max_age_s=3600.0).to_pylist()
    assert row["n"] in (0, 10, 20, 22)  # whole commits


@pytest.mark.parametrize("seed", range(3))
def test_news_bring_each_row_once(opener, seed):
    """Whatever moves rows from one place to another meanwhile; or they say that they cannot."""
    chance, store = random.Random(seed), opener()
    send(store, step(0))
    place, got, waiting, seq = store.news(RUN).place, [0], [], 1
    for _ in range(60):
        records = []
        for at in range(seq, seq + chance.randrange(1, 6)):
            records.append(step(at) if chance.random() < 0.6 else entered(at))
            if not isinstance(records[-1], type(step(0))):
                waiting.append(at)
        seq += len(records)
        while waiting and chance.random() < 0.5:
            records.append(done(waiting.pop(chance.randrange(len(waiting)))))
        send(store, *records)
        if chance.random() < 0.3:
            store.publish(RUN)
        if chance.random() < 0.4:
            news = store.news(RUN)
            for table in ("steps", "collectives"):
                parts = news.after(place, table)
                assert parts is not None
                got += [number for part in parts for number in part["seq"].to_pylist()]
            assert sorted(news.open()["seq"].to_pylist()) == sorted(waiting)
            assert sorted([*got, *waiting]) == list(range(seq))
            place = news.place


def test_an_answer_can_be_gone_on_with(opener):
    store = opener()
    send(store, *steps(0, 4))
    found, seen = store.query_at("SELECT seq FROM steps", RUN)
    send(store, *steps(5, 9))
    store.publish(RUN)
    later = store.news(RUN).after(seen.place, "steps")
    assert found["seq"].to_pylist() == [0, 1, 2, 3, 4]
    assert [seq for part in later for seq in part["seq"].to_pylist()] == [5, 6, 7, 8, 9]
    assert seen.after(seen.place, "steps") == []
    with pytest.raises(BadUsage):
        store.query_at("SELECT 1", RUN)
    with pytest.raises(NoSuchRun):
        store.news("run-that-is-not")
