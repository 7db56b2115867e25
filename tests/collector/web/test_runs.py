"""/v1/runs: the list, one of them, its trace.json, and ids that are none."""

from __future__ import annotations

import msgspec
import pytest

from cascade_runtime.vocabulary.trace_meta import format_trace_meta
from collector.storage._interface import DiskLow, RunDropped, StoreDown
from tests.collector.traces import RUN, make_meta
from tests.collector.web.asgi import JSON, ask
from tests.collector.web.test_events import ENCODED, MSGPACK, post


def put(app, run_id=RUN, body=None, headers=(JSON,), **changes):
    body = format_trace_meta(make_meta(run_id=run_id, **changes)) if body is None else body
    return ask(app, "PUT", f"/v1/runs/{run_id}", body, headers)


def test_a_run_is_made_by_its_trace_json_or_by_its_rows(app):
    assert ask(app, "GET", "/v1/runs").json == {"runs": []}
    assert put(app).status == 204
    post(app, ENCODED[MSGPACK])
    (run,) = ask(app, "GET", "/v1/runs").json["runs"]
    assert (run["run_id"], run["num_rows"], run["mode"]) == (RUN, 5, "enforce")


def test_one_run_tells_its_trace_json_and_how_far_it_is_stored(app):
    put(app, ended_ns=None, clean_end=None)
    post(app, ENCODED[MSGPACK])
    answer = ask(app, "GET", f"/v1/runs/{RUN}").json
    assert answer["run"]["state"] == "live"
    assert answer["meta"]["policy"] is None
    assert answer["marks"] == [{"run_id": RUN, "rank": 0, "incarnation": 0, "seq": 4}]
    put(app)
    assert ask(app, "GET", f"/v1/runs/{RUN}").json["run"]["state"] == "ended"


def test_a_run_that_is_not_there(app):
    answer = ask(app, "GET", "/v1/runs/none")
    assert (answer.status, answer.error["code"]) == (404, "no_such_run")


def test_the_path_and_the_body_agree(app, store):
    body = format_trace_meta(make_meta(run_id="other"))
    answer = put(app, body=body)
    assert (answer.status, answer.error["code"]) == (422, "bad_request_field")
    assert "other" in answer.error["where"]
    assert not store.metas


NO_METAS = [b"", b"{", b"[]", b"{}", b"\xff", b"[" * 100_000, b'{"schema_version": 99}']
NO_METAS += [msgspec.json.encode({**msgspec.to_builtins(make_meta()), "world_size": "two"})]


@pytest.mark.parametrize("body", NO_METAS)
def test_a_body_that_is_no_trace_json(app, store, body):
    answer = put(app, body=body)
    assert (answer.status, answer.error["code"]) == (422, "bad_trace")
    assert not store.metas


@pytest.mark.parametrize("headers", [(), [("content-type", "text/plain")]])
def test_it_must_say_that_it_is_json(app, headers):
    assert put(app, headers=headers).status == 415


@pytest.mark.parametrize(
    ("error", "status"), [(DiskLow("x"), 507), (StoreDown("x"), 503), (RunDropped("x"), 410)]
)
def test_the_store_s_refusals(app, store, error, status):
    store.refuse_with = error
    assert put(app).status == status


def test_no_new_run_while_stopping(app):
    app.state.context.stopping = True
    assert put(app).status == 503
    assert ask(app, "GET", "/v1/runs").status == 200


TRICKS = ["%2e%2e", "..", "%2e", "%2e%2e%2f%2e%2e%2fetc", "..%2f..", "a%2fb", "a/b", "%00", "a%00b"]
TRICKS += ["a%0d%0aset-cookie:x", "x" * 201, "x" * 5_000, "%7f", "%c2%85", "%1b%5b2J", "", "%2f"]


@pytest.mark.parametrize("method", ["GET", "PUT"])
@pytest.mark.parametrize("trick", TRICKS)
def test_tricks_with_paths_find_nothing(app, store, method, trick):
    answer = ask(app, method, f"/v1/runs/{trick}", b"{}", [JSON])
    assert answer.status in (404, 422)
    assert answer.error
    assert len(answer.body) < 1_000
    assert not store.metas


@pytest.mark.parametrize(
    "run_id", ["a b", "é", "名前", "a.b", "-", "%", "a%b", "x" * 200, "?", "#"]
)
def test_odd_ids_that_are_ids(app, run_id):
    from urllib.parse import quote

    path = f"/v1/runs/{quote(run_id, safe='')}"
    body = format_trace_meta(make_meta(run_id=run_id))
    assert ask(app, "PUT", path, body, [JSON]).status == 204
    assert ask(app, "GET", path).json["run"]["run_id"] == run_id
