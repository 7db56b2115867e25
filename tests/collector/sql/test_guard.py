"""Which statements are questions to the views. No child process: the walls behind have tests of their own."""

from __future__ import annotations

import duckdb
import pytest

from collector.sql.data_views import data_views
from collector.sql.errors import SqlFailed, SqlRefused
from collector.sql.guard import check, only_asks

QUESTIONS = {
    "SELECT 1": set(),
    "SELECT 1;": set(),
    "-- a comment\nSELECT 1 /* another */": set(),
    "VALUES (1), (2)": set(),
    "FROM steps": {"steps"},
    "TABLE steps": {"steps"},
    'SELECT * FROM "Steps"': {"steps"},
    "SELECT * FROM memory.main.steps": {"steps"},
    "DESCRIBE steps": {"steps"},
    "SUMMARIZE steps": {"steps"},
    "EXPLAIN SELECT * FROM steps": {"steps"},
    " /* a */ -- b\n explain/**/ANALYZE -- c\n SELECT * FROM steps": {"steps"},
    "EXPLAIN (ANALYZE) FROM steps": {"steps"},
    "WITH a AS (FROM steps), b AS (FROM a) SELECT * FROM b": {"steps"},
    'WITH "my own" AS MATERIALIZED (SELECT 1) FROM "my own"': set(),
    "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t WHERE n < 9) FROM t": set(),
    "SELECT * FROM steps JOIN reads USING (rank), unnest([1]) u, range(3), LATERAL (SELECT 1)": {
        "steps",
        "reads",
    },
    "SELECT (SELECT max(seq) FROM reads r WHERE r.rank = s.rank) FROM steps s": {"steps", "reads"},
    "SELECT * FROM steps WHERE rank IN (SELECT rank FROM gaps)": {"steps", "gaps"},
    "SELECT * FROM steps ASOF JOIN gpu ON steps.wall_ns >= gpu.wall_ns": {"steps", "gpu"},
    "(SELECT 1) UNION ALL (SELECT rank FROM steps) ORDER BY 1 LIMIT 3": {"steps"},
    "SELECT * FROM (PIVOT steps ON phase IN ('begin', 'end') USING count(*) GROUP BY rank)": {
        "steps"
    },
    "SELECT row_number() OVER (PARTITION BY rank) FROM steps QUALIFY true": {"steps"},
    "SELECT list_transform([1], x -> x + 1), '/etc/passwd', 'read_text(1)'": set(),
    "FROM incidents": {"incidents"},
}
CATALOG = [
    "SHOW TABLES",
    "SHOW ALL TABLES",
    "SELECT * FROM information_schema.columns",
    "FROM duckdb_columns()",
    "SELECT view_name, comment FROM duckdb_views()",
]
REFUSED = [
    "",
    "   ",
    "-- nothing",
    ";;",
    "SELECT 1; SELECT 2",
    "SELECT 1; DROP VIEW steps",
    "SELECT 1 \0",
    "BEGIN",
    "COMMIT",
    "ROLLBACK",
    "SET threads = 1",
    "RESET threads",
    "PRAGMA database_list",
    "CALL pragma_version()",
    "ATTACH ':memory:' AS x",
    "DETACH memory",
    "USE memory",
    "INSTALL httpfs",
    "LOAD httpfs",
    "CREATE TABLE t AS SELECT 1",
    "CREATE MACRO m() AS 1",
    "CREATE SECRET s (TYPE http)",
    "DROP VIEW steps",
    "INSERT INTO steps SELECT * FROM steps",
    "UPDATE steps SET seq = 1",
    "DELETE FROM steps",
    "TRUNCATE steps",
    "MERGE INTO steps USING reads ON true WHEN MATCHED THEN DELETE",
    "COPY steps TO 'x.csv'",
    "COPY (SELECT 1) TO '/dev/stdout'",
    "EXPORT DATABASE 'x'",
    "IMPORT DATABASE 'x'",
    "VACUUM",
    "CHECKPOINT",
    "PREPARE p AS SELECT 1",
    "EXECUTE p",
    "PIVOT steps ON phase USING count(*)",
    "COMMENT ON VIEW steps IS 'x'",
    "EXPLAIN COPY steps TO 'x'",
    "EXPLAIN ANALYZE COPY steps TO 'x'",
    "EXPLAIN/**/ANALYZE COPY steps TO 'x'",
    "EXPLAIN (ANALYZE) DELETE FROM steps",
    "EXPLAIN (FORMAT json) SELECT 1",
    "WITH x AS (COPY steps TO 'x') FROM x",
    "WITH x AS (DELETE FROM steps RETURNING *) FROM x",
    "WITH x AS (INSERT INTO steps FROM steps RETURNING *) FROM x",
    "WITH x AS (UPDATE steps SET seq = 1 RETURNING *) FROM x",
    "EXPLAIN ANALYZE WITH x AS (DELETE FROM steps RETURNING *) FROM x",
    "SELECT (WITH x AS (COPY steps TO 'x') SELECT count(*) FROM x)",
    "SELECT * FROM nothing_of_that_name",
    "SELECT * FROM '/etc/passwd'",
    'SELECT * FROM "runs/x/events/steps/a.parquet"',
    "SELECT * FROM 'https://example.com/a.parquet'",
    "DESCRIBE '/etc/passwd'",
    "SUMMARIZE 'a.csv'",
    "SHOW DATABASES",
    "SHOW threads",
    'WITH "/etc/passwd" AS (SELECT 1) FROM "/etc/passwd"',
    'WITH "a.csv" AS (SELECT 1) SELECT (SELECT count(*) FROM "a.csv")',
    "FROM read_text('/etc/passwd')",
    "FROM read_blob('/proc/self/environ')",
    "FROM read_csv('/etc/passwd')",
    "FROM read_json('/etc/passwd')",
    "FROM read_parquet('runs/*/events/steps/*.parquet')",
    "FROM parquet_scan('runs/*/events/steps/*.parquet')",
    "FROM parquet_metadata('runs/*/events/steps/*.parquet')",
    "FROM sniff_csv('/etc/passwd')",
    "FROM glob('/*')",
    "FROM system.main.glob('/*')",
    "FROM query('SELECT 1')",
    "FROM query_table('steps')",
    "FROM json_execute_serialized_sql(json_serialize_sql('SELECT 1'))",
    "FROM duckdb_settings()",
    "FROM duckdb_secrets()",
    "FROM duckdb_extensions()",
    "FROM duckdb_databases()",
    "FROM duckdb_logs",
    "FROM pg_catalog.pg_settings",
    "FROM pragma_database_list()",
    "FROM pragma_storage_info('steps')",
    "FROM which_secret('a', 'http')",
    "FROM enable_logging()",
    "FROM checkpoint()",
    "FROM python_map_function()",
    "SELECT getenv('HOME')",
    "SELECT current_setting('temp_directory')",
    "SELECT write_log('x')",
    "SELECT sleep_ms(100000)",
    "SELECT rank FROM steps WHERE getenv('x') = 'y'",
    "SELECT list_transform(['HOME'], x -> getenv(x))",
    "SELECT rank FROM steps ORDER BY getenv('x')",
    "SELECT count(*) FILTER (getenv('x') = 'y') FROM steps",
    "SELECT 1 LIMIT (SELECT count(*) FROM read_text('/etc/passwd'))",
    "SELECT CASE WHEN (SELECT count(*) FROM glob('/*')) > 1 THEN 1 END",
]


@pytest.fixture(scope="module")
def db():
    with duckdb.connect() as connection:
        yield connection


@pytest.fixture(scope="module")
def views():
    return data_views("runs", ())


@pytest.mark.parametrize("sql", QUESTIONS)
def test_a_question_passes_and_its_views_are_known(db, views, sql):
    checked = check(db, sql, views)
    assert checked.views == QUESTIONS[sql]
    assert not checked.catalog


@pytest.mark.parametrize("sql", CATALOG)
def test_asking_what_there_is_passes(db, views, sql):
    assert check(db, sql, views).catalog


@pytest.mark.parametrize("sql", REFUSED)
def test_all_else_is_refused_in_words(db, views, sql):
    with pytest.raises(SqlRefused) as refused:
        check(db, sql, views)
    assert refused.value.message and "\n" not in refused.value.message


@pytest.mark.parametrize("sql", ["SELEC 1", "SELECT (", "SELECT 'a", "SELECT * INTO x FROM steps"])
def test_what_is_no_sql_fails_in_duckdbs_words(db, views, sql):
    with pytest.raises(SqlFailed, match="Parser Error"):
        check(db, sql, views)


def test_every_function_of_this_duckdb_that_reads_files_or_runs_text_is_refused(db, views):
    """A new DuckDB may bring new ones: what is not known to be harmless must not pass."""
    found = db.execute(
        "SELECT DISTINCT function_name FROM duckdb_functions()"
        " WHERE function_type IN ('table', 'pragma', 'table_macro')"
    ).fetchall()
    passed = set()
    for (name,) in found:
        try:
            check(db, f"SELECT * FROM {name}()", views)
        except (SqlRefused, SqlFailed):
            continue
        passed.add(name)
    suspicious = ("read", "scan", "query", "execute", "setting", "secret", "glob", "file", "log")
    assert not [name for name in passed if any(word in name for word in suspicious)]
    assert passed <= {
        *("duckdb_columns", "duckdb_functions", "duckdb_keywords", "duckdb_tables", "duckdb_types"),
        *("duckdb_views", "generate_series", "json_each"),
        *("json_tree", "pragma_version", "range", "repeat", "repeat_row", "summary", "unnest"),
    }


def test_on_ones_own_machine_files_may_be_read_and_nothing_written(db):
    assert only_asks(db, "FROM 'a.parquet'").sql == "FROM 'a.parquet'"
    with pytest.raises(SqlRefused, match="COPY"):
        only_asks(db, "WITH x AS (COPY (SELECT 1) TO 'a.parquet') FROM x")
