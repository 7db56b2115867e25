"""One port: pages at /dash/, the one JSON error elsewhere, and a policy that fits what is sent."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import subprocess
import sys

import pytest

from dashboard.shell.paths import address
from tests.collector.traces import make_meta
from tests.collector.web.asgi import JSON, ask
from tests.serving import ROOT

CALLBACK = "/dash/_dash-update-component"
SAME = ("sec-fetch-site", "same-origin")


def page_of(app, path, status=200):
    answer = ask(app, "GET", path)
    assert answer.status == status
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    return answer


def test_the_root_leads_to_the_pages(replay):
    for path in ("/", "/dash"):
        answer = ask(replay, "GET", path)
        assert (answer.status, answer.headers["location"]) == (307, "/dash/")


def test_the_only_run_is_where_one_begins(replay):
    answer = ask(replay, "GET", "/dash/")
    assert (answer.status, answer.headers["location"]) == (303, address("run", replay.state.run_id))


def test_without_a_run_or_with_two_one_begins_at_the_list(empty):
    page_of(empty, "/dash/")
    for run_id in ("a", "b"):
        empty.state.store.put_meta(make_meta(run_id=run_id))
    page_of(empty, "/dash/")


@pytest.mark.parametrize(
    "path",
    ["/api/nope", "/v1/nope", "/nope", "/dashes", "/docs", "/redoc", "/_dash-layout",
     "/dash/assets/nope.js", "/dash/assets/../app.py", "/dash/_dash-ws-callback", "/dash/_mcp",
     "/dash/_dash-component-suites/dash/nope.js", "/dash/_dash-component-suites/os/path.py"],
)  # fmt: skip
def test_what_is_not_there_is_the_one_error(replay, path):
    answer = ask(replay, "GET", path)
    assert answer.status == 404
    assert answer.error["code"] == "not_found"


@pytest.mark.parametrize("path", ["/xyz", "/dashes", "/docs", "/%3Cscript%3Ealert(1)%3C/script%3E"])
def test_a_person_who_asks_for_what_is_not_there_gets_a_page_with_links(replay, path):
    browser = ("accept", "text/html,application/xhtml+xml,*/*;q=0.8")
    answer = ask(replay, "GET", path, headers=[browser])
    assert answer.status == 404
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    text = answer.body.decode()
    assert "There is no page at" in text and "<script>alert" not in text
    assert all(f'href="{address(page)}"' in text for page in ("runs", "sql", "health"))
    assert "default-src 'none'" in answer.headers["content-security-policy"]


@pytest.mark.parametrize(("method", "path"), [("GET", "/v1/nope"), ("POST", "/xyz")])
def test_what_programs_ask_is_answered_in_their_form_whatever_they_accept(replay, method, path):
    answer = ask(replay, method, path, headers=[("accept", "text/html"), SAME])
    assert answer.status == 404 and answer.error["code"] == "not_found"


@pytest.mark.parametrize("path", ["/dash/nope", "/dash/run/nope", "/dash/run/nope/waits"])
def test_a_page_that_is_not_there_is_a_page_that_says_so(replay, path):
    page_of(replay, path, 404)


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE"])
def test_pages_are_only_read(replay, method):
    answer = ask(replay, method, "/dash/runs", b"{}", [JSON, SAME])
    assert answer.status == 405
    assert answer.headers["allow"] == "GET, HEAD"


def test_the_policy_allows_the_inline_scripts_that_there_are_and_no_others(replay):
    answer = page_of(replay, "/dash/runs")
    text = answer.body.decode()
    inline = re.findall(r"<script(?![^>]*\bsrc=)(?![^>]*json)[^>]*>(.*?)</script>", text, re.DOTALL)
    made = {
        f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"
        for script in inline
    }
    policy = dict(
        part.split(" ", 1) for part in answer.headers["content-security-policy"].split("; ")
    )
    assert set(policy["script-src"].split()) == {"'self'", *made}
    assert policy["default-src"] == "'none'"
    assert policy["frame-ancestors"] == "'none'"
    assert answer.headers["x-frame-options"] == "DENY"
    assert not re.search(r"\son\w+=", text)


def test_nothing_comes_from_elsewhere(replay):
    text = page_of(replay, "/dash/runs").body.decode()
    sources = re.findall(r'(?:src|href)="([^"]+)"', text)
    assert sources
    assert all(source.startswith("/dash/") for source in sources)


def test_a_callback_from_another_site_is_refused(replay):
    for header in (("sec-fetch-site", "cross-site"), ("origin", "http://evil.example")):
        answer = ask(replay, "POST", CALLBACK, b"{}", [JSON, header])
        assert answer.status == 403
        assert answer.error["code"] == "cross_site"


def called(**changes):
    """A call as a page makes it, with changes."""
    body = {
        "output": "..head.children...page.children...again.disabled..",
        "inputs": [
            {"id": "at", "property": "pathname", "value": "/dash/runs"},
            {"id": "again", "property": "n_intervals"},
        ],
        "state": [{"id": "at", "property": "search", "value": ""}],
        "changedPropIds": ["at.pathname"],
        "outputs": [
            {"id": "head", "property": "children"},
            {"id": "page", "property": "children"},
            {"id": "again", "property": "disabled"},
        ],
    }
    return json.dumps(body | changes).encode()


def test_a_callback_that_pages_call_is_answered(replay):
    answer = ask(replay, "POST", CALLBACK, called(), [JSON, SAME])
    assert answer.status == 200
    assert set(answer.json["response"]) == {"head", "page", "again"}


@pytest.mark.parametrize(
    ("body", "where"),
    [
        (b"", "body"),
        (b"{", "body"),
        (b"\xff", "body"),
        (b"[" * 100_000, "body"),
        (b"[]", "body"),
        (b"{}", "output"),
        (called(output=["a"]), "output"),
        (called(output="nobody.children"), "output"),
        (called(output="page.data-titled"), "output"),
        (called(inputs=None), "inputs"),
        (called(inputs=[]), "inputs"),
        (called(inputs=[1, 2]), "inputs[0]"),
        (called(inputs=[{"id": "x", "property": "y"}] * 2), "inputs[0]"),
        (called(state=[{"id": "at", "property": "search", "value": 7}]), "state[0]"),
        (called(changedPropIds=[1]), "changedPropIds"),
        (called(changedPropIds="at"), "changedPropIds"),
        (called(outputs=3), "outputs"),
        (called(outputs=None), "outputs"),
        (called(outputs=[]), "outputs"),
        (called(outputs={}), "outputs"),
        (called(outputs=[1, None]), "outputs"),
        (called(outputs=[{"id": "head", "property": "children"}]), "outputs"),
        (called(outputs=[{"id": {"a": 1}, "property": "children"}] * 3), "outputs"),
        (called(outputs={"id": "head", "property": "children"}), "outputs"),
    ],
)
def test_a_malformed_callback_is_the_one_error(replay, caplog, body, where):
    answer = ask(replay, "POST", CALLBACK, body, [JSON, SAME])
    assert answer.status == 400
    assert (answer.error["code"], answer.error["where"]) == ("bad_body", where)
    assert "Traceback" not in caplog.text


def test_outputs_that_are_not_told_are_missed(replay):
    body = json.loads(called())
    del body["outputs"]
    answer = ask(replay, "POST", CALLBACK, json.dumps(body).encode(), [JSON, SAME])
    assert (answer.status, answer.error["where"]) == (400, "outputs")


def test_a_large_body_is_read_as_any_other(replay):
    long = called(changedPropIds=["at.pathname"] * 20_000)
    assert ask(replay, "POST", CALLBACK, long, [JSON, SAME]).status == 200
    assert ask(replay, "POST", CALLBACK, long + b"]", [JSON, SAME]).status == 400


def test_a_page_sends_no_more_than_it_may(replay):
    answer = ask(replay, "POST", CALLBACK, b" " * ((4 << 20) + 1), [JSON, SAME])
    assert (answer.status, answer.error["code"]) == (413, "body_too_large")


def test_a_name_that_is_not_this_machine_s_is_refused(replay):
    assert ask(replay, "GET", "/dash/runs", host="evil.example").status == 421
    assert ask(replay, "GET", "/dash/runs", headers=[("x-forwarded-for", "1.2.3.4")]).status == 421


def test_assets_are_asked_for_again_and_kept(replay):
    answer = ask(replay, "GET", "/dash/assets/theme.css")
    assert answer.headers["cache-control"] == "no-cache"
    again = ask(
        replay, "GET", "/dash/assets/theme.css", headers=[("if-none-match", answer.headers["etag"])]
    )
    assert again.status == 304


def test_dash_is_imported_when_somebody_looks():
    code = """
import sys
import dashboard.commands, dashboard.commands.serve, dashboard.shell.app, dashboard.story
assert not {"dash", "flask", "plotly"} & set(sys.modules), "too early"
"""
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=100
    )
    assert done.returncode == 0, done.stderr
