"""healthz, readyz, metrics, and what every answer carries."""

from __future__ import annotations

import pytest
from prometheus_client.parser import text_string_to_metric_families

from collector.sql.service import SqlHealth
from collector.storage._interface import StoreDown
from collector.web.errors import error_headers
from collector.web.front import SAFE_HEADERS
from tests.collector.web.asgi import ask
from tests.collector.web.test_auth import BODIES, ROUTES
from tests.collector.web.test_events import ENCODED, MSGPACK, post


def figures(app):
    answer = ask(app, "GET", "/metrics")
    assert answer.headers["content-type"].startswith("text/plain; version=")
    return {
        (sample.name, *sorted(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(answer.body.decode())
        for sample in family.samples
    }


def test_alive_and_ready(app, store):
    assert ask(app, "GET", "/v1/healthz").json == {"status": "alive"}
    assert ask(app, "GET", "/v1/readyz").json == {"status": "ready"}
    store.trouble = "the disk has gone"
    assert ask(app, "GET", "/v1/healthz").status == 200
    answer = ask(app, "GET", "/v1/readyz")
    assert (answer.status, answer.error["message"]) == (503, "the disk has gone")


def test_not_ready_while_stopping(app):
    app.state.context.stopping = True
    assert ask(app, "GET", "/v1/healthz").status == 200
    answer = ask(app, "GET", "/v1/readyz")
    assert (answer.status, answer.error["code"]) == (503, "stopping")


def test_metrics_count_requests_refusals_and_rows(app):
    for _ in range(3):
        post(app, ENCODED[MSGPACK])
    post(app, b"\xff")
    ask(app, "GET", "/v1/runs/a")
    ask(app, "GET", "/v1/runs/b")
    ask(app, "GET", "/nowhere")
    ask(app, "INVENTED", "/v1/runs")
    found = figures(app)

    def requests(method, route, status):
        labels = (("method", method), ("route", route), ("status", status))
        return found["cascade_http_requests_total", *labels]

    assert requests("POST", "/v1/events", "200") == 3
    assert requests("POST", "/v1/events", "422") == 1
    assert requests("GET", "/v1/runs/{run_id}", "404") == 2
    assert requests("GET", "(none)", "404") == 1
    assert requests("other", "/v1/runs", "405") == 1
    assert found["cascade_http_rejected_total", ("reason", "bad_batch")] == 1
    assert found["cascade_http_request_seconds_count", ("route", "/v1/events")] == 4
    assert found["cascade_http_in_flight",] == 1  # this one
    assert found["cascade_store_rows_total",] == 5
    assert found["cascade_store_up",] == 1
    assert found["cascade_sql_confined",] == 1


def test_metrics_tell_of_statements_that_were_killed_or_run_twice(make_app, sql, monkeypatch):
    told = SqlHealth(landlock=False, num_killed=3, num_retried=5)
    monkeypatch.setattr(sql, "health", lambda: told)
    found = figures(make_app())
    assert found["cascade_sql_confined",] == 0
    assert found["cascade_sql_killed_total",] == 3
    assert found["cascade_sql_retried_total",] == 5


def test_metrics_are_there_when_the_store_is_not(app, store, monkeypatch):
    def stats():
        raise StoreDown("down")

    monkeypatch.setattr(store, "stats", stats)
    found = figures(app)
    assert found["cascade_store_up",] == 0
    assert ("cascade_store_rows_total",) not in found


def test_strange_labels_do_not_break_the_text(app):
    ask(app, "GET", '/v1/"}\n# HELP x')
    assert figures(app)


@pytest.mark.parametrize("route", [*ROUTES, ("GET", "/v1/runs/none")], ids=" ".join)
def test_every_answer_carries_the_safe_headers_and_an_id_of_its_own(app, route):
    body, media = BODIES.get(route, (b"", None))
    first, second = (ask(app, *route, body, [media] if media else []) for _ in range(2))
    assert {n.decode(): v.decode() for n, v in SAFE_HEADERS}.items() <= first.headers.items()
    assert first.headers["x-request-id"] != second.headers["x-request-id"]
    assert "server" not in first.headers


def test_there_are_no_pages_that_load_scripts_from_elsewhere(app):
    assert [ask(app, "GET", path).status for path in ("/docs", "/redoc")] == [404, 404]


def test_a_slash_at_the_end_is_another_path(app):
    assert ask(app, "GET", "/v1/runs/").status == 404


def test_only_busy_errors_say_when_to_come_again():
    assert "retry-after" in error_headers(StoreDown("x"))
