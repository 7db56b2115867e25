"""On a real socket: heads, slow clients, keep-alive, and stops that cut nobody off."""

from __future__ import annotations

import http.client
import json
import socket
import threading
import time

import httpx
import pytest

from collector.web.protocol import bounded_protocol
from collector.web.server import make_config
from collector.web.settings import Limits, Settings
from collector.wire.records import encode_msgpack
from tests.collector.traces import RUN, step
from tests.collector.web.live import DEADLINE_S, eventually, live
from tests.collector.web.test_events import ENCODED, MSGPACK

HEAD = b"POST /v1/events HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/vnd.msgpack\r\n"
BODY = ENCODED[MSGPACK]
WHOLE = HEAD + b"Content-Length: %d\r\n\r\n" % len(BODY) + BODY


def dial(port):
    return socket.create_connection(("127.0.0.1", port), timeout=DEADLINE_S)


def read_answer(sock):
    answer = http.client.HTTPResponse(sock)
    answer.begin()
    return answer.status, answer.headers, json.loads(answer.read() or b"null")


def is_closed(sock):
    try:
        return sock.recv(1) == b""
    except ConnectionResetError:
        return True


def test_rows_come_in_over_a_socket(app, store):
    with live(app) as running, dial(running.port) as sock:
        sock.sendall(WHOLE)
        status, headers, told = read_answer(sock)
    assert (status, told["num_rows"]) == (200, 5)
    assert headers["x-content-type-options"] == "nosniff"
    assert len(store.rows[RUN]) == 5


def test_a_body_in_chunks_without_a_length(app):
    chunks = b"".join(b"%x\r\n%s\r\n" % (1, BODY[i : i + 1]) for i in range(len(BODY)))
    with live(app) as running, dial(running.port) as sock:
        sock.sendall(HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + chunks + b"0\r\n\r\n")
        assert read_answer(sock)[0] == 200


def test_requests_in_a_row_on_one_connection_are_answered_in_order(app):
    with live(app) as running, dial(running.port) as sock:
        sock.sendall(WHOLE * 3)
        with sock.makefile("rb") as stream:
            data = b""
            while data.count(b"num_rows") < 3:
                data += stream.read1()
    assert data.count(b"HTTP/1.1 200") == 3
    assert data.index(b'"num_rows":5') < data.index(b'"num_duplicates":5')


# --- heads ---------------------------------------------------------------------------------------

BIG = 40_000
LARGE_HEADS = {
    "path": b"GET /" + b"x" * BIG + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "one header": b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"x" * BIG + b"\r\n\r\n",
    "many": b"GET / HTTP/1.1\r\nHost: localhost\r\n" + b"A: b\r\n" * BIG + b"\r\n",
    "no end": b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"x" * 1_000_000,
}


@pytest.mark.parametrize("kind", LARGE_HEADS)
def test_a_head_that_is_too_large_is_431(app, kind):
    with live(app) as running, dial(running.port) as sock:
        try:
            sock.sendall(LARGE_HEADS[kind])
            status, headers, told = read_answer(sock)
        except (ConnectionResetError, BrokenPipeError):
            # It was closed while we were still writing, so its answer may be lost on the way.
            assert kind == "no end"
        else:
            assert (status, told["error"]["code"]) == (431, "head_too_large")
            assert headers["connection"] == "close"
            assert is_closed(sock)
        assert httpx.get(f"{running.url}/v1/healthz").status_code == 200


NO_HTTP = {
    "tls": b"\x16\x03\x01\x02\x00\x01\x00",
    "words": b"hello\r\n\r\n",
    "version": b"GET / HTTP/9.9\r\n\r\n",
    "connect": b"CONNECT a:1 HTTP/1.1\r\n\r\n",
    "two lengths": HEAD + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\n",
    "no length": HEAD + b"Content-Length: x\r\n\r\n",
    "smuggling": HEAD + b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n",
}


@pytest.mark.parametrize("kind", NO_HTTP)
def test_what_is_no_http_has_our_error_shape_and_ends_the_connection(app, store, kind):
    with live(app) as running, dial(running.port) as sock:
        sock.sendall(NO_HTTP[kind])
        status, headers, told = read_answer(sock)
        assert status in (400, 404, 405)
        assert set(told["error"]) == {"code", "message", "hint", "where"}
        assert headers["x-content-type-options"] == "nosniff"
        if status == 400:
            assert is_closed(sock)
    assert not store.batches


@pytest.mark.parametrize("begun", [b"", b"GE", b"GET / HTTP/1.1\r\nHost: lo", b"\r\n"])
def test_a_head_that_never_becomes_whole_ends_the_connection(make_app, begun):
    with live(make_app(head_seconds=0.1)) as running, dial(running.port) as sock:
        sock.sendall(begun)
        rest = b""
        while part := sock.recv(4096):
            rest += part
    assert rest == b"" or b"408" in rest.splitlines()[0]
    assert (b"408" in rest) == begun.startswith(b"GE")


def test_bytes_between_requests_do_not_keep_a_connection_for_ever(make_app):
    with live(make_app(head_seconds=0.1)) as running, dial(running.port) as sock:
        sock.sendall(WHOLE)
        assert read_answer(sock)[0] == 200
        sock.sendall(b"\r\n")
        assert is_closed(sock)


def test_a_body_that_trickles_is_408_and_ends_the_connection(make_app):
    with live(make_app(body_seconds=0.1)) as running, dial(running.port) as sock:
        sock.sendall(HEAD + b"Content-Length: 100\r\n\r\nabc")
        status, _, told = read_answer(sock)
        assert (status, told["error"]["code"]) == (408, "body_too_slow")
        assert is_closed(sock)


def test_a_body_that_is_too_large_is_refused_while_it_is_sent(make_app):
    with live(make_app(body_bytes=1_000)) as running, dial(running.port) as sock:
        sock.sendall(HEAD + b"Content-Length: 1000000000\r\n\r\n" + b"x" * 100)
        status, _, told = read_answer(sock)
        assert (status, told["error"]["code"]) == (413, "body_too_large")
        assert is_closed(sock)


# --- keep-alive ----------------------------------------------------------------------------------


def test_an_idle_connection_is_kept_longer_than_agents_flush(app):
    settings = Settings()
    assert settings.keep_alive_seconds == 75
    assert make_config(app, settings).timeout_keep_alive == 75
    assert issubclass(make_config(app, settings).http, bounded_protocol(Limits()).__base__)


def test_the_keep_alive_time_is_the_settings_own(make_app):
    app = make_app(settings={"keep_alive_seconds": 1})
    with live(app) as running, dial(running.port) as sock:
        sock.sendall(WHOLE)
        read_answer(sock)
        began = time.monotonic()
        assert is_closed(sock)
        assert 0.9 <= time.monotonic() - began < 5  # uvicorn's own would be 5


def test_one_connection_serves_many_requests(app):
    with live(app) as running, httpx.Client(base_url=running.url) as client:
        for _ in range(20):
            client.get("/v1/healthz").raise_for_status()
        assert len(running.server.server_state.connections) == 1


# --- clients that leave --------------------------------------------------------------------------


def test_clients_that_leave_at_any_moment_wedge_nothing(app, store):
    with live(app) as running:
        for cut in range(0, len(WHOLE), 7):
            with dial(running.port) as sock:
                sock.sendall(WHOLE[:cut])
        with dial(running.port) as sock:
            sock.sendall(WHOLE)
        eventually(lambda: len(store.rows.get(RUN, ())) == 5, "the whole request is stored")
        eventually(lambda: not running.server.server_state.tasks, "no task is left")
        assert app.state.context.room._free == app.state.context.settings.limits.held_bytes


# --- stops ---------------------------------------------------------------------------------------


def test_a_stop_waits_for_what_is_under_way_and_refuses_what_is_new(app, store):
    store.hold = True
    with live(app) as running:
        with dial(running.port) as sock:
            sock.sendall(WHOLE)
            eventually(lambda: store.held, "the request waits for the store")
            running.server.stop()
            eventually(lambda: not running.server.servers[0].sockets, "nobody is let in any more")
            with pytest.raises(ConnectionError):
                dial(running.port)
            assert running.thread.is_alive()
            store.release()
            status, headers, told = read_answer(sock)
            assert (status, told["num_rows"]) == (200, 5)
            assert headers["connection"] == "close"
        assert running.ended()


def test_what_is_not_done_in_time_is_told_so(make_app, store):
    store.hold = True
    app = make_app(settings={"stop_seconds": 0.2})
    with live(app) as running, dial(running.port) as sock:
        sock.sendall(WHOLE)
        eventually(lambda: store.held, "the request waits for the store")
        running.server.stop()
        status, headers, told = read_answer(sock)
        assert (status, told["error"]["code"]) == (503, "stopping")
        assert headers["retry-after"]
        assert running.ended()
    store.release()
    assert len(store.rows[RUN]) == 5


def test_a_second_stop_does_not_wait(make_app, store):
    store.hold = True
    app = make_app(settings={"stop_seconds": 1_000.0})
    with live(app) as running, dial(running.port) as sock:
        sock.sendall(WHOLE)
        eventually(lambda: store.held, "the request waits for the store")
        running.server.stop()
        running.server.stop()
        assert running.ended()
        assert running.server.force_exit
    store.release()


def test_a_stop_under_load_answers_every_request_whole_or_not_at_all(app, store):
    answers, broken = [], []
    stopped = threading.Event()

    def agent(rank):
        seq = 0
        with dial(port) as sock:
            while True:
                body = encode_msgpack([step(seq + i, rank) for i in range(20)])
                try:
                    sock.sendall(HEAD + b"Content-Length: %d\r\n\r\n" % len(body) + body)
                    status, _, told = read_answer(sock)
                except (http.client.RemoteDisconnected, ConnectionError):
                    return  # no answer at all: the agent sends it again, elsewhere or later
                except Exception as error:
                    broken.append(error)
                    return
                answers.append((status, rank, seq))
                seq += 20 if status == 200 else 0
                if status != 200 and not stopped.is_set():
                    broken.append(told)
                    return

    with live(app) as running:
        port = running.port
        agents = [threading.Thread(target=agent, args=(rank,)) for rank in range(8)]
        for thread in agents:
            thread.start()
        eventually(lambda: len(answers) > 200, "the load runs")
        stopped.set()
        running.server.stop()
        assert running.ended()
        for thread in agents:
            thread.join(DEADLINE_S)
            assert not thread.is_alive()
    assert broken == []
    assert {status for status, _, _ in answers} <= {200, 503}
    stored = {(key[0], key[2]) for key in store.rows[RUN]}
    acknowledged = {(rank, seq) for status, rank, seq in answers if status == 200}
    assert acknowledged <= stored
