"""HTTP/1.1 on a socket: uvicorn's protocol, with bounds on a request's head and our error shape.

uvicorn's httptools protocol waits for ever for the rest of a head and takes one of any size.
"""

from __future__ import annotations

import asyncio
from asyncio.events import TimerHandle
from functools import partial
from typing import Any, cast

from uvicorn.protocols.http.httptools_impl import (
    STATUS_LINE,
    HttpToolsProtocol,
    RequestResponseCycle,
)

from collector.web.errors import BadBody, BodyTooSlow, HeadTooLarge, WebError, error_body
from collector.web.front import SAFE_HEADERS
from collector.web.limits import WHOLE_BODY
from collector.web.one_write import OneWrite
from collector.web.settings import Limits


def bounded_protocol(limits: Limits) -> type[HttpToolsProtocol]:
    """A protocol class, as uvicorn wants it, with these limits."""

    class Bounded(HttpToolsProtocol):
        _answers: OneWrite
        _head_timer: TimerHandle | None = None
        _in_head = False
        _came_with_head = False  # what comes now, came in one piece with the end of a head
        _num_raw = 0  # of chunks that came while a head was not whole
        _num_parsed = 0  # of the request line and the headers that are whole

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            self._answers = OneWrite(transport)
            self._arm()

        def connection_lost(self, exc: Exception | None) -> None:
            self._disarm()
            super().connection_lost(exc)

        def data_received(self, data: bytes) -> None:
            if self._in_head:
                self._num_raw += len(data)
            self._came_with_head = False
            super().data_received(data)
            if self.transport.is_closing():
                return
            if self._in_head and self._num_raw > limits.head_bytes:
                self._end(_head_too_large(limits))
            elif self._in_head or self._is_forgotten():
                self._arm()

        def on_message_begin(self) -> None:
            super().on_message_begin()
            self._in_head = True
            self._num_raw = self._num_parsed = 0

        def on_url(self, url: bytes) -> None:
            super().on_url(url)
            self._count(len(url))

        def on_header(self, name: bytes, value: bytes) -> None:
            super().on_header(name, value)
            self._count(len(name) + len(value) + len(": \r\n"))

        def on_headers_complete(self) -> None:
            self._in_head, self._came_with_head = False, True
            self._disarm()
            super().on_headers_complete()
            if self.cycle is not None:
                self.cycle.transport = cast("asyncio.Transport", self._answers)

        def on_response_complete(self) -> None:
            self._answers.end()
            super().on_response_complete()

        def on_message_complete(self) -> None:
            super().on_message_complete()
            cycle = self.cycle
            # Its task has not begun: that waits for the end of data_received.
            if self._came_with_head and not cycle.waiting_for_100_continue:
                scope = cast("dict[str, Any]", cycle.scope)
                scope[WHOLE_BODY] = partial(_take_body, cycle)

        def send_400_response(self, msg: str) -> None:
            if self._num_parsed > limits.head_bytes:
                self._end(_head_too_large(limits))
                return
            self._end(
                BadBody(
                    "this is no HTTP request",
                    hint="is something else than an HTTP client, or HTTPS, talking to this port?",
                )
            )

        def _count(self, num_bytes: int) -> None:
            self._num_parsed += num_bytes
            if self._num_parsed > limits.head_bytes:
                raise OverflowError  # ends the parsing; send_400_response tells why

        def _is_forgotten(self) -> bool:
            """Bytes that began no request took the keep-alive timer away."""
            cycle: RequestResponseCycle | None = self.cycle
            idle = cycle is None or cycle.response_complete
            return idle and self.timeout_keep_alive_task is None

        def _arm(self) -> None:
            if self._head_timer is None:
                self._head_timer = self.loop.call_later(limits.head_seconds, self._head_too_slow)

        def _disarm(self) -> None:
            if self._head_timer is not None:
                self._head_timer.cancel()
                self._head_timer = None

        def _head_too_slow(self) -> None:
            self._head_timer = None
            if self.transport.is_closing():
                return
            if self._in_head:
                self._end(
                    BodyTooSlow(f"the headers were not whole after {limits.head_seconds:g} s")
                )
            else:
                self.transport.close()

        def _end(self, error: WebError) -> None:
            self.transport.write(_answer(error))
            self.transport.close()

    return Bounded


def _take_body(cycle: RequestResponseCycle) -> bytes:
    """The body; it is not kept, as an idle connection keeps its last cycle."""
    body, cycle.body = bytes(cycle.body), bytearray()
    return body


def _head_too_large(limits: Limits) -> HeadTooLarge:
    return HeadTooLarge(f"the request line and headers are larger than {limits.head_bytes} bytes")


def _answer(error: WebError) -> bytes:
    body = error_body(error)
    headers: list[tuple[bytes, bytes]] = [
        (b"content-type", b"application/json"),
        (b"content-length", b"%d" % len(body)),
        (b"connection", b"close"),
        *SAFE_HEADERS,
    ]
    lines = b"".join(name + b": " + value + b"\r\n" for name, value in headers)
    return STATUS_LINE[error.status] + lines + b"\r\n" + body
