"""What the SQL box shows: examples that work, digits that are right, errors with their place."""

from __future__ import annotations

import msgspec
import pytest

from collector.sql.errors import SqlFailed
from collector.sql.service import SqlAnswer
from dashboard.shell import sql_answer
from dashboard.shell.examples import EXAMPLES
from dashboard.shell.replay import ReplaySql
from dashboard.shell.sql_answer import Refused, Shown, ask
from tests.serving import ROOT


@pytest.fixture(scope="module")
def sql(sample, sources):
    made = ReplaySql(sample, sources.only)
    yield made
    made.close()


def test_the_examples_are_the_questions_of_the_docs():
    page = (ROOT / "docs" / "sql.md").read_text()
    for example in EXAMPLES:
        told = page.partition(f"### {example.question}\n")[2]
        assert f"```sql\n{example.sql}\n```" in told, example.question


@pytest.mark.parametrize("example", EXAMPLES, ids=[e.question for e in EXAMPLES])
def test_every_example_is_answered(sql, sources, example):
    answer = ask(sql, example.sql, sources.only.run_id)
    assert isinstance(answer, Shown), answer


def test_all_digits_are_shown(sql):
    answer = ask(sql, "SELECT 9007199254740993 AS big, 7 AS small, [1, NULL] AS many", None)
    assert answer.rows == [{"c0": "9007199254740993", "c1": 7, "c2": "[1,null]"}]
    assert answer.numbers == [False, True, False]
    assert answer.said.startswith("1 row, ")


def test_all_digits_of_a_decimal_are_shown(sql):
    answer = ask(sql, "SELECT 12345678901234.123456789::DECIMAL(38, 9) AS long, 0.5 AS short", None)
    assert answer.rows == [{"c0": "12345678901234.123456789", "c1": 0.5}]
    assert answer.numbers == [False, True]


def test_of_a_wide_answer_fewer_rows_are_shown(sql):
    columns = ", ".join(f"range AS c{i}" for i in range(200))
    answer = ask(sql, f"SELECT {columns} FROM range(5000)", None)
    assert len(answer.rows) == sql_answer.MOST_CELLS // 200
    assert answer.said.startswith("the first 1,000 of 5,000 rows, ")
    assert answer.truncated


def test_columns_may_share_a_name(sql):
    answer = ask(sql, "SELECT 1 AS a, 2 AS a", None)
    assert answer.rows == [{"c0": 1, "c1": 2}]


def test_the_cap_is_said_with_the_number_behind_it(sql):
    answer = ask(sql, "SELECT range FROM range(25000);", None)
    assert len(answer.rows) == 10_000
    assert answer.said.startswith("the first 10,000 of 25,000 rows, ")


def test_the_cap_is_said_where_the_number_cannot_be_had():
    class Once:
        def run(self, request):
            if "count(*)" in request.sql:
                raise SqlFailed("no")
            columns = [{"name": "a", "type": "INTEGER"}]
            told = {"columns": columns, "rows": [[1]] * 10_000, "truncated": True}
            body = msgspec.json.encode(told)
            return SqlAnswer("application/json", body, True, 0)

    assert ask(Once(), "SELECT 1", None).said.startswith("the first 10,000 rows; there are more")


@pytest.mark.parametrize(
    ("text", "line", "column"),
    [
        ("SELECT 1\nFROM steps\nWHERE WHERE", 3, 7),
        ("SELECT rank,\n  foo\nFROM steps", 2, 3),
        ("SELECT foo, foo FROM steps", None, None),
        ("DROP TABLE steps", None, None),
    ],
)
def test_an_error_says_where(sql, text, line, column):
    answer = ask(sql, text, None)
    assert isinstance(answer, Refused)
    assert (answer.line, answer.column) == (line, column), answer.message


def test_files_are_closed(sql, sample):
    for text in ("SELECT * FROM read_text('/etc/passwd')", f"FROM '{sample}/trace.json'"):
        assert isinstance(ask(sql, text, None), Refused)
    assert sql_answer.CAP == 10_000
