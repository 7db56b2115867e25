"""Bodies within limits of size, time, and of all of them together."""

from __future__ import annotations

import asyncio
import tracemalloc

import pytest
import zstandard

from collector.web.errors import BodyTooLarge, TooBusy
from collector.web.limits import Room, read_body
from collector.wire.batch import MSGPACK
from tests.collector.web.asgi import JSON, Channel, ask, scope_of
from tests.collector.web.test_events import ENCODED, post

HEADERS = [("content-type", MSGPACK)]


def read(pieces, said=None, limit=100, seconds=5.0, end="whole", room=None):
    room = room or Room(1_000)

    async def run():
        channel = Channel(pieces, end)
        try:
            return await read_body(channel.receive, said, limit, seconds, room), channel.num_read
        except Exception as error:
            return error, channel.num_read

    return asyncio.run(run())


def test_a_body_up_to_the_limit_is_read_whole():
    assert read([b"a" * 60, b"", b"b" * 40])[0] == b"a" * 60 + b"b" * 40


def test_a_length_above_the_limit_is_refused_before_a_byte_is_read():
    error, num_read = read([b"a" * 101], said=b"101")
    assert isinstance(error, BodyTooLarge)
    assert num_read == 0


def test_a_length_that_lies_does_not_help():
    error, num_read = read([b"a" * 60] * 10, said=b"5")
    assert isinstance(error, BodyTooLarge)
    assert num_read == 120


@pytest.mark.parametrize("said", [b"1" * 5_000, b"9" * 19])
def test_an_endless_length_costs_nothing(said):
    assert isinstance(read([b"a"], said=said)[0], BodyTooLarge)


@pytest.mark.parametrize("said", [b"-1", b"1_0", b"x", b"", b"+5", b"\xb2"])
def test_a_length_that_is_none_is_400(app, said):
    answer = ask(
        app, "POST", "/v1/events", b"", [*HEADERS, ("content-length", said.decode("latin-1"))]
    )
    assert (answer.status, answer.error["where"]) == (400, "Content-Length")


def test_all_bodies_together_have_a_limit_and_give_their_room_back():
    room = Room(100)
    assert read([b"a" * 60], room=room)[0] == b"a" * 60
    assert isinstance(read([b"a" * 30, b"a" * 30], room=room)[0], TooBusy)
    room.give(60)
    assert read([b"a" * 100], room=room)[0] == b"a" * 100


@pytest.mark.parametrize(
    "how",
    [
        {"body": ENCODED[MSGPACK]},
        {"body": b"\xff"},
        {"body": b"x", "packing": "zstd"},
        {"pieces": [b"x" * 10], "end": "gone"},
        {"body": b"x" * 2_000},
    ],
)
def test_no_request_keeps_its_room(make_app, how):
    app = make_app(body_bytes=1_000, held_bytes=1_000)
    how = {"body": b"", **how}
    for _ in range(3):
        post(app, **how)
    assert app.state.context.room._free == 1_000


def test_a_body_that_trickles_is_408(make_app):
    app = make_app(body_seconds=0.05)
    answer = ask(app, "POST", "/v1/events", headers=HEADERS, pieces=[b"\x95"], end="wait")
    assert (answer.status, answer.error["code"]) == (408, "body_too_slow")
    assert answer.headers["connection"] == "close"


@pytest.mark.parametrize(
    ("method", "path", "limit"),
    [
        ("POST", "/v1/events", "body_bytes"),
        ("POST", "/v1/sql", "sql_bytes"),
        ("PUT", "/v1/runs/r", "meta_bytes"),
    ],
)
def test_every_body_has_its_limit(make_app, method, path, limit):
    app = make_app(**{limit: 100})
    headers = HEADERS if path == "/v1/events" else [JSON]
    said = ask(app, method, path, b"", [*headers, ("content-length", "101")])
    sent = ask(app, method, path, pieces=[b"x" * 101], headers=headers)
    assert said.status == sent.status == 413
    assert said.error["code"] == sent.error["code"] == "body_too_large"
    assert said.headers["connection"] == "close"


@pytest.mark.parametrize("path", ["/v1/events", "/v1/sql"])
def test_what_a_body_unpacks_to_has_a_limit(make_app, path):
    app = make_app(unpacked_bytes=1_000, sql_bytes=1_000)
    headers = HEADERS if path == "/v1/events" else [JSON]
    body = zstandard.ZstdCompressor().compress(bytes(1_001))
    answer = ask(app, "POST", path, body, [*headers, ("content-encoding", "zstd")])
    assert (answer.status, answer.error["code"]) == (413, "body_too_large")


def test_a_bomb_in_a_request_never_exists_whole(make_app):
    limit = 4 << 20
    app = make_app(unpacked_bytes=limit)
    bomb = zstandard.ZstdCompressor(write_content_size=False).compress(bytes(1 << 30))
    tracemalloc.start()
    try:
        answer = post(app, bomb, packing="zstd")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert answer.status == 413
    assert peak < 100 << 20


def test_a_slow_client_does_not_hold_up_another(make_app, store):
    app = make_app(body_seconds=30.0)

    async def run():
        slow, quick = Channel([b"\x95"], "wait"), Channel([ENCODED[MSGPACK]], "whole")
        scopes = [scope_of("POST", "/v1/events", HEADERS) for _ in range(2)]
        waits = asyncio.create_task(app(scopes[0], slow.receive, slow.send))
        await app(scopes[1], quick.receive, quick.send)
        assert not waits.done()
        slow.gone.set()
        await waits
        return quick.answer

    assert asyncio.run(run()).status == 200
