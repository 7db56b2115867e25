from __future__ import annotations

import gzip
import json

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from collector.storage._interface import NoSuchRun
from collector.web.app import create_app
from collector.web.errors import BadRequestField
from collector.web.settings import Settings
from collector.web.tokens import Tokens
from dashboard.tiles import routes, tiles_of
from dashboard.tiles.encode import packed
from dashboard.tiles.routes import parsed_ranks
from tests.collector.web.asgi import ask
from tests.collector.web.stores import EchoSql, MemoryStore
from tests.dashboard.tiles.sources import LocalRun, actor, entered, group


class Sources:
    def __init__(self, run):
        self._run = run

    def get(self, run_id):
        if run_id != self._run.run_id:
            raise NoSuchRun("there is no run of that id", where=run_id)
        return self._run


@pytest.fixture
def app(tmp_path):
    run = LocalRun([group(r, 2) for r in range(2)] + [entered(0, 0, 1_000), entered(1, 0, 5_000)])
    made = create_app(MemoryStore(), EchoSql(), Tokens(tmp_path), Settings())
    made.include_router(routes(Sources(run)))
    assert tiles_of(run).wait(60)
    return made


def decoded(body):
    size = int.from_bytes(body[:4], "little")
    assert (4 + size) % 8 == 0 and len(body) % 8 == 0
    return json.loads(body[4 : 4 + size]), body[4 + size :]


def test_a_tile(app):
    answer = ask(app, "GET", "/v1/runs/run-1/tile?a=0&b=8000&w=8&lanes=waited,caused,gpu")
    assert answer.status == 200
    assert answer.headers["content-type"] == "application/octet-stream"
    head, data = decoded(answer.body)
    assert (head["a"], head["b"], head["w"], head["source"]) == (0, 8000, 8, "provisional")
    assert head["building"] is None
    waited, caused, gpu = head["layers"]
    assert waited == {
        "lane": "waited", "dtype": "uint8", "rows": [0, 1], "cols": 8, "offset": 0, "code": "sqrt",
        "peers": 1,
    }  # fmt: skip
    assert list(data[:16]) == [0, 255, 255, 255, 255, 0, 0, 0] + [0] * 8
    assert list(data[caused["offset"] :][:16]) == [0] * 8 + [0, 255, 255, 255, 255, 0, 0, 0]
    assert gpu["rows"] == ["median", "p10", "p90", "min", "max", "num"] and gpu["code"] == "percent"
    assert set(data[gpu["offset"] :][:40]) == {255} and set(data[gpu["offset"] + 40 :]) == {0}


def test_ranks_are_answered_in_the_order_asked_for(app):
    url = "/v1/runs/run-1/tile?a=0&b=8000&w=1&lanes=waited&ranks=7,1,0"
    head, data = decoded(ask(app, "GET", url).body)
    assert head["layers"][0]["rows"] == [7, 1, 0]
    assert list(data[:2]) == [0, 0] and data[2] > 0


def test_a_large_tile_is_packed_for_who_takes_it(app):
    url = "/v1/runs/run-1/tile?a=0&b=8000&w=4000&lanes=waited"
    plain = ask(app, "GET", url)
    small = ask(app, "GET", url, headers=[("accept-encoding", "br, gzip")])
    assert small.headers["content-encoding"] == "gzip" and "content-encoding" not in plain.headers
    assert gzip.decompress(small.body) == plain.body
    assert packed(b"x" * 2000, "gzip;q=0")[0] == b"x" * 2000
    quick = ask(app, "GET", url, headers=[("accept-encoding", "gzip, deflate, br, zstd")])
    assert quick.headers["content-encoding"] == "zstd"
    assert zstandard.decompress(quick.body) == plain.body
    for accepted, packing in (("*", "gzip"), ("zstd;q=0, gzip", "gzip"), ("zstd;q=0", None)):
        assert packed(b"x" * 2000, accepted)[1].get("content-encoding") == packing


@pytest.mark.parametrize(
    "query",
    [
        "a=0&b=0&w=8&lanes=waited",
        "a=9&b=8&w=8&lanes=waited",
        "a=0&b=8&w=0&lanes=waited",
        "a=0&b=8&w=8193&lanes=waited",
        "a=0&b=9007199254740992&w=8&lanes=waited",
        "a=0.5&b=8&w=8&lanes=waited",
        "a=0&b=8&w=8",
        "a=0&b=8&w=8&lanes=",
        "a=0&b=8&w=8&lanes=waited,nothing",
        "a=0&b=8&w=8&lanes=waited&ranks=",
        "a=0&b=8&w=8&lanes=waited&ranks=3-1",
        "a=0&b=8&w=8&lanes=waited&ranks=-1",
        "a=0&b=8&w=8&lanes=waited&ranks=0-4096",
        "a=0&b=8&w=8&lanes=waited&ranks=0-999999999",
        "a=0&b=8&w=8&lanes=waited&ranks=%D9%A3",
    ],
)
def test_bad_parameters_are_told(app, query):
    answer = ask(app, "GET", f"/v1/runs/run-1/tile?{query}")
    assert answer.status == 422
    assert answer.error["code"] == "bad_request_field"


def test_a_run_that_is_not_there(app):
    answer = ask(app, "GET", "/v1/runs/other/tile?a=0&b=8&w=8&lanes=waited")
    assert answer.status == 404 and answer.error


@given(st.text("0123456789-, ", max_size=12))
def test_ranks_are_read_or_refused(text):
    try:
        ranks = parsed_ranks(text)
    except BadRequestField:
        return
    assert ranks and len(set(ranks)) == len(ranks) and min(ranks) >= 0


def test_a_tile_of_all_ranks_has_a_size_too(tmp_path):
    run = LocalRun([actor(r) for r in range(4097)])
    made = create_app(MemoryStore(), EchoSql(), Tokens(tmp_path), Settings())
    made.include_router(routes(Sources(run)))
    assert tiles_of(run).wait(60)
    url = "/v1/runs/run-1/tile?a=0&b=8000"
    too_many = ask(made, "GET", f"{url}&w=8&lanes=waited")
    assert too_many.status == 422 and too_many.error["where"] == "ranks"
    too_wide = ask(made, "GET", f"{url}&w=8192&lanes=waited,caused&ranks=0-4000")
    assert too_wide.status == 422 and too_wide.error["where"] == "w=8192"
    assert ask(made, "GET", f"{url}&w=8&lanes=waited,caused&ranks=0-4000").status == 200
    assert ask(made, "GET", f"{url}&w=8&lanes=gpu,cpu").status == 200


def test_whoever_looks_does_not_take_the_threads_of_whoever_sends(tmp_path, monkeypatch):
    """The one limit of FastAPI's own handlers is not touched by the picture's."""
    import anyio.to_thread

    run, seen = LocalRun([actor(0)]), []
    made = create_app(MemoryStore(), EchoSql(), Tokens(tmp_path), Settings())
    made.include_router(routes(Sources(run)))
    right = anyio.to_thread.run_sync

    async def run_sync(call, *args, limiter=None, **more):
        seen.append(limiter)
        return await right(call, *args, limiter=limiter, **more)

    monkeypatch.setattr(anyio.to_thread, "run_sync", run_sync)
    assert ask(made, "GET", "/v1/runs/run-1/tile?a=0&b=8000&w=8&lanes=waited").status == 200
    assert [limiter.total_tokens for limiter in seen if limiter is not None] == [8]
