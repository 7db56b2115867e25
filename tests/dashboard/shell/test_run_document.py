"""The run view's document: a handful of requests, nothing of Dash, and names that stay text."""

from __future__ import annotations

import gzip
import re

import pytest

from dashboard.shell.bundle import ASSETS, bundle
from dashboard.shell.paths import address
from tests.collector.traces import make_meta
from tests.collector.web.asgi import ask

HOSTILE = '</title><script>alert(1)</script>"'


@pytest.fixture
def document(replay):
    return ask(replay, "GET", address("run", replay.state.run_id))


def test_it_asks_for_little_and_nothing_of_dash(document):
    text = document.body.decode()
    assert document.headers["content-type"] == "text/html; charset=utf-8"
    sources = re.findall(r'<(?:script|link)\b[^>]*?(?:src|href)="([^"]+)"', text)
    assert len(sources) == 6
    assert "_dash" not in text and "react" not in text
    assert {file.path for file in bundle()} == {s for s in sources if s.startswith("/dash/_run/")}
    policy = document.headers["content-security-policy"]
    assert "script-src 'self';" in policy
    assert not re.search(r"<script(?![^>]*\bsrc=)", text)
    assert document.headers["referrer-policy"] == "same-origin"


def test_what_its_script_asks_for_first_is_asked_for_at_once(replay, document):
    asked = re.findall(r'as="fetch" href="([^"]+)"', document.body.decode())
    run = f"/v1/runs/{replay.state.run_id}"
    assert asked == [f"{run}/pulse", f"{run}/story?packed=1&amp;soon=1"]


def test_head_and_tabs_are_there_before_any_script(replay, document):
    text = document.body.decode()
    assert "<title>Timeline - kill-one</title>" in text
    for page in ("run", "waits", "violations", "sql"):
        assert f'href="{address(page, replay.state.run_id)}"' in text
    assert 'id="cs-theme"' in text and 'id="cs-help"' in text
    assert "Sign out" not in text


def test_who_signed_in_can_sign_out(empty):
    token = empty.state.tokens.add("me", "read")
    empty.state.store.put_meta(make_meta(run_id="a"))
    given = [("authorization", f"Bearer {token}")]
    text = ask(empty, "GET", address("run", "a"), headers=given).body.decode()
    assert '<form action="/sign-out" method="POST">' in text


def test_names_stay_text(empty):
    run_id = "a'b&c"
    empty.state.store.put_meta(make_meta(run_id=run_id, name=HOSTILE))
    answer = ask(empty, "GET", address("run", run_id))
    assert answer.status == 200
    text = answer.body.decode()
    assert "<script>" not in text
    assert 'data-run="a&#x27;b&amp;c"' in text
    # as encodeURIComponent writes it
    assert 'href="/v1/runs/a&#x27;b%26c/pulse"' in text


def test_its_files_are_kept_for_ever_and_change_their_address_with_their_text(replay):
    for file in bundle():
        plain = ask(replay, "GET", file.path)
        packed = ask(replay, "GET", file.path, headers=[("accept-encoding", "gzip")])
        assert plain.body == gzip.decompress(packed.body) == file.body
        assert plain.headers["content-type"].startswith(file.media)
        assert "immutable" in plain.headers["cache-control"]
        assert packed.headers["content-encoding"] == "gzip"
    for path in ("/dash/_run/", "/dash/_run/0-view.js", "/dash/_run/../app.py"):
        assert ask(replay, "GET", path).status == 404


def test_every_script_of_the_view_is_in_it_once_and_in_order():
    text = bundle().script.body.decode()
    places = [text.index(path.read_text()) for path in sorted(ASSETS.glob("[1-8]*.js"))]
    assert places == sorted(places) and places[0] == 0
    # one script, one scope: what a file declares for itself stays inside it
    assert re.findall(r"^(?:const|let|var|function|class) (\w+)", text, re.MULTILINE) == ["Cascade"]
