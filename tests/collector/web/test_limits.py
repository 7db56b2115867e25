"""Bodies within limits of size, time, and of all of them together."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import threading
import tracemalloc

import pytest
import zstandard

from collector.web.errors import BodyTooLarge, TooBusy
from collector.web.limits import Room, read_body
from collector.web.settings import Limits
from collector.wire import arrow_body
from collector.wire.batch import MSGPACK
from collector.wire.records import encode_msgpack
from tests.collector.traces import step
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


# --- work that waits for a thread -----------------------------------------------------------------


LARGE = encode_msgpack([step(i, loss=i / 7) for i in range(2_000)])
"""More than is decoded on the event loop."""

ZSTD = zstandard.ZstdCompressor()
STREAMED = zstandard.ZstdCompressor(write_content_size=False)
HELD = 4 * len(LARGE)


@contextlib.contextmanager
def busy_workers(app):
    """Both threads are at work until this is left."""
    done, begun = threading.Event(), threading.Semaphore(0)

    def work():
        begun.release()
        assert done.wait(20)

    for _ in range(2):
        app.state.context.workers.submit(work)
    for _ in range(2):
        assert begun.acquire(timeout=20)
    try:
        yield
    finally:
        done.set()


async def waiting(app, num, body, packing=None):
    """``num`` requests that wait for a thread, as tasks with their channels."""
    headers = [*HEADERS, *([("content-encoding", packing)] if packing else [])]
    before = app.state.context.num_at_work
    made = []
    for _ in range(num):
        channel = Channel([body], "whole")
        scope = scope_of("POST", "/v1/events", headers)
        made.append((asyncio.create_task(app(scope, channel.receive, channel.send)), channel))
    for _ in range(100):
        await asyncio.sleep(0)
    assert app.state.context.num_at_work == before + num
    return made


@pytest.mark.parametrize("packing", [None, "zstd", "gzip"])
def test_few_bodies_wait_for_a_thread_and_the_rest_is_told_to_come_again(make_app, store, packing):
    app = make_app(waiting_bodies=3)
    body = {None: bytes, "zstd": ZSTD.compress, "gzip": gzip.compress}[packing](LARGE)

    async def run():
        with busy_workers(app):
            tasks = await waiting(app, 5, body, packing)
            (refused,) = await waiting_in_vain(app, body, packing)
        await asyncio.gather(*(task for task, _ in tasks))
        return refused, [channel.answer.status for _, channel in tasks]

    refused, served = asyncio.run(run())
    assert (refused.status, refused.error["code"]) == (429, "too_busy")
    assert refused.headers["retry-after"] == "1"
    assert served == [200] * 5
    context = app.state.context
    assert (context.num_at_work, context.room._free) == (0, context.settings.limits.held_bytes)
    assert post(app, body, packing=packing).status == 200


async def waiting_in_vain(app, body, packing):
    headers = [*HEADERS, *([("content-encoding", packing)] if packing else [])]
    channel = Channel([body], "whole")
    await app(scope_of("POST", "/v1/events", headers), channel.receive, channel.send)
    return [channel.answer]


def test_what_a_body_says_it_unpacks_to_is_counted_while_it_waits(make_app):
    """Three bodies of a few kilobytes that become more than all may hold."""
    app = make_app(unpacked_bytes=2 * HELD, held_bytes=HELD)
    body = ZSTD.compress(LARGE)

    async def run():
        with busy_workers(app):
            tasks = await waiting(app, 3, body, "zstd")
            (refused,) = await waiting_in_vain(app, body, "zstd")
        await asyncio.gather(*(task for task, _ in tasks))
        return refused, [channel.answer.status for _, channel in tasks]

    refused, served = asyncio.run(run())
    assert (refused.status, refused.error["code"]) == (429, "too_busy")
    assert served == [200] * 3
    assert app.state.context.room._free == HELD


def test_a_body_that_does_not_say_is_counted_as_the_largest(make_app):
    body = STREAMED.compress(LARGE)
    answer = post(make_app(unpacked_bytes=HELD, held_bytes=HELD), body, packing="zstd")
    assert (answer.status, answer.error["code"]) == (429, "too_busy")
    app = make_app(unpacked_bytes=HELD - len(body), held_bytes=HELD)
    assert post(app, body, packing="zstd").status == 200


def test_a_first_frame_that_says_little_hides_nothing(make_app):
    """The size of the first frame is counted first, the limit as soon as there are more frames."""
    body = ZSTD.compress(LARGE[:9]) + ZSTD.compress(LARGE[9:])
    room = len(body) + 100
    answer = post(make_app(unpacked_bytes=HELD, held_bytes=room), body, packing="zstd")
    assert (answer.status, answer.error["code"]) == (429, "too_busy")
    app = make_app(unpacked_bytes=HELD, held_bytes=len(body) + HELD)
    assert post(app, body, packing="zstd").json["num_rows"] == 2_000
    assert app.state.context.room._free == len(body) + HELD


def test_what_gzip_can_become_has_a_bound_of_its_own(make_app):
    plain = b'{"sql": "SELECT 1"}'
    body = gzip.compress(plain)
    app = make_app(sql_bytes=1 << 20, held_bytes=len(body) * 1_100)
    headers = [JSON, ("content-encoding", "gzip")]
    assert ask(app, "POST", "/v1/sql", body, headers).status == 200


def test_the_limits_as_they_are_documented():
    limits = Limits()
    assert (limits.unpacked_bytes, arrow_body.MAX_UNPACKED) == (64 << 20, 64 << 20)
    assert (limits.held_bytes, limits.waiting_bodies) == (512 << 20, 16)
