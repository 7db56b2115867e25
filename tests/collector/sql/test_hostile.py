"""Attacks, each on a running service: it goes on answering, nothing is written, nobody is left.

Attacks on files run past the guard as well, so that the locked database and the kernel's limits are
tried by themselves. What the guard alone refuses is in test_guard.py, where no child has to start.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from pathlib import Path

import duckdb
import msgspec
import pyarrow.parquet as pq
import pytest

from cascade_runtime.vocabulary.errors import CascadeError
from collector.data_folder import run_folder
from collector.sql import guard, landlock
from collector.sql.data_views import data_views, present_tables
from collector.sql.errors import SqlFailed, SqlRefused, SqlTooLarge, SqlTooLong
from collector.sql.guard import check
from collector.sql.messages import RUNS, Question
from collector.sql.process import Child
from collector.sql.service import SqlRequest, SqlService
from tests.collector.sql.conftest import SMALL
from tests.collector.sql.processes import children, wait_until
from tests.collector.traces import everything_under

ROOT = Path(__file__).parents[3]
SEGMENT = "runs/{run}/events/steps/{segment}"

FILES = {
    "copy onto a segment": "COPY (SELECT 1) TO '" + SEGMENT + "'",
    "copy in a CTE onto a segment": "WITH x AS (COPY (SELECT 1) TO '" + SEGMENT + "') FROM x",
    "copy to a new file": "COPY (SELECT 1) TO 'runs/evil.csv'",
    "copy a partitioned folder": "COPY (SELECT 1 AS a) TO 'runs/evil' (FORMAT parquet, PARTITION_BY a)",
    "copy to absolute": "COPY (SELECT 1) TO '{data}/runs/evil.parquet' (FORMAT parquet)",
    "copy to the answers' pipe": "COPY (SELECT 1) TO '/dev/stdout'",
    "explain analyze copy": "EXPLAIN ANALYZE COPY (SELECT 1) TO '" + SEGMENT + "'",
    "copy after commit": "COMMIT; COPY (SELECT 1) TO '" + SEGMENT + "'",
    "export": "EXPORT DATABASE 'runs/evil'",
    "attach a new database": "ATTACH 'runs/evil.duckdb' AS evil; CREATE TABLE evil.t AS SELECT 1",
    "attach a segment": "ATTACH '" + SEGMENT + "' AS evil",
    "attach the views": "ATTACH '{data}/views.duckdb' AS evil (READ_ONLY)",
    "read a system file": "SELECT content FROM read_text('/etc/passwd')",
    "read as csv": "FROM read_csv('/etc/passwd', sep = ':', all_varchar = true)",
    "read as json": "FROM read_json('/etc/passwd')",
    "read the environment": "SELECT content FROM read_blob('/proc/self/environ')",
    "read its memory map": "SELECT content FROM read_text('/proc/self/maps')",
    "read the tokens": "SELECT content FROM read_text('{data}/tokens.json')",
    "read the tokens by a way round": "SELECT content FROM read_text('runs/../tokens.json')",
    "read by name": "FROM '/etc/passwd.csv'",
    "sniff": "FROM sniff_csv('/etc/passwd')",
    "parquet metadata outside": "FROM parquet_metadata('{data}/outside.parquet')",
    "read parquet outside": "FROM read_parquet('{data}/outside.parquet')",
    "list files": "FROM glob('/*')",
    "list the data folder": "FROM glob('{data}/*')",
    "list the parent": "FROM glob('runs/../*')",
    "a variable": "SELECT getenv('PATH')",
    "install": "INSTALL httpfs; LOAD httpfs",
    "load a library": "LOAD '/usr/lib/x86_64-linux-gnu/libc.so.6'",
    "the network": "FROM read_parquet('http://127.0.0.1:9/a.parquet')",
    "unlock": "SET enable_external_access = true",
    "unlock the lock": "SET lock_configuration = false",
    "more folders": "SET allowed_directories = ['/']",
    "log to a file": "CALL enable_logging(storage = 'file', storage_path = 'runs/evil')",
    "profile to a file": "PRAGMA profiling_output = 'runs/evil.json'",
    "a secret kept": "CREATE PERSISTENT SECRET s (TYPE s3, KEY_ID 'a', SECRET 'b')",
    "checkpoint": "CHECKPOINT",
    "histogram of a file": "FROM histogram('" + SEGMENT + "', seq)",
    "histogram of a file outside": "FROM histogram('{data}/outside.parquet', seq)",
    "histogram of a view": "FROM histogram('steps', seq)",
    "histogram_values of a file": "FROM histogram_values('" + SEGMENT + "', seq)",
    "a plan of text": "SELECT json_serialize_plan('FROM read_text(''/etc/passwd'')')",
    "by dynamic text": "FROM query('SELECT content FROM read_text(''/etc/' || 'passwd'')')",
    "by serialized text": "FROM json_execute_serialized_sql("
    "json_serialize_sql('SELECT content FROM read_text(''/etc/passwd'')'))",
}

LEAKS = {
    "views": "SELECT sql FROM duckdb_views()",
    "views as sqlite": "SELECT sql FROM sqlite_master",
    "views as the standard": "SELECT view_definition FROM information_schema.views",
    "the plan": "EXPLAIN ANALYZE FROM steps",
    "an error of a file": "FROM read_parquet('runs/nothing/*.parquet')",
    "an error of a type": "SELECT sum(phase) FROM steps",
    "its version": "FROM pragma_version()",
    "its user": "SELECT current_user, session_user, current_database()",
}

BOMBS = {
    "one long call": "SELECT md5(repeat('x', 1500000000))",
    "a large text": "SELECT repeat('x', 2000000000)",
    "cross join": "SELECT count(*) FROM range(1000000000) a, range(1000000000) b, range(1000) c",
    "recursion": "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t) SELECT count(*) FROM t",
    "list of lists": "SELECT range(100000000), range(100000000), range(100000000)",
    "a large aggregate": "SELECT string_agg(range::VARCHAR, ',') FROM range(1000000000)",
    "a large group": "SELECT a.range, b.range, count(*) FROM range(100000) a, range(100000) b GROUP BY ALL",
    "a slow expression": "SELECT regexp_matches(repeat('a', 100000), '(a*)*b' || repeat('(a|aa)+', 50))",
    "slow levenshtein": "SELECT levenshtein(repeat('ab', 200000), repeat('ba', 200000))",
    "2,000 parentheses": "SELECT " + "(" * 2_000 + "1" + ")" * 2_000,
    "100,000 parentheses": "SELECT " + "(" * 100_000 + "1" + ")" * 100_000,
    "deep lists": "SELECT " + "[" * 50_000 + "]" * 50_000,
    "long and": "SELECT 1 WHERE " + "1=1 AND " * 25_000 + "true",
    "deep subqueries": "SELECT * FROM " + "(SELECT * FROM " * 3_000 + "range(1)" + ")" * 3_000,
    "many columns": "SELECT " + ", ".join(f"{i} AS c{i}" for i in range(20_000)),
    "many joins": "SELECT count(*) FROM " + ", ".join(f"range(10) t{i}" for i in range(200)),
    "nested CTEs": "WITH "
    + ", ".join(
        f"t{i} AS (SELECT * FROM t{i - 1} a, t{i - 1} b)" if i else "t0 AS (SELECT 1)"
        for i in range(40)
    )
    + " SELECT count(*) FROM t39",
    "sleep": "SELECT sleep_ms(60000)",
    "a huge decimal": "SELECT " + "9" * 100_000,
}

TEXTS = {
    "nothing": "",
    "several behind unicode": "SELECT 1\u037e DROP VIEW steps",  # Greek question mark
    "a full-width semicolon": "SELECT 1\uff1b DROP VIEW steps",
    "odd spaces": "SELECT\u00a01;\u2003DROP\u3000VIEW steps",
    "a NUL": "SELECT 1\0; DROP VIEW steps",
    "half a character": "SELECT '\ud800'",
    "a named parameter": "SELECT $1, $name",
    "python's variables": "FROM db",
}


@pytest.fixture(scope="module")
def attacked(tmp_path_factory, shared_data):
    """(service, data folder with things worth stealing)."""
    data = tmp_path_factory.mktemp("attacked") / "data"
    shutil.copytree(shared_data, data)
    (data / "tokens.json").write_text('{"token": "s3cret-of-the-collector"}')
    pq.write_table(
        pq.read_table(next(data.glob("runs/*/events/steps/*.parquet"))), data / "outside.parquet"
    )
    running = SqlService(data, SMALL)
    yield running, data
    running.close()
    assert not children() & set(running._pool.pids())


@pytest.fixture
def untouched(attacked):
    """After the attack: no file is other than before, and no child but a spare is left."""
    running, data = attacked
    before = everything_under(data.parent), everything_under(running._place.path)
    others = children() - set(running._pool.pids())
    yield
    assert (everything_under(data.parent), everything_under(running._place.path)) == before
    wait_until(lambda: len(children() - others) <= 1)


@pytest.fixture
def unharmed(attacked, untouched):
    """And the service answers."""
    yield
    assert json.loads(attacked[0].run(SqlRequest("SELECT 42")).body)["rows"] == [[42]]


def filled(attacked, sql):
    """The attack with the names of this data folder in it."""
    _, data = attacked
    segment = next(data.glob("runs/*/events/steps/*.parquet"))
    values = {"{data}": str(data), "{run}": segment.parts[-4], "{segment}": segment.name}
    for name, value in values.items():
        sql = sql.replace(name, value)
    return sql


def test_files_as_a_stranger(attacked):
    views = data_views(RUNS, ())
    with duckdb.connect() as db:
        for sql in FILES.values():
            with pytest.raises(SqlRefused):
                check(db, filled(attacked, sql), views)


@pytest.mark.parametrize("name", ["copy in a CTE onto a segment", "read the tokens", "unlock"])
def test_some_of_them_through_the_service(attacked, unharmed, name):
    with pytest.raises(SqlRefused):
        attacked[0].run(SqlRequest(filled(attacked, FILES[name])))


def test_no_allowed_table_function_is_a_macro():
    """A macro may hand a text to query_table, as histogram does, or to a reader of files."""
    with duckdb.connect() as db:
        macros = db.sql(
            "SELECT function_name FROM duckdb_functions() WHERE function_type = 'table_macro'"
        ).fetchall()
    assert ("histogram",) in macros
    assert not {name for (name,) in macros} & guard._TABLE_FUNCTIONS


HARMLESS = {
    *("checkpoint", "a variable", "list the parent", "attach a segment", "a plan of text"),
    *("histogram of a file", "histogram of a view", "histogram_values of a file"),
}
"""Past the guard these give an answer; that it says nothing and writes nothing is tested all the same."""


@pytest.mark.skipif(
    landlock.abi() == 0, reason="this kernel has no Landlock: the guard stands alone"
)
def test_files_past_the_guard(attacked, untouched):
    running, data = attacked
    views = data_views(RUNS, present_tables(data / "runs"))
    asked = {
        "runs": str(data / "runs"),
        "views": {name: view.sql for name, view in views.items() if name == "steps"},
        "statements": {name: filled(attacked, sql) for name, sql in FILES.items()},
    }
    done = subprocess.run(
        [sys.executable, "-m", "tests.collector.sql.unguarded"],
        input=json.dumps(asked),
        cwd=running._place.path,
        env={"PATH": "/bin", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout.splitlines()[-1])
    assert set(told) == set(FILES)
    assert {name for name, (outcome, _, _) in told.items() if outcome == "ok"} <= HARMLESS, told
    for name, (_, _, body) in told.items():
        for secret in ("root:", "s3cret", "PATH=", 'tokens.json"', "/bin"):
            assert secret not in body, name


@pytest.mark.parametrize("name", LEAKS)
def test_nothing_of_this_machine_is_told(attacked, untouched, name):
    running, data = attacked
    try:
        told = running.run(SqlRequest(LEAKS[name])).body.decode()
    except CascadeError as error:
        told = str(error)
    for secret in (
        str(data),
        str(running._place.path),
        str(Path.home()) + "/",
        "s3cret",
        "/home",
        "/tmp",
    ):
        assert secret not in told


@pytest.mark.parametrize("name", BOMBS)
def test_what_is_too_much_ends_in_time(attacked, unharmed, name):
    running, _ = attacked
    started = time.monotonic()
    try:
        body = running.run(SqlRequest(BOMBS[name])).body
    except (SqlRefused, SqlFailed, SqlTooLong, SqlTooLarge):
        body = b""
    assert len(body) <= SMALL.output_bytes
    # The child's own start is in it, on a machine that others use too.
    assert time.monotonic() - started < 3 * SMALL.time_s + 5


@pytest.mark.parametrize("name", TEXTS)
def test_odd_texts_are_refused_in_words(attacked, unharmed, name):
    with pytest.raises((SqlRefused, SqlFailed)) as refused:
        attacked[0].run(SqlRequest(TEXTS[name]))
    assert refused.value.message and "Traceback" not in str(refused.value)


@pytest.mark.skipif(landlock.abi() == 0, reason="this kernel has no Landlock: links are followed")
def test_a_link_in_runs_does_not_lead_out(shared_data, tmp_path):
    data = tmp_path / "data"
    shutil.copytree(shared_data, data)
    secret = tmp_path / "secret.parquet"
    steps = next(data.glob("runs/*/events/steps/*.parquet"))
    shutil.copy(steps, secret)
    link = run_folder(data, "evil") / "events" / "gaps" / "a.parquet"
    link.parent.mkdir(parents=True)
    link.symlink_to(secret)
    running = SqlService(data, SMALL)
    try:
        with pytest.raises(SqlFailed) as failed:
            running.run(SqlRequest("SELECT count(*) FROM gaps"))
        assert str(tmp_path) not in str(failed.value)
        assert json.loads(running.run(SqlRequest("SELECT count(*) FROM steps")).body)["rows"] == [
            [1281]
        ]
    finally:
        running.close()


def test_the_locked_database_refuses_by_itself_too(attacked, untouched):
    """Where the kernel has no Landlock, DuckDB still opens nothing outside of the runs."""
    running, data = attacked
    setup = msgspec.structs.replace(running._pool._setup, landlock=False)
    child = Child(running._place.path, setup)
    try:
        assert child.wait_ready(time.monotonic() + 30).landlock is False
        question = Question(f"FROM read_text('{data}/tokens.json')", {}, "json", 10, guard=False)
        reply = child.ask(question, time.monotonic() + 10)
    finally:
        child.end()
    assert reply.answer.outcome == "failed"
    assert "Permission Error" in reply.answer.message
