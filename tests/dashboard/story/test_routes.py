"""The routes: bodies, versions, packing, errors in the one shape."""

from __future__ import annotations

import gzip

import msgspec
import pytest

from collector.web.app import create_app
from collector.web.settings import Settings
from collector.web.tokens import Tokens
from dashboard.story import routes, sources_of_trace
from tests.collector.web.asgi import ask
from tests.collector.web.stores import EchoSql, MemoryStore
from tests.recorded import run_id_of

RUN = run_id_of("kill-one")
GZIP = [("accept-encoding", "br, gzip;q=0.8")]


@pytest.fixture(scope="module")
def app(tmp_path_factory):
    sources = sources_of_trace("kill-one")
    assert sources.only.wait_until_judged(120)
    app = create_app(MemoryStore(), EchoSql(), Tokens(tmp_path_factory.mktemp("data")), Settings())
    app.include_router(routes(sources))
    yield app
    sources.close()


def get(app, path, headers=()):
    return ask(app, "GET", f"/v1/runs/{path}", headers=headers)


def test_a_story_and_its_version(app):
    answer = get(app, f"{RUN}/story")
    assert answer.status == 200
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["vary"] == "Accept-Encoding"
    story = answer.json
    assert story["run"]["name"] == "kill-one"
    assert isinstance(story["t0_ns"], str)
    assert {"from", "to"} <= set(story["walks"][0])
    again = get(app, f"{RUN}/story?if_version={story['version']}")
    assert (again.status, again.body) == (304, b"")
    assert get(app, f"{RUN}/story?if_version=old").status == 200
    assert get(app, f"{RUN}/pulse").json["version"] == story["version"]


def test_large_bodies_are_packed_where_that_is_understood(app):
    plain, packed = get(app, f"{RUN}/story"), get(app, f"{RUN}/story", GZIP)
    assert packed.headers["content-encoding"] == "gzip"
    assert gzip.decompress(packed.body) == plain.body
    assert len(packed.body) < len(plain.body) / 2
    assert "content-encoding" not in get(app, f"{RUN}/pulse", GZIP).headers  # it is small
    refused = get(app, f"{RUN}/story", [("accept-encoding", "gzip;q=0")])
    assert "content-encoding" not in refused.headers


def test_times_fit_a_javascript_number(app):
    def numbers(value):
        if isinstance(value, dict):
            for inner in value.values():
                yield from numbers(inner)
        elif isinstance(value, list):
            for inner in value:
                yield from numbers(inner)
        elif isinstance(value, int):
            yield value

    for path in ("story", "pulse", "state?t=2600000000", "window?a=0&b=3000000000"):
        assert max(numbers(get(app, f"{RUN}/{path}").json)) < 2**53


def test_state_and_window(app):
    state = get(app, f"{RUN}/state?t=2700000000").json
    assert [r["rank"] for r in state["ranks"]] == [0, 1, 2, 3]
    window = get(app, f"{RUN}/window?a=0&b=3000000000", GZIP)
    assert {"by_rank", "regime_share"} <= set(msgspec.json.decode(window.body))


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("nothing/story", 404),
        ("nothing/pulse", 404),
        ("..%2F..%2Fetc/story", 404),
        ("%00/story", 422),
        (f"{RUN}/state", 422),
        (f"{RUN}/state?t=soon", 422),
        (f"{RUN}/state?t=99999999999999999999", 422),
        (f"{RUN}/window?a=5&b=5", 422),
        (f"{RUN}/window?a=5", 422),
        (f"{RUN}/story?if_version={'v' * 300}", 422),
    ],
)
def test_errors_have_the_one_shape(app, path, status):
    answer = get(app, path)
    assert answer.status == status
    assert answer.error["message"]
    assert "/work" not in answer.body.decode() and "/tmp" not in answer.body.decode()


def test_moments_far_away(app):
    for t in (-(2**62), 2**62):
        assert get(app, f"{RUN}/state?t={t}").status == 200
    assert get(app, f"{RUN}/window?a={-(2**61)}&b={2**61}").status == 200
