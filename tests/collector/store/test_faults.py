"""Torn tails, flipped bytes, full disks, clocks set back: each survived as docs/data-folder.md says."""

from __future__ import annotations

import subprocess
from pathlib import Path

import duckdb
import pytest

from analyzer import analyze
from cascade_runtime.vocabulary.errors import BadTrace, BadUsage
from cascade_runtime.vocabulary.events import Gaps
from cascade_runtime.vocabulary.schema import EVENT_TABLES
from collector.hot.aside import Aside, is_unfinished
from collector.hot.recover import recover
from collector.storage._interface import DiskLow, StoreDown
from collector.trace.parquet_files import read_file
from collector.trace.trace_folder import open_trace
from tests.collector.store.damage import flip, place_of_values
from tests.collector.store.rows import (
    RUN,
    batch,
    check,
    copy_of,
    done,
    entered,
    in_folder,
    queried,
    rows_of,
    send,
    sent_meta,
    step,
    steps,
)

pytestmark = pytest.mark.usefixtures("no_views_file")


def verdict(store):
    with open_trace(store.run(RUN).path) as trace:
        return analyze(trace).report.verdict


def crashed(embedded, tmp_path, published, since, **options):
    """A data folder as a crash leaves it: some rows published, some in the log only."""
    store = embedded(**options)
    store.put_meta(sent_meta(ended_ns=None, clean_end=None, world_size=1))
    send(store, *published)
    store.publish()
    for record in since:
        send(store, record)
    return copy_of(embedded.data, tmp_path / "crashed")


# ---- the write-ahead log -------------------------------------------------------------------------


@pytest.mark.parametrize("cut", [1, 100, 700])
def test_a_torn_log_loses_its_last_transactions_only(embedded, tmp_path, cut):
    data = crashed(embedded, tmp_path, steps(0, 9), steps(10, 19))
    log = data / "hot.duckdb.wal"
    log.write_bytes(log.read_bytes()[:-cut])
    store = embedded(data)
    rows = queried(store)
    assert rows == rows_of(steps(0, len(rows) - 1))
    assert len(rows) >= 10 and len(rows) >= 20 - 1 - cut // 80
    assert send(store, *steps(0, 19)).num_rows == 20 - len(rows)
    check(store, steps(0, 19))


def test_rows_in_files_are_known_when_the_log_lost_them(embedded, tmp_path):
    """The folder is ahead of a log that lost its end: nothing is taken twice."""
    store = embedded(segment_rows=15)
    send(store, *steps(0, 9), entered(10))
    store.publish()
    before = (embedded.data / "hot.duckdb.wal").stat().st_size
    send(store, *steps(11, 19))
    store.publish()
    data = copy_of(embedded.data, tmp_path / "copy")
    log = data / "hot.duckdb.wal"
    log.write_bytes(log.read_bytes()[:before])
    store = embedded(data, segment_rows=15)
    assert send(store, *steps(0, 9), entered(10), *steps(11, 19)).num_rows == 0
    check(store, [*steps(0, 9), entered(10), *steps(11, 19)])


def test_a_flipped_byte_in_the_log_is_recovered_with_a_gap(embedded, tmp_path):
    published = [*steps(0, 9), entered(10), entered(11), done(11)]
    data = crashed(embedded, tmp_path, published, [done(10), *steps(12, 19)])
    log = data / "hot.duckdb.wal"
    flip(log, 0.5)
    damaged = log.read_bytes()
    with pytest.raises(BadUsage, match=r"damaged|cannot be opened") as raised:
        embedded(data)
    assert f"cascade recover {data}" in raised.value.hint

    report = recover(data)
    (kept,) = report.kept
    assert Path(kept).read_bytes() == damaged
    assert report.num_rows == 12
    assert [(gap.rank, gap.last_seq) for gap in report.gaps] == [(0, 11)]
    assert any("may be missing" in sentence for sentence in report.sentences)
    assert recover(data).kept == []  # again: nothing changes
    assert recover(data).num_rows == 12

    store = embedded(data)
    rows = queried(store)
    assert len(rows) == 12
    assert [row.completed for row in rows if row.seq in (10, 11)] == [None, True]
    # The sender's acknowledged rows are gone for it; it goes on.
    assert [mark.seq for mark in send(store, *steps(20, 22)).marks] == [22]
    gaps = [row for row in queried(store) if isinstance(row, Gaps)]
    assert [(g.seq, g.first_seq, g.last_seq, g.reason) for g in gaps] == [(12, 12, 19, "corrupt")]
    assert send(store, *steps(23, 24), *steps(20, 21)).num_rows == 2
    store.publish()
    assert in_folder(store) == queried(store)
    assert verdict(store) == "unknown"


def test_an_actor_that_only_the_lost_log_knew_gets_its_gap(embedded, tmp_path):
    data = crashed(embedded, tmp_path, steps(0, 9), steps(0, 5, rank=1))
    flip(data / "hot.duckdb.wal", 0.5)
    recover(data)
    store = embedded(data)
    send(store, *steps(6, 8, rank=1), *steps(10, 12))
    gaps = [(g.rank, g.first_seq, g.last_seq) for g in queried(store) if isinstance(g, Gaps)]
    assert gaps == [(1, 0, 5)]
    send(store, *steps(0, 3, incarnation=1))
    assert len([row for row in queried(store) if isinstance(row, Gaps)]) == 1


def test_a_flipped_byte_in_the_database_file(embedded, tmp_path):
    store = embedded()
    send(store, *steps(0, 9))
    store.publish()
    embedded.close()  # folds the log into the file
    file = embedded.data / "hot.duckdb"
    file.write_bytes(file.read_bytes()[:8] + b"\x00\x01\x02" + file.read_bytes()[11:])
    with pytest.raises(BadUsage, match="cannot be opened"):
        embedded()
    report = recover(embedded.data)
    assert any("hot.duckdb" in kept for kept in report.kept)
    store = embedded()
    check(store, steps(0, 9))
    assert send(store, *steps(5, 12)).num_rows == 3


def test_a_database_that_is_gone(embedded):
    store = embedded()
    send(store, *steps(0, 9))
    embedded.close()
    (embedded.data / "hot.duckdb").unlink()
    with pytest.raises(BadUsage, match="gone"):
        embedded()
    said = recover(embedded.data).sentences
    assert said[:2] == ["the hot database was gone; a new one was made", "10 rows are there"]
    assert f"run {RUN}, rank 0 incarnation 0: rows above seq 9" in said[2]
    check(embedded(), steps(0, 9))
    embedded.close()
    assert recover(embedded.data).kept == []


def test_a_folder_that_is_whole_is_said_to_be(embedded):
    send(embedded(), *steps(0, 9))
    embedded.close()
    for _ in range(2):
        assert recover(embedded.data).sentences == ["nothing is damaged: 10 rows are there"]


def test_a_recovery_that_is_cut_short_is_gone_on_with(embedded, tmp_path, monkeypatch):
    data = crashed(embedded, tmp_path, steps(0, 9), steps(10, 19))
    flip(data / "hot.duckdb.wal", 0.5)
    monkeypatch.setattr("collector.hot.recover._rebuild", lambda *args: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        recover(data)
    monkeypatch.undo()
    with pytest.raises(BadUsage, match="cut short"):
        embedded(data)
    report = recover(data)
    assert report.kept == []
    assert report.sentences[:2] == [
        "a recovery that was cut short was gone on with",
        "10 rows are there",
    ]
    assert [gap.last_seq for gap in report.gaps] == [9]
    send(embedded(data), *steps(20, 21))
    assert [row.last_seq for row in queried(embedded.store) if isinstance(row, Gaps)] == [19]


def test_what_is_moved_away_is_marked_durably_before_it_goes(tmp_path, monkeypatch):
    """Power may fail at any moment: a file that is gone without the mark is a loss nobody reckons."""
    data = tmp_path / "data"
    file = data / "runs" / RUN / "events" / "steps" / "tail.parquet"
    file.parent.mkdir(parents=True)
    file.write_bytes(b"damaged")
    seen = []
    monkeypatch.setattr(
        "collector.hot.aside.sync_folder", lambda folder: seen.append((folder, file.exists()))
    )
    aside = Aside(data)
    aside.move(file)
    (kept,) = map(Path, aside.kept)
    marked = kept.relative_to(data).parts[:2]
    before = {folder for folder, was_there in seen if was_there}
    assert {data, data / "damaged", data.joinpath(*marked), kept.parent} <= before
    assert {folder for folder, was_there in seen if not was_there} == {kept.parent, file.parent}
    assert is_unfinished(data)
    seen.clear()
    aside.finish()
    assert seen == [(data.joinpath(*marked), False)]
    assert not is_unfinished(data)


# ---- the run's files -----------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["steps/tail.parquet", "collectives/open.parquet"])
@pytest.mark.parametrize("place", [0.3, 0.97])
def test_a_flipped_byte_in_a_tail(embedded, tmp_path, name, place):
    rows = [row for seq in range(0, 20, 2) for row in (step(seq), entered(seq + 1))]
    data = crashed(embedded, tmp_path, rows, [])
    file = data / "runs" / RUN / "events" / name
    flip(file, place)
    if opens(embedded, data):  # a byte that means nothing
        check(embedded.store, rows)
    else:
        assert any(name in kept for kept in recover(data).kept)
        store = embedded(data)
        assert {type(row).__name__ for row in queried(store)} >= {"Gaps"}
        assert [mark.seq for mark in store.marks(RUN)] >= [18]
        send(store, *steps(20, 22))
        assert [mark.seq for mark in store.marks(RUN)] == [22]
        store.publish()
        assert verdict(store) == "unknown"


def opens(embedded, data):
    """True when the data folder opens; else the error says what to do."""
    try:
        embedded(data)
    except BadUsage as error:
        return error.hint.startswith("cascade recover") and None
    return True


def test_no_flipped_byte_of_a_segments_pages_is_read_as_other_rows(embedded):
    store = embedded(segment_rows=5)
    send(store, *steps(0, 9))
    store.publish()
    (file,) = (embedded.data / "runs" / RUN / "events" / "steps").glob("0*.parquet")
    whole, num_found = file.read_bytes(), 0
    names = [column.name for column in EVENT_TABLES["steps"].columns]
    rows = read_file(file, file.name, "steps", names).to_pylist()
    num_bytes = (
        len(whole) - int.from_bytes(whole[-8:-4], "little") - 8
    )  # the footer has no checksum
    for place in range(0, num_bytes, 3):
        flip(file, (place + 0.5) / len(whole))
        try:
            assert read_file(file, file.name, "steps", names).to_pylist() == rows
        except BadTrace:
            num_found += 1
        file.write_bytes(whole)
    assert num_found > num_bytes / 3 / 4


def test_a_flipped_byte_in_a_segment(embedded, tmp_path):
    store = embedded(segment_rows=5)
    send(store, *steps(0, 9))
    store.publish()
    send(store, entered(10), *steps(11, 12))
    embedded.close()
    (file,) = (embedded.data / "runs" / RUN / "events" / "steps").glob("0*.parquet")
    flip(file, place_of_values(file, "seq"))
    report = recover(embedded.data)
    assert any(file.name in kept for kept in report.kept)
    store = embedded()
    seqs = [(row.seq, type(row).__name__) for row in queried(store)]
    assert seqs == [(0, "Gaps"), (10, "Collectives"), (11, "Steps"), (12, "Steps")]
    assert verdict(store) == "unknown"


def test_a_damaged_trace_json(embedded):
    store = embedded()
    store.put_meta(sent_meta())
    send(store, *steps(0, 9))
    embedded.close()
    (embedded.data / "runs" / RUN / "trace.json").write_text('{"run')
    (embedded.data / "hot.duckdb").unlink()
    recover(embedded.data)
    check(embedded(), steps(0, 9))
    assert embedded.store.meta(RUN).mode == "imported"


# ---- the disk ------------------------------------------------------------------------------------


def test_too_little_room_refuses_before_anything_is_taken(embedded):
    store = embedded(min_free_bytes=1 << 60)
    for call in (lambda: store.append(batch([step(0)])), lambda: store.put_meta(sent_meta())):
        with pytest.raises(DiskLow):
            call()
    assert store.runs() == []
    assert "free" in store.problem()


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 24 MB."""
    place = tmp_path / "disk"
    place.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=24m", "tmpfs", str(place)], capture_output=True
    )
    if mounted.returncode:
        pytest.skip(f"mounting is not allowed here: {mounted.stderr.decode().strip()}")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


def test_a_full_disk(embedded, small_disk):
    store = embedded(small_disk / "data", min_free_bytes=0)
    filler = small_disk / "filler"
    filler.write_bytes(b"x" * (17 << 20))
    acknowledged = 0
    text = "x" * 2000
    try:
        while acknowledged < 20_000:
            rows = [entered(s, call_site=text) for s in range(acknowledged, acknowledged + 200)]
            send(store, *rows)
            acknowledged += 200
    except DiskLow:
        pass
    assert 0 < acknowledged < 20_000
    assert store.problem()
    assert store.stats().num_reopened > 0
    filler.unlink()
    rows = [entered(s, call_site=text) for s in range(acknowledged, acknowledged + 200)]
    assert send(store, *rows).num_rows == 200
    assert store.problem() is None
    assert store.query("SELECT count(*) n, count(DISTINCT seq) d FROM collectives").to_pylist() == [
        {"n": acknowledged + 200, "d": acknowledged + 200}
    ]
    store = embedded(small_disk / "data", min_free_bytes=0)
    assert store.run(RUN).num_rows == acknowledged + 200
    assert [mark.seq for mark in store.marks(RUN)] == [acknowledged + 199]


@pytest.mark.parametrize("times", [1, 2, 3])
@pytest.mark.parametrize("durable", [False, True])
def test_commits_that_fail(embedded, tmp_path, monkeypatch, times, durable):
    """Whether a commit that failed reached the disk or not: its rows are there once in the end."""
    store = embedded()
    send(store, *steps(0, 4), step(0, run="old"))
    journal = store._journal
    real = journal.commit
    left = [times]

    def failing(*args):
        if left[0]:
            left[0] -= 1
            if durable:
                real(*args)
            raise duckdb.FatalException("the disk went away")
        return real(*args)

    monkeypatch.setattr(journal, "commit", failing)
    sent = [*steps(5, 9), entered(10), done(10), step(0, run="new")]
    if times > 1:
        with pytest.raises(StoreDown):
            send(store, *sent)
        assert [run.run_id for run in store.runs()] == ["old", RUN]
        assert [mark.seq for mark in store.marks(RUN)] == [4]
        assert store.run(RUN).num_rows == 5
        assert "went away" in store.problem()
    assert send(store, *sent).num_rows == 8
    assert store.problem() is None
    assert store.stats().num_reopened == times
    for opened in (store, embedded(copy_of(embedded.data, tmp_path / "copy"))):
        if opened is not store:
            check(opened, [*steps(0, 4), *sent])
            check(opened, [step(0, run="new")], "new")


def test_the_journal_does_not_grow_for_ever(embedded):
    store = embedded(segment_rows=100)
    sizes = []
    for turn in range(12):
        first = turn * 300
        send(store, *[entered(s, call_site="x" * 1000) for s in range(first, first + 300)])
        send(store, *[done(s) for s in range(first, first + 300)])
        store.publish()
        store._writer.do(store._journal.checkpoint).result(20)
        sizes.append(store.stats().hot_bytes)
    assert sizes[-1] <= 2 * max(sizes[:3])


# ---- the clock -----------------------------------------------------------------------------------


def test_a_clock_that_is_set_back(embedded):
    now = [10**18]
    store = embedded(wall_ns=lambda: now[0], segment_rows=4)
    send(store, *steps(0, 5, run="first"))
    store.publish()
    now[0] -= 10**15
    send(store, *steps(0, 5, run="second"))
    send(store, *steps(6, 11, run="first"))
    store.publish()
    for reopen in (False, True):
        opened = embedded(wall_ns=lambda: now[0], segment_rows=4) if reopen else store
        assert [run.run_id for run in opened.runs()] == ["second", "first"]
        first, second = opened.run("first"), opened.run("second")
        assert first.first_seen_ns < second.first_seen_ns < first.last_seen_ns
        check(opened, steps(0, 11, run="first"), "first")
        check(opened, steps(0, 5, run="second"), "second")
