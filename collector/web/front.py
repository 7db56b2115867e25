"""The first thing a request meets: its id, the guard, the headers of every answer, count and log.

One plain ASGI layer for all of it. Starlette's BaseHTTPMiddleware starts a task for each layer and
request, which costs more than storing a small batch does.
"""

from __future__ import annotations

import asyncio
import itertools
import secrets
import time
from collections.abc import Sequence
from typing import Any

from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from cascade_runtime.vocabulary.errors import CascadeError
from collector.web.auth import Guard
from collector.web.errors import Fault, Stopping, code_of, error_response, status_of
from collector.web.limits import WHOLE_BODY, ClientGone
from collector.web.logs import log_request, logger
from collector.web.metrics import Metrics

SAFE_HEADERS: tuple[tuple[bytes, bytes], ...] = (
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cache-control", b"no-store"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
)
"""On every answer, except where the answer says otherwise itself."""

_CLIENT_GONE = 499
_SERVER_ERROR = 500


class Front:
    """The first layer of ours. FastAPI has some around it, but not for the direct routes.

    Args:
        guard: decides who may come in.
        metrics: counts.
        direct: routes that are served from here: the layers of FastAPI and its router cost more than
            decoding a small batch does.
    """

    def __init__(self, guard: Guard, metrics: Metrics, direct: Sequence[Route]) -> None:
        self._app: ASGIApp | None = None
        self._direct = {
            (method, route.path): route for route in direct for method in route.methods or ()
        }
        self._guard = guard
        self._metrics = metrics
        self._prefix = secrets.token_hex(4)
        self._numbers = itertools.count(1)

    def around(self, app: ASGIApp) -> Front:
        """What comes after, for all but the direct routes."""
        self._app = app
        return self

    def takes(self, scope: Scope) -> bool:
        """True for a request of a direct route, which needs no app around this one."""
        return scope["type"] == "http" and (scope["method"], scope["path"]) in self._direct

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request; no exception leaves."""
        if scope["type"] != "http":
            assert self._app is not None
            await self._app(scope, receive, send)
            return
        started = time.perf_counter()
        answer = _Answer(send, f"{self._prefix}-{next(self._numbers):x}")
        self._metrics.num_in_flight += 1
        try:
            self._guard.check(scope)
            route = self._direct.get((scope["method"], scope["path"]))
            if route is None:
                assert self._app is not None
                scope.pop(WHOLE_BODY, None)  # it is read the usual way, and the call would hold it
                await self._app(scope, receive, answer.send)
            else:
                scope["route"] = route
                await route.app(scope, receive, answer.send)
        except Exception as error:
            await self._refuse(error, answer, scope, receive)
        except asyncio.CancelledError:
            # The time for stopping is over. A request that has no answer yet gets one all the same.
            late = Stopping("the collector stopped before this was done", hint="send it again")
            await self._refuse(late, answer, scope, receive)
        finally:
            self._metrics.num_in_flight -= 1
            self._tell(scope, answer, time.perf_counter() - started)

    async def _refuse(
        self, error: Exception, answer: _Answer, scope: Scope, receive: Receive
    ) -> None:
        if isinstance(error, ClientGone):
            answer.status = _CLIENT_GONE
            return
        known = error if isinstance(error, CascadeError) else None
        if known is None or status_of(known) == _SERVER_ERROR:
            where = f"reference {answer.request_id}"
            logger.error(
                "fault", exc_info=error, extra={"fields": {"request_id": answer.request_id}}
            )
            known = Fault(
                "this is a fault of the collector, not of yours",
                where=where,
                hint="its log tells more under that reference",
            )
        answer.code = code_of(known)
        if answer.status == 0:
            await error_response(known)(scope, receive, answer.send)

    def _tell(self, scope: Scope, answer: _Answer, seconds: float) -> None:
        route = getattr(scope.get("route"), "path", "(none)")
        method = scope["method"]
        self._metrics.request(route, method, answer.status, seconds)
        fields: dict[str, Any] = {
            "request_id": answer.request_id,
            "method": method,
            "path": scope["path"][:200],
        }
        if answer.status >= 400:
            code = answer.code or "client_gone"
            self._metrics.rejected(code)
            fields["error"] = code
            if scope.get("client"):
                fields["client"] = scope["client"][0]
        log_request(route, fields, answer.status, seconds)


class _Answer:
    """Watches an answer go out and adds the headers that all have."""

    __slots__ = ("_out", "code", "request_id", "status")

    def __init__(self, out: Send, request_id: str) -> None:
        self._out = out
        self.request_id = request_id
        self.status = 0
        self.code: str | None = None

    async def send(self, message: Message) -> None:
        """Pass a message on."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
            headers = message.get("headers", ())
            names = {name for name, _ in headers}
            message["headers"] = [
                *headers,
                *[pair for pair in SAFE_HEADERS if pair[0] not in names],
                (b"x-request-id", self.request_id.encode()),
            ]
        await self._out(message)
