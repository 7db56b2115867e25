"""Asks an ASGI app without a socket: bodies in pieces, clients that go away, headers as they are."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple
from urllib.parse import unquote

import msgspec

JSON = ("content-type", "application/json")


class Answer(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return msgspec.json.decode(self.body)

    @property
    def error(self) -> dict[str, str]:
        """The one error shape; asserts that it is that."""
        assert self.headers["content-type"] == "application/json"
        assert list(self.json) == ["error"]
        error = self.json["error"]
        assert list(error) == ["code", "message", "hint", "where"]
        assert all(isinstance(part, str) for part in error.values())
        assert error["message"]
        return error


def scope_of(method, target, headers=(), host="127.0.0.1:7654"):
    path, _, query = target.partition("?")
    given = [(name.encode(), value.encode("latin-1")) for name, value in headers]
    if host is not None:
        given.insert(0, (b"host", host.encode()))
    return {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": unquote(path),
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "root_path": "",
        "headers": given,
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 7654),
        "state": {},
    }


class Channel:
    """What the app reads and writes. A piece that is an exception class stops the sending there."""

    def __init__(self, pieces, end="wait"):
        self._pieces = list(pieces)
        self._end = end
        self.num_read = 0
        self.messages = []
        self.gone = asyncio.Event()

    async def receive(self):
        if self._pieces:
            piece = self._pieces.pop(0)
            self.num_read += len(piece)
            more = bool(self._pieces) or self._end != "whole"
            return {"type": "http.request", "body": piece, "more_body": more}
        if self._end == "gone":
            return {"type": "http.disconnect"}
        await self.gone.wait()
        return {"type": "http.disconnect"}

    async def send(self, message):
        self.messages.append(message)

    @property
    def answer(self) -> Answer | None:
        if not self.messages:
            return None
        start, *rest = self.messages
        headers = {name.decode(): value.decode("latin-1") for name, value in start["headers"]}
        assert len(headers) == len(start["headers"]), "a header is there twice"
        return Answer(start["status"], headers, b"".join(m.get("body", b"") for m in rest))


def ask(app, method, target, body=b"", headers=(), host="127.0.0.1:7654", pieces=None, end="whole"):
    """One request; None when the app did not answer.

    ``end``: the body is whole after the last piece, the client is gone, or nothing more comes (wait).
    """

    async def run():
        channel = Channel([body] if pieces is None else pieces, end)
        await app(scope_of(method, target, headers, host), channel.receive, channel.send)
        return channel.answer

    return in_a_loop(run())


def in_a_loop(work):
    """Run a coroutine; in a thread of its own where this one has a loop already, as it has once
    Playwright was started in it."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, work).result()
