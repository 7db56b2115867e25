"""The service: answers in every form, limits, turns, files that go away, and nothing left behind."""

from __future__ import annotations

import csv
import io
import itertools
import json
import os
import shutil
import statistics
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cascade_runtime.vocabulary.schema import TABLES
from collector.data_folder import run_folder
from collector.schema.views import named_views
from collector.sql import landlock
from collector.sql import service as service_module
from collector.sql.damaged import damaged_file, tables_named
from collector.sql.data_views import data_views
from collector.sql.errors import SqlBusy, SqlFailed, SqlRefused, SqlTooLarge, SqlTooLong
from collector.sql.messages import RUNS, Answer
from collector.sql.process import Child, Reply
from collector.sql.service import SqlRequest, SqlService
from collector.storage._interface import NoSuchRun, StoreDown
from tests.collector.sql.conftest import SMALL
from tests.collector.sql.processes import children, wait_until
from tests.collector.traces import everything_under


def ask(service, sql, **fields):
    return json.loads(service.run(SqlRequest(sql, **fields)).body)


def limits(**changes):
    return msgspec.structs.replace(SMALL, **changes)


@pytest.fixture
def opened(shared_data):
    """Makes services that are closed in the end."""
    made = []

    def make(data=shared_data, **changes):
        made.append(SqlService(data, limits(**changes)))
        return made[-1]

    yield make
    for one in made:
        one.close()


def test_an_answer_in_json_is_exactly_the_contracts(service, run_ids):
    answer = service.run(
        SqlRequest("SELECT run_id, count(*) AS n FROM steps GROUP BY 1 ORDER BY 2")
    )
    assert (answer.media_type, answer.truncated, answer.num_rows) == ("application/json", False, 2)
    assert json.loads(answer.body) == {
        "columns": [{"name": "run_id", "type": "VARCHAR"}, {"name": "n", "type": "BIGINT"}],
        "rows": [[run_ids["clean"], 480], [run_ids["kill-one"], 801]],
        "truncated": False,
    }


def test_csv_and_arrow_have_the_same_rows(service):
    sql = "SELECT rank, wall_ns, phase, loss FROM steps ORDER BY ALL LIMIT 50"
    rows = ask(service, sql)["rows"]
    arrow = service.run(SqlRequest(sql, format="arrow"))
    assert arrow.media_type == "application/vnd.apache.arrow.stream"
    table = pa.ipc.open_stream(arrow.body).read_all()
    assert [list(row.values()) for row in table.to_pylist()] == rows
    text = service.run(SqlRequest(sql, format="csv"))
    assert text.media_type.startswith("text/csv")
    listed = list(csv.reader(io.StringIO(text.body.decode(), newline="")))
    assert listed[0] == ["rank", "wall_ns", "phase", "loss"]
    assert [[int(r[0]), int(r[1]), r[2]] for r in listed[1:]] == [row[:3] for row in rows]


def test_one_run_alone(service, run_ids):
    assert ask(service, "SELECT count(*) FROM steps", run_id=run_ids["clean"])["rows"] == [[480]]
    sql = "SELECT DISTINCT run_id FROM regime_timeline"
    assert ask(service, sql, run_id=run_ids["kill-one"])["rows"] == [[run_ids["kill-one"]]]


@pytest.mark.parametrize("run_id", ["nobody", "", "..", "../runs", "a/b", "x" * 10_000, "\ud800"])
def test_a_run_that_is_not_there(service, run_id):
    with pytest.raises(NoSuchRun):
        service.run(SqlRequest("SELECT 1", run_id=run_id))


def test_every_table_and_view_is_listed_and_documented(service):
    names = {row[0] for row in ask(service, "SHOW TABLES")["rows"]}
    assert names == set(TABLES) | set(named_views())


def test_the_limit(service):
    answer = ask(service, "FROM range(50)", limit=7)
    assert (len(answer["rows"]), answer["truncated"]) == (7, True)
    assert ask(service, "FROM range(7)", limit=7)["truncated"] is False
    assert ask(service, "FROM range(1)", limit=0) == {
        "columns": [{"name": "range", "type": "BIGINT"}],
        "rows": [],
        "truncated": True,
    }


def test_without_a_limit_ten_thousand_rows(service):
    answer = ask(service, "FROM range(20000)")
    assert (len(answer["rows"]), answer["truncated"]) == (10_000, True)


@pytest.mark.parametrize("limit", [-1, 1_000_001])
def test_a_limit_that_is_none(service, limit):
    with pytest.raises(SqlRefused, match="limit goes from 0 to 1000000"):
        service.run(SqlRequest("SELECT 1", limit=limit))


def test_more_rows_than_asked_are_not_made(service):
    assert len(ask(service, "FROM range(100000000000)", limit=3)["rows"]) == 3


def test_what_fails_says_why_and_nothing_of_this_machine(service, shared_data):
    with pytest.raises(SqlFailed) as failed:
        service.run(SqlRequest("SELECT no_such_column FROM steps"))
    assert "no_such_column" in failed.value.message
    assert str(shared_data) not in str(failed.value)
    with pytest.raises(SqlFailed, match="Conversion Error"):
        service.run(SqlRequest("SELECT phase::INTEGER FROM steps"))


def test_too_long_is_ended_at_the_limit(service):
    started = time.monotonic()
    with pytest.raises(SqlTooLong, match=r"longer than 1 s"):
        service.run(SqlRequest("SELECT count(*) FROM range(10000000) a, range(10000000) b"))
    assert time.monotonic() - started < 6


def test_too_large_an_answer(service):
    with pytest.raises(SqlTooLarge, match="larger than"):
        service.run(SqlRequest("SELECT repeat('x', 1000) FROM range(10000)"))


def test_too_much_memory(service):
    with pytest.raises(SqlTooLarge, match="memory"):
        service.run(SqlRequest("SELECT list(a.range) FROM range(30000) a, range(30000) b"))


def test_a_statement_that_is_too_long_a_text(service):
    with pytest.raises(SqlRefused, match="262144 are the most"):
        service.run(SqlRequest("SELECT 1 --" + "x" * 262_144))


def test_a_new_segment_and_a_new_run_are_seen_at_once(opened, data, run_ids):
    running = opened(data)
    assert ask(running, "SELECT count(*) FROM steps")["rows"] == [[1281]]
    wait_until(lambda: running._pool._spare is not None)  # made before the new files
    folder = run_folder(data, run_ids["clean"])
    segment = next((folder / "events" / "steps").glob("*.parquet"))
    shutil.copy(segment, segment.with_name("tail.parquet"))
    # gpu has no file in any run as yet: its view changes from an empty one
    (folder / "events" / "gpu").mkdir()
    shutil.copy(segment, folder / "events" / "gpu" / "tail.parquet")
    assert ask(running, "SELECT count(*) FROM steps")["rows"] == [[1281 + 480]]
    assert ask(running, "SELECT count(*) FROM gpu")["rows"] == [[480]]
    shutil.copytree(folder, run_folder(data, "other"))
    assert ask(running, "SELECT count(*) FROM gpu")["rows"] == [[960]]


def test_an_empty_data_folder(opened, tmp_path):
    running = opened(tmp_path / "new" / "data")
    assert ask(running, "SELECT count(*) FROM incidents")["rows"] == [[0]]


def test_files_that_go_away_in_mid_statement_are_asked_for_once_more(opened, monkeypatch):
    running = opened()
    real, seen = Child.ask, []

    def vanishing(self, question, deadline):
        seen.append(question)
        if len(seen) == 1:
            return Reply(Answer("gone", "IO Error: no such file"), b"")
        return real(self, question, deadline)

    monkeypatch.setattr(Child, "ask", vanishing)
    assert ask(running, "SELECT count(*) FROM steps")["rows"] == [[1281]]
    assert (len(seen), running.health().num_retried) == (2, 1)
    monkeypatch.setattr(Child, "ask", lambda *_: Reply(Answer("gone", "IO Error: gone"), b""))
    with pytest.raises(SqlFailed, match="gone"):
        running.run(SqlRequest("SELECT 1"))


def test_a_tail_that_is_replaced_all_the_time_is_no_error(opened, data, run_ids):
    running = opened(data, time_s=10.0)
    folder = run_folder(data, run_ids["clean"]) / "events" / "steps"
    steps = pq.read_table(next(folder.glob("*.parquet")))
    stop = threading.Event()

    def rewrite():
        for num_rows in itertools.cycle(range(1, 400)):
            pq.write_table(steps.slice(0, num_rows), folder / "fresh.tmp")
            (folder / "fresh.tmp").replace(folder / "tail.parquet")
            if stop.is_set():
                return

    writer = threading.Thread(target=rewrite)
    writer.start()
    try:
        sql = "SELECT count(*), count(wall_ns), count(DISTINCT run_id) FROM steps"
        told = [ask(running, sql)["rows"][0] for _ in range(6)]
    finally:
        stop.set()
        writer.join()
    assert all(1281 < rows == filled <= 1281 + 400 for rows, filled, _ in told), told


def test_a_file_that_is_no_parquet_is_told_without_its_path(opened, data, run_ids):
    running = opened(data)
    (run_folder(data, run_ids["clean"]) / "events" / "steps" / "torn.parquet").write_bytes(b"PAR1")
    with pytest.raises(SqlFailed) as failed:
        running.run(SqlRequest("FROM steps"))
    assert "torn.parquet" in failed.value.message
    assert str(data) not in str(failed.value)
    assert ask(running, "SELECT count(*) FROM reads")["rows"][0][0] > 0


def cut_short(whole):
    return whole[: len(whole) // 2]


def flip_in_the_footer(whole):
    footer = len(whole) - 8 - int.from_bytes(whole[-8:-4], "little")
    return whole[:footer] + b"\xff" * 4 + whole[footer + 4 :]


def empty(_):
    return b""


def only_the_magic_bytes(_):
    return b"PAR1" * 3


@pytest.mark.parametrize("damage", [cut_short, flip_in_the_footer, empty, only_the_magic_bytes])
def test_one_damaged_segment_is_named(opened, data, run_ids, damage):
    running = opened(data)
    folder = run_folder(data, run_ids["clean"])
    segment = next((folder / "events" / "steps").glob("*.parquet"))
    segment.write_bytes(damage(segment.read_bytes()))
    name = f"events/steps/{segment.name}"
    for run_id, hint in (
        (None, "cascade recover DATA, or ask with run_id"),
        (run_ids["clean"], "cascade recover DATA"),
    ):
        with pytest.raises(SqlFailed) as failed:
            running.run(SqlRequest("select count(*) from Steps", run_id=run_id))
        assert failed.value.message == f"segment {name} of run {run_ids['clean']} is damaged"
        assert failed.value.hint == hint
        assert str(data) not in str(failed.value)
    one = ask(running, "SELECT count(*) FROM steps", run_id=run_ids["kill-one"])
    assert one["rows"] == [[801]]


def test_a_damaged_file_is_looked_for_in_the_runs_alone(data, tmp_path, run_ids):
    runs = data / "runs"
    folder = run_folder(data, run_ids["clean"]) / "events" / "steps"
    secret = tmp_path / "secret.parquet"
    secret.write_bytes(b"no parquet")
    (folder / "a.parquet").symlink_to(secret)
    os.mkfifo(folder / "b.parquet")  # opening it would wait for ever
    (runs / "linked").symlink_to(tmp_path)
    (tmp_path / "events" / "steps").mkdir(parents=True)
    secret.rename(tmp_path / "events" / "steps" / "c.parquet")
    assert damaged_file(runs, ["steps"]) is None
    assert damaged_file(runs, ["steps"], "linked") is None
    (folder / "d.parquet").write_bytes(b"PAR1")
    assert "events/steps/d.parquet" in damaged_file(runs, ["reads", "steps"])
    assert damaged_file(runs, ["reads"]) is None


def test_which_tables_a_statement_may_read():
    views = data_views(RUNS, ())
    assert tables_named("SELECT 1", views) == []
    assert tables_named("select * from Steps join reads using (rank)", views) == ["steps", "reads"]
    assert "regime_timeline" not in tables_named("FROM regime_timeline", views)
    assert tables_named("FROM regime_timeline", views)


def test_few_run_few_wait_and_the_rest_is_told(opened):
    running = opened(at_once=1, num_waiting=1, wait_s=0.2, time_s=3.0)
    slow = "SELECT count(*) FROM range(10000000) a, range(10000000) b"
    ended = []

    def run_slow():
        with pytest.raises(SqlTooLong):
            running.run(SqlRequest(slow))
        ended.append(time.monotonic())

    def run_in_vain():
        with pytest.raises(SqlBusy):
            running.run(SqlRequest("SELECT 1"))

    first = threading.Thread(target=run_slow)
    first.start()
    wait_until(lambda: running._pool._handed_out)
    with pytest.raises(SqlBusy, match="other statements ran"):
        running.run(SqlRequest("SELECT 1"))
    waiting = threading.Thread(target=run_in_vain)
    waiting.start()
    wait_until(lambda: running._pool._waiting == 1)
    with pytest.raises(SqlBusy, match="1 statements run and 1 wait"):
        running.run(SqlRequest("SELECT 1"))
    waiting.join()
    assert not ended
    first.join()
    assert ask(running, "SELECT 42")["rows"] == [[42]]


def test_a_spare_child_that_died_is_replaced(opened):
    running = opened()
    wait_until(running._pool.pids)
    (pid,) = running._pool.pids()
    os.kill(pid, 9)
    wait_until(lambda: not running._pool._spare.alive())
    assert ask(running, "SELECT 42")["rows"] == [[42]]


def test_a_child_that_cannot_start_is_told(opened):
    running = opened(memory_bytes=1 << 20, overhead_bytes=60 << 20)
    with pytest.raises(StoreDown, match="does not start"):
        running.run(SqlRequest("SELECT 1"))


def test_nothing_is_left_behind(opened, shared_data):
    before = everything_under(shared_data)
    running = opened()
    place = running._place.path
    for sql in ("SELECT 1", "SELECT nothing"):
        with suppress(SqlFailed):
            running.run(SqlRequest(sql))
    assert everything_under(shared_data) == before
    assert [p.name for p in place.iterdir()] == ["runs"]
    running.close()
    assert not set(running._pool.pids())
    assert not place.exists()
    with pytest.raises(SqlBusy, match="closing"):
        running.run(SqlRequest("SELECT 1"))


def test_closing_ends_a_statement_at_work(opened):
    running = opened(time_s=60.0)
    failed = []

    def run():
        with pytest.raises((SqlTooLong, SqlFailed)) as error:
            running.run(SqlRequest("SELECT count(*) FROM range(10000000) a, range(10000000) b"))
        failed.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    wait_until(lambda: any(child.ready for child in running._pool._handed_out))
    pids = {child.pid for child in running._pool._handed_out}
    running.close()
    thread.join(20)
    assert failed and not pids & children()


def test_a_child_has_an_empty_environment_and_no_files_of_ours(opened, tmp_path, monkeypatch):
    monkeypatch.setenv("CASCADE_TOKEN", "secret")
    with (tmp_path / "open").open("w") as ours:
        os.set_inheritable(ours.fileno(), True)
        running = opened()
        wait_until(running._pool.pids)
        (pid,) = running._pool.pids()
        child = Path("/proc") / str(pid)
        running._pool._spare.wait_ready(time.monotonic() + 20)
        assert b"secret" not in (child / "environ").read_bytes()
        targets = {str(fd.readlink()) for fd in (child / "fd").iterdir()}
    assert str(tmp_path / "open") not in targets
    kinds = {t.split(":")[0] for t in targets if not t.startswith("anon_inode")}
    assert kinds <= {"pipe", "/dev/null"}
    assert (child / "cwd").readlink() == running._place.path
    assert os.getsid(pid) == pid
    held = (child / "limits").read_text()
    assert {"Max file size": "0", "Max core file size": "0"}.items() <= {
        line[:25].strip(): line[26:].split()[0] for line in held.splitlines()
    }.items()


def test_health_says_what_the_kernel_gives(opened):
    running = opened()
    ask(running, "SELECT 1")
    with pytest.raises(SqlRefused):
        running.run(SqlRequest("SET threads = 1"))
    told = running.health()
    assert told.landlock == (landlock.abi() > 0)
    assert (told.num_statements, told.num_failed, told.num_killed) == (2, 1, 0)


def test_without_landlock_it_works_and_says_so(opened, monkeypatch):
    monkeypatch.setattr(service_module.landlock, "abi", lambda: 0)
    running = opened()
    assert running.health().landlock is False
    assert ask(running, "SELECT count(*) FROM steps")["rows"] == [[1281]]


def test_a_small_question_to_a_warm_child_is_quick(opened):
    running = opened()
    took = []
    for _ in range(5):
        wait_until(lambda: running._pool._spare is not None)
        running._pool._spare.wait_ready(time.monotonic() + 20)
        started = time.monotonic()
        ask(running, "SELECT count(*) FROM steps")
        took.append(time.monotonic() - started)
    # 30 to 50 ms on a quiet machine; tests share theirs
    assert statistics.median(took) < 0.5, took


def test_what_a_killed_collector_left_is_removed_and_what_is_in_use_is_not(
    opened, tmp_path, monkeypatch
):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    left = tmp_path / "cascade-sql-left"
    left.mkdir()
    (left / "runs").symlink_to(tmp_path / "gone")
    (tmp_path / "cascade-sql-other").mkdir()  # being made, or of somebody else
    first, second = opened(), opened()
    assert not left.exists()
    assert (tmp_path / "cascade-sql-other").exists()
    assert first._place.path.exists() and second._place.path.exists()
    assert ask(first, "SELECT 42")["rows"] == [[42]]
    second.close()
    assert sorted(p.name for p in tmp_path.glob("cascade-sql-*")) == sorted(
        ["cascade-sql-other", first._place.path.name]
    )
