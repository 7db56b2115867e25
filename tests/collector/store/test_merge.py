"""Small segments are put together when a run is sealed, and no reader sees rows twice or not at all."""

from __future__ import annotations

import threading

import pytest

from collector.hot import exchange as exchange_module
from collector.hot import merge
from collector.hot.exchange import exchange
from collector.hot.run_files import commit_of_segment
from collector.trace.parquet_files import read_notes
from tests.collector.store.damage import flip, place_of_values
from tests.collector.store.rows import (
    RUN,
    check,
    copy_of,
    done,
    entered,
    in_folder,
    queried,
    raw,
    rows_of,
    send,
    sent_meta,
    step,
    steps,
)

pytestmark = pytest.mark.usefixtures("no_views_file")


def seal(store):
    store._publisher.publish(store._catalog.find(RUN), whole=True)


def segments(store, table="steps"):
    return store._catalog.find(RUN).files.segments(table)


def sealed_often(store, times, num=2):
    """A run that ended, and gets some rows late, again and again."""
    store.put_meta(sent_meta())
    for turn in range(times):
        send(store, *steps(turn * num, turn * num + num - 1))
        seal(store)
    return steps(0, times * num - 1)


def leftovers(store):
    return [f.name for f in (store.data / "runs" / RUN).iterdir() if f.name.startswith(".")]


def test_few_small_segments_stay(embedded):
    store = embedded()
    sealed_often(store, 4)
    assert len(segments(store)) == 4


def test_many_small_segments_become_one_that_reaches_as_far(embedded, tmp_path):
    store = embedded()
    records = sealed_often(store, 5)
    (name,) = segments(store)
    assert commit_of_segment(name) == store._catalog.find(RUN).flushed_commit
    assert leftovers(store) == []
    check(store, records)
    store = embedded(copy_of(embedded.data, tmp_path / "copy"))
    assert store._catalog.find(RUN).state == "cold"
    check(store, records)
    assert send(store, *records).num_rows == 0
    send(store, *steps(10, 11))
    seal(store)
    assert len(segments(store)) == 2
    check(store, [*records, *steps(10, 11)])


def test_large_segments_are_left_alone(embedded):
    store = embedded(segment_rows=40)
    store.put_meta(sent_meta())
    send(store, *steps(0, 39))
    seal(store)
    (large,) = segments(store)
    for seq in range(40, 56):
        send(store, step(seq))
        seal(store)
    assert segments(store)[0] == large
    assert len(segments(store)) <= 1 + 4
    check(store, steps(0, 55))


@pytest.mark.parametrize("limit", [{"segment_rows": 16}, {"segment_bytes": 1 << 20}])
def test_a_merged_segment_is_no_larger_than_others(embedded, limit):
    store = embedded(**limit)
    store.put_meta(sent_meta())
    if "segment_rows" in limit:
        records = [step(seq) for seq in range(24)]
        table, per_batch, at_least = "steps", 3, 2
    else:  # one text over and over: small as a file, large in memory
        records = [raw(seq, text="x" * 200_000) for seq in range(12)]
        table, per_batch, at_least = "raw", 1, 3
    held = merge.merge_small
    sealed = 0
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("collector.hot.publisher.merge_small", lambda *args: None)
        for first in range(0, len(records), per_batch):
            send(store, *records[first : first + per_batch])
            seal(store)
            sealed += 1
    assert len(segments(store, table)) == sealed
    run = store._catalog.find(RUN)
    held(run.files, table, store.options, lambda names: run.rows.replace_segments(table, names))
    assert at_least <= len(segments(store, table)) < sealed
    rows = [run.files.read_segment(table, n, ["seq", "run_id"]) for n in segments(store, table)]
    assert max(part.num_rows for part in rows) <= store.options.segment_rows
    assert sorted(seq for part in rows for seq in part["seq"].to_pylist()) == list(
        range(len(records))
    )
    assert store.query(f"SELECT count(*) AS n FROM {table}").to_pylist() == [{"n": len(records)}]


def test_open_collectives_lie_beside_merged_ones(embedded, tmp_path):
    store = embedded()
    store.put_meta(sent_meta())
    records = [entered(100)]
    send(store, *records)
    for seq in range(0, 12, 2):
        records += [entered(seq), done(seq)]
        send(store, entered(seq), done(seq))
        seal(store)
    assert len(segments(store, "collectives")) < 5
    folder = store._catalog.find(RUN).files.folder("collectives")
    assert read_notes(folder / "open.parquet")
    check(store, records)
    store = embedded(copy_of(embedded.data, tmp_path / "copy"))
    assert send(store, *records, done(100)).num_rows == 1
    check(store, [*records, done(100)])


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_crash_at_the_exchange(embedded, tmp_path, monkeypatch, moment):
    copies = []

    def crashing(one, other):
        if moment == "after":
            assert exchange(one, other)
        copies.append(copy_of(embedded.data, tmp_path / "crashed"))
        return moment == "after" or exchange(one, other)

    monkeypatch.setattr(merge, "exchange", crashing)
    store = embedded()
    records = sealed_often(store, 5)
    (data,) = copies
    beside = list((data / "runs" / RUN).glob(".merge-*"))
    assert len(beside) == 1
    assert len(list((data / "runs" / RUN / "events" / "steps").iterdir())) == (
        1 if moment == "after" else 5
    )
    monkeypatch.undo()
    store = embedded(data)
    assert leftovers(store) == []
    check(store, records)
    assert send(store, *records).num_rows == 0
    check(store, records)


@pytest.mark.parametrize("when", ["before", "after"])
def test_an_exchange_that_fails_leaves_a_store_that_works(embedded, tmp_path, monkeypatch, when):
    def failing(one, other):
        if when == "after":
            assert exchange(one, other)
        raise OSError(5, "the disk went away")

    store = embedded()
    with monkeypatch.context() as patch:
        patch.setattr(merge, "exchange", failing)
        records = sealed_often(store, 5)
    assert len(segments(store)) == (1 if when == "after" else 5)
    check(store, records)
    check(embedded(copy_of(embedded.data, tmp_path / "copy")), records)


def test_where_folders_cannot_be_swapped_nothing_is_merged(embedded, monkeypatch):
    monkeypatch.setattr(exchange_module.ctypes, "CDLL", lambda *args, **more: object())
    store = embedded()
    records = sealed_often(store, 6)
    assert len(segments(store)) == 6
    assert leftovers(store) == []
    check(store, records)


def test_a_damaged_segment_is_not_merged(embedded):
    store = embedded()
    sealed_often(store, 4)
    file = store._catalog.find(RUN).files.folder("steps") / segments(store)[1]
    whole = file.read_bytes()
    flip(file, place_of_values(file, "seq"))
    data = file.read_bytes()
    send(store, *steps(8, 9))
    seal(store)
    assert len(segments(store)) == 5
    assert file.read_bytes() == data
    file.write_bytes(whole)
    send(store, *steps(10, 11))
    seal(store)
    assert len(segments(store)) == 1
    check(store, steps(0, 11))


def test_a_query_that_began_before_a_merge_still_finds_its_rows(embedded, monkeypatch):
    """The files that it was to read are gone: it looks again."""
    store = embedded()
    sealed_often(store, 4)
    send(store, *steps(8, 9))
    run = store._catalog.find(RUN)
    snapshot, turns = run.rows.snapshot, []

    def then_merged(*names):
        seen = snapshot(*names)
        if not turns:
            turns.append(1)
            publisher = threading.Thread(target=lambda: seal(store))
            monkeypatch.setattr(run.rows, "snapshot", snapshot)
            publisher.start()
            publisher.join()
        return seen

    monkeypatch.setattr(run.rows, "snapshot", then_merged)
    seqs = store.query("SELECT seq FROM steps ORDER BY seq", RUN)["seq"].to_pylist()
    assert turns and seqs == list(range(10))
    assert len(segments(store)) == 1
    assert queried(store) == rows_of(steps(0, 9))
    assert in_folder(store) == rows_of(steps(0, 9))
