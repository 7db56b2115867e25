"""The OpenAPI document says what there is, and the app does what it says."""

from __future__ import annotations

import contextlib

import msgspec
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis.checks import not_a_server_error
from schemathesis.generation import GenerationMode
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)
from starlette.routing import Route

from collector.hot.options import StoreOptions
from collector.sql.limits import SqlLimits
from collector.sql.service import SqlService
from collector.storage.embedded import EmbeddedStore
from collector.web.app import create_app
from collector.web.errors import BodyTooLarge, Stopping, code_of
from collector.web.tokens import Tokens
from collector.wire.batch import ARROW, MSGPACK, NDJSON
from tests.collector.traces import make_meta
from tests.collector.web.asgi import ask
from tests.collector.web.stores import EchoSql, MemoryStore
from tests.collector.web.test_auth import ROUTES
from tests.collector.web.test_events import ENCODED

CHECKS = (
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
)


@pytest.fixture(scope="module")
def document(tmp_path_factory):
    app = create_app(MemoryStore(), EchoSql(), Tokens(tmp_path_factory.mktemp("data")))
    return ask(app, "GET", "/openapi.json").json


def test_every_route_is_in_the_document(document, app):
    routes = {
        (method, route.path)
        for route in app.routes
        if isinstance(route, Route) and route.path != "/openapi.json"
        for method in (route.methods or set()) - {"HEAD"}
    }
    told = {(m.upper(), path) for path, every in document["paths"].items() for m in every}
    assert routes
    assert routes <= told
    assert {(method, path) for method, path in ROUTES if method in ("POST", "PUT")} - {
        ("POST", "/nowhere")
    } <= {(m, p.replace("{run_id}", "run-1")) for m, p in told}


def test_every_reference_is_there(document):
    text = msgspec.json.encode(document).decode()
    names = {part.partition('"')[0] for part in text.split("#/components/schemas/")[1:]}
    assert names
    assert names <= document["components"]["schemas"].keys()


def test_every_error_has_the_one_schema(document):
    for operations in document["paths"].values():
        for operation in operations.values():
            for status, answer in operation["responses"].items():
                if int(status) >= 400:
                    schema = answer["content"]["application/json"]["schema"]
                    assert schema == {"$ref": "#/components/schemas/Error"}


def test_every_body_form_and_answer_of_events_is_documented(document):
    events = document["paths"]["/v1/events"]["post"]
    assert events["requestBody"]["content"].keys() == {MSGPACK, NDJSON, ARROW}
    wanted = {200, 400, 401, 403, 408, 410, 413, 415, 421, 422, 429, 500, 503, 507}
    assert set(map(int, events["responses"])) == wanted


def test_only_the_open_routes_need_no_token(document):
    free = {
        path
        for path, every in document["paths"].items()
        if every.get("get", {}).get("security") == []
    }
    assert free == {"/v1/healthz", "/v1/readyz"}


def test_codes_are_names():
    assert (code_of(BodyTooLarge("x")), code_of(Stopping("x"))) == ("body_too_large", "stopping")


# --- what schemathesis finds ----------------------------------------------------------------------

schemathesis.openapi.media_type(MSGPACK, st.just(ENCODED[MSGPACK]) | st.binary(max_size=200))
schemathesis.openapi.media_type(NDJSON, st.just(ENCODED[NDJSON]) | st.binary(max_size=200))
schemathesis.openapi.media_type(ARROW, st.just(ENCODED[ARROW]) | st.binary(max_size=200))


OPERATIONS = [
    ("/v1/events", "POST"),
    ("/v1/runs", "GET"),
    ("/v1/runs/{run_id}", "GET"),
    ("/v1/runs/{run_id}", "PUT"),
    ("/v1/sql", "POST"),
    ("/v1/healthz", "GET"),
    ("/v1/readyz", "GET"),
    ("/metrics", "GET"),
]


@pytest.fixture(scope="module")
def fuzzed(tmp_path_factory):
    store = MemoryStore()
    store.put_meta(make_meta())
    app = create_app(store, EchoSql(), Tokens(tmp_path_factory.mktemp("data")))
    local = {"host": "localhost"}
    return schemathesis.openapi.from_asgi("/openapi.json", app, headers=local)


def test_every_operation_is_tried(document):
    told = {(path, m.upper()) for path, every in document["paths"].items() for m in every}
    assert told == set(OPERATIONS)


RIGHT_AND_WRONG = [
    pytest.param(path, method, mode, id=f"{method} {path} {mode.name.lower()}")
    for path, method in OPERATIONS
    for mode in GenerationMode
    # the others take nothing that could be wrong
    if mode is GenerationMode.POSITIVE or "{" in path or method == "POST"
]


@pytest.fixture(scope="module")
def fuzzed_whole(tmp_path_factory):
    """The same over the real store and the real SQL service."""
    data = tmp_path_factory.mktemp("whole") / "data"
    with contextlib.ExitStack() as opened:
        store = EmbeddedStore(data, StoreOptions(publish_every_s=3600.0))
        opened.callback(store.close)
        store.put_meta(make_meta())
        sql = SqlService(data, SqlLimits(time_s=2.0))
        opened.callback(sql.close)
        app = create_app(store, sql, Tokens(data))
        yield schemathesis.openapi.from_asgi("/openapi.json", app, headers={"host": "localhost"})


@pytest.mark.parametrize(("path", "method", "mode"), RIGHT_AND_WRONG)
def test_the_app_does_what_the_document_says(fuzzed, path, method, mode):
    tried(fuzzed[path][method], mode, 40)


@pytest.mark.parametrize(("path", "method", "mode"), RIGHT_AND_WRONG)
def test_the_whole_collector_does_what_the_document_says(fuzzed_whole, path, method, mode):
    # Each statement that is taken costs a process.
    tried(fuzzed_whole[path][method], mode, 8 if path == "/v1/sql" else 15)


def tried(operation, mode, num_examples):
    """Call an operation with what schemathesis makes up, and check every answer."""

    @given(case=operation.as_strategy(generation_mode=mode))
    @settings(
        max_examples=num_examples,
        deadline=None,
        derandomize=True,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    def each(case):
        case.call_and_validate(checks=list(CHECKS), headers={"host": "localhost"})

    each()
