"""A collector's doorway with faults: stores what it acknowledges, and can hang, reset, refuse, lie."""

from __future__ import annotations

import json
import socket
import struct
import threading
from collections import deque
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import msgspec
import zstandard

from cascade_runtime.vocabulary.events import CollectiveDone, Record
from cascade_runtime.vocabulary.identity import Actor

_records = msgspec.msgpack.Decoder(list[Record])

Fault = Callable[["Handler", list[Record]], bool]
"""Done to one request; True when it was answered by that."""


class FakeCollector:
    """Listens on a free port for the life of the context."""

    def __init__(self) -> None:
        self.rows: dict[Actor, dict[int, Any]] = {}
        self.dones: list[CollectiveDone] = []
        self.metas: list[dict[str, Any]] = []
        self.order: list[str] = []
        self.tokens: set[str | None] = set()
        self.bodies: list[bytes] = []
        self.num_posts = 0
        self.num_duplicates = 0
        self.faults: deque[Fault] = deque()
        """For the next requests, one each."""
        self.always: Fault | None = None
        self.refuse: Callable[[Any], bool] = lambda record: False
        self.claim: Callable[[int], int] = lambda mark: mark
        self.put_status = 200
        self.lock = threading.Lock()
        self.over = threading.Event()

    def __enter__(self) -> FakeCollector:
        self._server = _Server(("127.0.0.1", 0), Handler)
        self._server.collector = self
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))
        self._thread.start()
        return self

    def __exit__(self, *ignored: object) -> None:
        self.over.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def store(self, records: list[Record]) -> list[dict[str, Any]]:
        with self.lock:
            for record in records:
                actor = Actor(record.rank, record.incarnation)
                if isinstance(record, CollectiveDone):
                    self.dones.append(record)
                elif record.seq in self.rows.setdefault(actor, {}):
                    self.num_duplicates += 1
                else:
                    self.rows[actor][record.seq] = record
            actors = {(r.run_id, Actor(r.rank, r.incarnation)) for r in records}
            return [
                {"run_id": run, "rank": a.rank, "incarnation": a.incarnation, "seq": self.mark(a)}
                for run, a in actors
            ]

    def mark(self, actor: Actor) -> int:
        """Contiguous from 0; a gaps row accounts for what it names."""
        rows = self.rows.get(actor, {})
        known = set(rows)
        for row in rows.values():
            if hasattr(row, "first_seq"):
                known.update(range(row.first_seq, (row.last_seq or row.first_seq) + 1))
        seq = -1
        while seq + 1 in known:
            seq += 1
        return self.claim(seq)

    def tables(self) -> set[str]:
        return {
            type(row).__struct_config__.tag for mine in self.rows.values() for row in mine.values()
        }


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    collector: FakeCollector

    def handle_error(self, *ignored: object) -> None:
        """Clients of these tests die and hang up."""


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def log_message(self, *ignored: object) -> None:
        pass

    def do_PUT(self) -> None:
        collector = self.server.collector
        text = self.rfile.read(int(self.headers["Content-Length"]))
        if collector.always is not None and collector.always(self, []):
            return
        if collector.put_status == 200:
            collector.metas.append({"path": self.path} | json.loads(text))
            collector.order.append("meta")
        self.answer(collector.put_status, {})

    def do_POST(self) -> None:
        collector = self.server.collector
        assert self.path == "/v1/events"
        assert self.headers["Content-Type"] == "application/vnd.msgpack"
        assert self.headers["Content-Encoding"] == "zstd"
        body = self.rfile.read(int(self.headers["Content-Length"]))
        body = zstandard.ZstdDecompressor().decompress(body)
        assert body[0] == 0xDD
        collector.num_posts += 1
        collector.order.append("rows")
        collector.bodies.append(body)
        collector.tokens.add(self.headers["Authorization"])
        records = _records.decode(body)
        fault = collector.faults.popleft() if collector.faults else collector.always
        if fault is not None and fault(self, records):
            return
        if any(collector.refuse(record) for record in records):
            self.answer(422, {"error": {"message": "it breaks the schema", "where": "record 1"}})
            return
        self.accept(records)

    def accept(self, records: list[Record]) -> None:
        marks = self.server.collector.store(records)
        self.answer(200, {"num_rows": len(records), "num_duplicates": 0, "marks": marks})

    def answer(self, status: int, body: Any, **headers: str) -> None:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


# ---- faults ------------------------------------------------------------------------------------


def answers(status: int, body: Any = None, **headers: str) -> Fault:
    def fault(handler: Handler, records: list[Record]) -> bool:
        handler.answer(status, body if body is not None else {}, **headers)
        return True

    return fault


def resets(handler: Handler, records: list[Record]) -> bool:
    """The connection is cut before anything is stored."""
    handler.close_connection = True
    handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    handler.connection.close()
    return True


def stores_and_resets(handler: Handler, records: list[Record]) -> bool:
    """Durable, but nobody hears of it."""
    handler.server.collector.store(records)
    return resets(handler, records)


def hangs(handler: Handler, records: list[Record]) -> bool:
    handler.server.collector.over.wait()
    handler.close_connection = True
    return True


def answers_and_hangs_up(handler: Handler, records: list[Record]) -> bool:
    """As an idle connection that is closed from the other end, without a word."""
    handler.accept(records)
    handler.close_connection = True
    return True
