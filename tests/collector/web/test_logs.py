"""Logs: one JSON object a line, nothing secret, nothing that a stranger can break."""

from __future__ import annotations

import io
import json
import logging

import pytest

from collector.web.logs import logger, set_up_logs
from collector.web.tokens import Tokens
from tests.collector.web.asgi import ask
from tests.collector.web.test_events import ENCODED, MSGPACK, post


@pytest.fixture
def stderr():
    names = ("cascade", "uvicorn", "uvicorn.error")
    before = [(n, (g := logging.getLogger(n)).handlers[:], g.propagate, g.level) for n in names]
    yield io.StringIO()
    for name, handlers, propagate, level in before:
        root = logging.getLogger(name)
        root.handlers[:], root.propagate = handlers, propagate
        root.setLevel(level)


def lines(stream):
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_a_request_is_one_line_of_json(app, stderr):
    set_up_logs("json", stderr)
    answer = ask(app, "GET", "/v1/runs?token=secret")
    (line,) = lines(stderr)
    assert line.pop("ms") >= 0
    assert line.pop("time").endswith("+00:00")
    assert line == {
        "level": "info",
        "message": "request",
        "request_id": answer.headers["x-request-id"],
        "method": "GET",
        "path": "/v1/runs",
        "status": 200,
    }


def test_not_on_a_terminal_it_is_json(app, stderr):
    set_up_logs(None, stderr)
    ask(app, "GET", "/v1/runs")
    assert lines(stderr)


def test_what_comes_every_second_is_logged_when_it_fails_only(app, stderr, store):
    set_up_logs("json", stderr)
    post(app, ENCODED[MSGPACK])
    ask(app, "GET", "/v1/healthz")
    ask(app, "GET", "/metrics")
    assert lines(stderr) == []
    post(app, b"\xff")
    store.trouble = "x"
    ask(app, "GET", "/v1/readyz")
    told = [(line["level"], line["status"], line["error"]) for line in lines(stderr)]
    assert told == [("warning", 422, "bad_batch"), ("error", 503, "store_down")]


def test_no_token_no_body_no_header_comes_near(data, make_app, stderr):
    tokens = Tokens(data)
    token = tokens.add("t", "all")
    app = make_app(tokens=tokens)
    set_up_logs("json", stderr)
    body = b'["steps", "in the body"]'
    headers = [("content-type", "application/x-ndjson"), ("cookie", "in-a-cookie")]
    for value in (f"Bearer {token}", f"Basic {token}", f"Bearer {token}x"):
        ask(app, "POST", f"/v1/events?t={token}", body, [("authorization", value), *headers])
    text = stderr.getvalue()
    assert len(lines(stderr)) == 3
    assert token not in text
    assert "in the body" not in text
    assert "in-a-cookie" not in text


@pytest.mark.parametrize("form", ["json", "text"])
def test_a_path_cannot_forge_a_line_or_speak_to_the_terminal(app, stderr, form):
    set_up_logs(form, stderr)
    ask(app, "GET", "/x%0a%7b%22level%22:%22forged%22%7d%1b%5b2J%e2%80%a8")
    assert len(stderr.getvalue().splitlines()) == 1
    assert "\x1b" not in stderr.getvalue()


def test_a_fault_has_its_traceback_in_the_log_as_one_line(app, store, stderr):
    set_up_logs("json", stderr)
    store.fail_with = ZeroDivisionError("x")
    answer = post(app, ENCODED[MSGPACK])
    fault, request = lines(stderr)
    assert fault["request_id"] == request["request_id"] == answer.headers["x-request-id"]
    assert "ZeroDivisionError: x" in fault["traceback"]
    assert (request["level"], request["error"]) == ("error", "fault")


def test_text_for_a_person(app, stderr):
    set_up_logs("text", stderr)
    ask(app, "GET", "/v1/runs/none")
    line = stderr.getvalue()
    assert " warning request request_id=" in line
    assert "status=404" in line


def test_uvicorn_s_complaints_are_in_the_same_form(stderr):
    set_up_logs("json", stderr)
    logging.getLogger("uvicorn.error").warning("something %s", "odd")
    logging.getLogger("uvicorn.error").info("Started server process")
    assert [line["message"] for line in lines(stderr)] == ["something odd"]


def test_any_field_can_be_logged(stderr):
    set_up_logs("json", stderr)
    logger.info("x", extra={"fields": {"what": {1: object, (): 2}, "bad": "\ud800"}})
    assert lines(stderr)
