"""Who may look: a token for a cookie, nobody else, and no page of another site with it."""

from __future__ import annotations

from urllib.parse import urlencode

import pytest

from collector.web.errors import NoToken, TooManyTries
from collector.web.sessions import COOKIE, Sessions
from collector.web.tokens import Tokens
from tests.collector.web.asgi import JSON, ask, scope_of

FORM = ("content-type", "application/x-www-form-urlencoded")
SAME = ("sec-fetch-site", "same-origin")


@pytest.fixture
def reader(empty):
    return empty.state.tokens.add("me", "read")


def sign_in(app, token, **more):
    body = urlencode({"token": token, **more}).encode()
    return ask(app, "POST", "/sign-in", body, [FORM, SAME])


def cookie_of(answer):
    assert answer.status == 303
    return ("cookie", answer.headers["set-cookie"].partition(";")[0])


def test_without_tokens_there_is_nothing_to_sign_in_to(empty):
    assert ask(empty, "GET", "/sign-in").headers["location"] == "/dash/"
    assert ask(empty, "GET", "/dash/runs").status == 200


def test_a_browser_is_sent_to_the_form_and_back(empty, reader):
    asked = "/dash/run/a?t=5&sel=x"
    answer = ask(empty, "GET", asked)
    assert answer.status == 303
    form = ask(empty, "GET", answer.headers["location"])
    assert form.status == 200
    assert b"/dash/run/a?t=5&amp;sel=x" in form.body
    signed = sign_in(empty, reader, next=asked)
    assert signed.headers["location"] == asked
    kept = signed.headers["set-cookie"]
    assert reader not in kept
    for part in ("HttpOnly", "SameSite=strict", "Path=/", "Max-Age=43200"):
        assert part in kept
    assert ask(empty, "GET", "/dash/runs", headers=[cookie_of(signed)]).status == 200


def test_the_api_answers_as_before(empty, reader):
    own = ("/dash/_dash-layout", "/dash/assets/theme.css", "/dash/_run/0-view.js")
    for path in ("/v1/runs", "/metrics", *own):
        answer = ask(empty, "GET", path)
        assert answer.status == 401
        assert answer.error["code"] == "no_token"


def test_a_session_reads_and_does_not_write(empty, reader):
    cookie = cookie_of(sign_in(empty, reader))
    assert ask(empty, "GET", "/v1/runs", headers=[cookie]).status == 200
    assert ask(empty, "POST", "/v1/sql", b'{"sql":"SELECT 1"}', [cookie, JSON, SAME]).status == 200
    assert ask(empty, "POST", "/v1/events", b"[]", [cookie, JSON, SAME]).status == 401
    assert ask(empty, "PUT", "/v1/runs/a", b"{}", [cookie, JSON, SAME]).status == 401


def test_another_site_does_nothing_with_a_session(empty, reader):
    cookie = cookie_of(sign_in(empty, reader))
    for header in (("sec-fetch-site", "same-site"), ("origin", "https://evil.example")):
        for path in ("/v1/sql", "/dash/_dash-update-component", "/sign-out"):
            assert ask(empty, "POST", path, b"{}", [cookie, JSON, header]).status == 403


def test_where_a_browser_says_no_site_its_origin_decides(empty, reader):
    body = urlencode({"token": reader}).encode()
    for origin, status in (
        ("http://127.0.0.1:7654", 303),
        ("http://127.0.0.1:1", 403),
        ("null", 403),
    ):
        answer = ask(empty, "POST", "/sign-in", body, [FORM, ("origin", origin)])
        assert answer.status == status
    # with no referrer a browser calls its own page's origin null, and says where it is all the same
    assert ask(empty, "POST", "/sign-in", body, [FORM, SAME, ("origin", "null")]).status == 303


def test_signing_out_ends_it(empty, reader):
    cookie = cookie_of(sign_in(empty, reader))
    assert ask(empty, "POST", "/sign-out", b"", [cookie, SAME]).headers["location"] == "/sign-in"
    assert ask(empty, "GET", "/dash/runs", headers=[cookie]).status == 303


def test_a_wrong_token_is_told_on_the_form(empty, reader):
    answer = sign_in(empty, "cascade_<b>wrong")
    assert answer.status == 401
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert b"not known here" in answer.body
    assert b"<b>wrong" not in answer.body
    assert "set-cookie" not in answer.headers


@pytest.mark.parametrize(
    "after", ["https://evil.example/", "//evil.example", "/dash/\r\nx: y", "/v1/runs", "/dash/\\x"]
)
def test_one_never_ends_up_elsewhere(empty, reader, after):
    assert sign_in(empty, reader, next=after).headers["location"] == "/dash/"


def test_a_form_of_any_size_is_not_read(empty, reader):
    assert sign_in(empty, "x" * 10_000).status == 413


# --- sessions themselves -------------------------------------------------------------------------


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture
def made(tmp_path):
    tokens, clock = Tokens(tmp_path), Clock()
    return tokens, clock, Sessions(tokens, clock)


def with_cookie(*values):
    return scope_of("GET", "/dash/runs", [("cookie", f"a=b; {COOKIE}={value}") for value in values])


def test_a_session_ends_with_its_time_and_with_its_token(made):
    tokens, clock, sessions = made
    token = tokens.add("me", "all")
    first = sessions.sign_in(token, "here")
    assert sessions.may(with_cookie(first)) == {"read"}
    clock.now = 12 * 3600 + 1
    assert not sessions.may(with_cookie(first))
    second = sessions.sign_in(token, "here")
    tokens.revoke("me")
    assert not sessions.may(with_cookie(second))


def test_two_cookies_are_none(made):
    tokens, _, sessions = made
    session = sessions.sign_in(tokens.add("me", "read"), "here")
    assert not sessions.may(with_cookie(session, session))


def test_who_may_only_write_may_not_look(made):
    tokens, _, sessions = made
    with pytest.raises(NoToken, match="only write"):
        sessions.sign_in(tokens.add("agents", "write"), "here")


def test_wrong_tokens_are_counted_by_where_they_come_from(made):
    tokens, clock, sessions = made
    token = tokens.add("me", "read")
    for _ in range(10):
        with pytest.raises(NoToken):
            sessions.sign_in("wrong", "there")
    with pytest.raises(TooManyTries):
        sessions.sign_in("wrong", "there")
    assert sessions.sign_in(token, "there")  # the right one comes in, whoever else tries there
    for _ in range(10):
        with pytest.raises(NoToken):
            sessions.sign_in("wrong", "there")
    with pytest.raises(TooManyTries):
        sessions.sign_in("wrong", "there")
    clock.now = 61
    with pytest.raises(NoToken):
        sessions.sign_in("wrong", "there")


@pytest.mark.parametrize("other", ['{"x":1}', "a[b]=1", "theme=a b", "é=1", "=", ";;", "x"])
def test_cookies_of_other_servers_on_this_host_do_not_matter(made, other):
    tokens, _, sessions = made
    session = sessions.sign_in(tokens.add("me", "read"), "here")
    scope = scope_of("GET", "/", [("cookie", f"{other}; {COOKIE}={session}; {other}")])
    assert sessions.may(scope)
