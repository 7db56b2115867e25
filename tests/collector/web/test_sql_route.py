"""POST /v1/sql: what is asked, and how each failure is answered."""

from __future__ import annotations

import json

import pytest

from collector.sql.errors import SqlBusy, SqlFailed, SqlRefused, SqlTooLarge, SqlTooLong
from collector.sql.service import SqlAnswer
from collector.storage._interface import NoSuchRun
from tests.collector.web.asgi import JSON, ask


def put_question(app, body, headers=(JSON,)):
    body = body if isinstance(body, bytes) else json.dumps(body).encode()
    return ask(app, "POST", "/v1/sql", body, headers)


def test_a_question_comes_to_the_service_whole_and_its_answer_back(app, sql, monkeypatch):
    answer = SqlAnswer("text/csv", b"a\n1\n", True, 1)
    monkeypatch.setattr(sql, "run", lambda request: sql.asked.append(request) or answer)
    told = put_question(app, {"sql": "SELECT 1", "run_id": "r", "format": "csv", "limit": 1})
    assert (told.status, told.body) == (200, b"a\n1\n")
    assert told.headers["content-type"] == "text/csv"
    assert (told.headers["cascade-num-rows"], told.headers["cascade-truncated"]) == ("1", "true")
    (asked,) = sql.asked
    assert (asked.sql, asked.run_id, asked.format, asked.limit) == ("SELECT 1", "r", "csv", 1)


@pytest.mark.parametrize(
    "body", [b"", b"{", b"SELECT 1", {}, {"sql": 1}, {"sql": "x", "format": "exe"}, b"[" * 10_000]
)
def test_what_is_no_question(app, sql, body):
    answer = put_question(app, body)
    assert (answer.status, answer.error["code"]) == (422, "bad_request_field")
    assert not sql.asked


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (SqlRefused("no"), 400),
        (SqlFailed("no"), 400),
        (NoSuchRun("no"), 404),
        (SqlTooLong("no"), 408),
        (SqlTooLarge("no"), 413),
        (SqlBusy("no"), 429),
    ],
)
def test_every_failure_has_its_status_and_is_counted(app, sql, error, status):
    sql.fail_with = error
    answer = put_question(app, {"sql": "x"})
    assert answer.status == status
    code = answer.error["code"]
    metrics = ask(app, "GET", "/metrics").body.decode()
    assert f'cascade_sql_statements_total{{outcome="{code}"}} 1.0' in metrics


def test_a_fault_says_nothing_of_the_statement(app, sql, caplog):
    sql.fail_with = RuntimeError("SELECT secret")
    answer = put_question(app, {"sql": "SELECT secret"})
    assert (answer.status, answer.error["code"]) == (500, "fault")
    assert b"secret" not in answer.body
