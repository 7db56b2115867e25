"""Who may ask for what: every route by every kind of token, and no token at all."""

from __future__ import annotations

import pytest

from collector.web.auth import OPEN
from collector.web.tokens import Tokens
from collector.wire.batch import MSGPACK
from tests.collector.traces import make_meta
from tests.collector.web.asgi import JSON, ask
from tests.collector.web.test_events import ENCODED

META = (
    b'{"schema_version":1,"run_id":"run-1","name":"n","world_size":1,"mode":"observe","policy":null,'
    b'"created_ns":1,"recorded_tables":[],"tool_versions":{}}'
)
ROUTES = {
    ("GET", "/v1/healthz"): ("", 200),
    ("GET", "/v1/readyz"): ("", 200),
    ("GET", "/metrics"): ("read", 200),
    ("GET", "/openapi.json"): ("read", 200),
    ("GET", "/v1/runs"): ("read", 200),
    ("GET", "/v1/runs/run-1"): ("read write", 200),
    ("PUT", "/v1/runs/run-1"): ("write", 204),
    ("POST", "/v1/events"): ("write", 200),
    ("POST", "/v1/sql"): ("read", 200),
    ("GET", "/nowhere"): ("read", 404),
    ("POST", "/nowhere"): ("write", 404),
    ("DELETE", "/v1/runs/run-1"): ("write", 405),
    ("OPTIONS", "/v1/events"): ("write", 405),
}
BODIES = {
    ("PUT", "/v1/runs/run-1"): (META, JSON),
    ("POST", "/v1/events"): (ENCODED[MSGPACK], ("content-type", MSGPACK)),
    ("POST", "/v1/sql"): (b'{"sql": "SELECT 1"}', JSON),
}
TOKENS = ("read", "write", "all", "none", "wrong", "empty", "basic", "bare", "two", "long", "odd")
routes = pytest.mark.parametrize("route", ROUTES, ids=" ".join)


@pytest.fixture
def tokens(data):
    made = Tokens(data)
    return {scope: made.add(scope, scope) for scope in ("read", "write", "all")}


def send(app, route, *authorization, host="127.0.0.1:7654"):
    body, media = BODIES.get(route, (b"", None))
    headers = [("authorization", value) for value in authorization]
    return ask(app, *route, body, headers + ([media] if media else []), host=host)


def given(kind, tokens):
    """Values of Authorization headers."""
    return {
        "none": [],
        "wrong": ["Bearer cascade_" + "x" * 43],
        "empty": ["Bearer "],
        "basic": ["Basic " + tokens["all"]],
        "bare": [tokens["all"]],
        "two": ["Bearer " + tokens["all"]] * 2,
        "long": ["Bearer " + tokens["all"] + "x" * 10_000],
        "odd": ["Bearer \xff\xfe"],
        **{scope: [f"Bearer {token}"] for scope, token in tokens.items()},
    }[kind]


@routes
@pytest.mark.parametrize("kind", TOKENS)
def test_every_route_by_every_token(make_app, store, tokens, route, kind):
    store.metas["run-1"] = make_meta()
    wanted, good = ROUTES[route]
    answer = send(make_app(), route, *given(kind, tokens))
    may = {"read": {"read"}, "write": {"write"}, "all": {"read", "write"}}.get(kind)
    if not wanted or (may and may & set(wanted.split())):
        assert answer.status == good
    elif may:
        assert (answer.status, answer.error["code"]) == (403, "wrong_scope")
        assert wanted in answer.error["message"]
    else:
        assert (answer.status, answer.error["code"]) == (401, "no_token")
        assert answer.headers["www-authenticate"].startswith("Bearer")


@routes
def test_nothing_is_done_and_nothing_told_without_a_token(make_app, store, sql, tokens, route):
    answer = send(make_app(), route)
    assert (not store.batches, not store.metas, not sql.asked) == (True, True, True)
    for token in tokens.values():
        assert token.encode() not in answer.body


@routes
def test_on_loopback_without_tokens_all_is_open(app, store, route):
    store.metas["run-1"] = make_meta()
    assert send(app, route).status == ROUTES[route][1]


@routes
def test_a_collector_that_others_reach_needs_a_token_even_when_there_is_none(make_app, route):
    app = make_app(settings={"loopback": False})
    assert (send(app, route).status == 401) == (route[1] not in OPEN)


@pytest.mark.parametrize("case", ["bearer", "BEARER", "Bearer "])
def test_the_scheme_s_case_and_spaces_do_not_matter(make_app, tokens, case):
    assert send(make_app(), ("GET", "/v1/runs"), f" {case} {tokens['read']} ").status == 200


GOOD_HOSTS = ["localhost", "LOCALHOST:1", "127.0.0.1", "127.0.0.1:7654", "[::1]", "[::1]:7654"]
BAD_HOSTS = ["evil.example", "evil.example:7654", "localhost.evil.example", "127.0.0.1.nip.io"]
BAD_HOSTS += ["", "127.0.0.1:7654:1", "localhost@evil.example", "[::2]", "::1", "x" * 9_000, None]


@pytest.mark.parametrize("host", GOOD_HOSTS)
def test_this_machine_s_names_are_answered(app, host):
    assert send(app, ("GET", "/v1/runs"), host=host).status == 200


@routes
@pytest.mark.parametrize("host", BAD_HOSTS)
def test_a_name_that_was_made_to_point_here_is_not(app, store, route, host):
    answer = send(app, route, host=host)
    assert (answer.status, answer.error["code"]) == (421, "wrong_host")
    assert len(answer.body) < 1_000
    assert not store.batches


PROXIED = [
    *("Forwarded", "Via", "X-Real-IP", "X-Forwarded-For", "X-Forwarded-Host"),
    *("X-Forwarded-Proto", "X-Forwarded-Port", "X-Forwarded-Server", "X-Forwarded-"),
]


@routes
@pytest.mark.parametrize("header", PROXIED)
def test_without_a_token_nothing_is_answered_that_came_through_a_proxy(
    app, store, sql, route, header
):
    """nginx's own Host is the address of proxy_pass, which is this machine's."""
    body, media = BODIES.get(route, (b"", None))
    headers = [(header.lower(), "203.0.113.7"), *([media] if media else [])]
    answer = ask(app, *route, body, headers)
    assert (answer.status, answer.error["code"]) == (421, "through_proxy")
    assert header.lower() in answer.error["where"]
    assert "--new-token" in answer.error["hint"]
    assert not store.batches
    assert not sql.asked


@pytest.mark.parametrize("header", PROXIED)
def test_with_a_token_a_proxy_will_do(make_app, tokens, header):
    headers = [("authorization", f"Bearer {tokens['read']}"), (header.lower(), "203.0.113.7")]
    assert ask(make_app(), "GET", "/v1/runs", headers=headers).status == 200


def test_two_hosts_are_none(app):
    assert ask(app, "GET", "/v1/runs", headers=[("host", "localhost")]).status == 421


def test_with_a_token_any_name_will_do(make_app, tokens):
    token = f"Bearer {tokens['read']}"
    assert send(make_app(), ("GET", "/v1/runs"), token, host="my.cluster:80").status == 200


@pytest.mark.parametrize("media", ["text/plain", "application/x-www-form-urlencoded"])
@pytest.mark.parametrize("path", ["/v1/events", "/v1/sql"])
def test_what_a_page_may_post_without_asking_is_refused(app, store, sql, path, media):
    headers = [("content-type", media), ("origin", "http://evil.example")]
    answer = ask(app, "POST", path, b'{"sql": "SELECT 1"}', headers)
    assert answer.status == 415
    assert not store.batches
    assert not sql.asked


def test_a_page_that_asks_first_is_not_let_in(app):
    headers = [
        ("origin", "http://evil.example"),
        ("access-control-request-method", "POST"),
        ("access-control-request-headers", "content-type"),
    ]
    answer = ask(app, "OPTIONS", "/v1/sql", headers=headers)
    assert answer.status == 405
    assert not [name for name in answer.headers if name.startswith("access-control")]
