"""The one shape of every error that leaves the collector, and its HTTP status."""

from __future__ import annotations

import http
from collections.abc import Mapping
from types import MappingProxyType

import msgspec
from starlette.responses import Response

from cascade_runtime.vocabulary.errors import BadTrace, BadUsage, CascadeError, NotSupported
from collector.storage._interface import DiskLow, NoSuchRun, QueueFull, RunDropped, StoreDown
from collector.wire.batch import BadBatch


class WebError(CascadeError):
    """An error of the HTTP side.

    Attributes:
        status: its HTTP status.
        headers: that the answer has besides.
    """

    status = 400
    headers: Mapping[str, str] = MappingProxyType({})


class BadBody(WebError):
    """A body that cannot be unpacked, or that is not what the route takes."""


class NoToken(WebError):
    """No bearer token, or none that is known."""

    status = 401


class SignIn(WebError):
    """A page that a browser asked for without a session: it is sent to the sign-in."""

    status = 303


class WrongScope(WebError):
    """A token that may not do this."""

    status = 403


class CrossSite(WebError):
    """A browser was made to send this by a page of another site."""

    status = 403


class NotFound(WebError):
    """There is nothing at that path."""

    status = 404


class MethodNotAllowed(WebError):
    """The path does not take this method."""

    status = 405


class BodyTooSlow(WebError):
    """A body that did not come within its time."""

    status = 408


class BodyTooLarge(WebError):
    """A body above a limit, packed or unpacked."""

    status = 413


class UnknownMediaType(WebError):
    """A Content-Type or Content-Encoding that is not understood."""

    status = 415


class WrongHost(WebError):
    """A Host header that does not name this machine."""

    status = 421


class ThroughProxy(WebError):
    """A request that others may have sent through a proxy, where no token is asked for."""

    status = 421


class BadRequestField(WebError):
    """A part of the request that breaks the documented form."""

    status = 422


class TooBusy(WebError):
    """Too many bodies are being read at one time."""

    status = 429


class TooManyTries(WebError):
    """Too many wrong tokens from one address."""

    status = 429


class HeadTooLarge(WebError):
    """A request line with headers above the limit."""

    status = 431


class Fault(WebError):
    """A fault of ours."""

    status = 500


class Stopping(WebError):
    """The collector is being stopped."""

    status = 503


_STATUS: dict[type[CascadeError], int] = {
    BadBatch: 422,
    BadTrace: 422,
    BadUsage: 400,
    NotSupported: 400,
    NoSuchRun: 404,
    RunDropped: 410,
    QueueFull: 429,
    StoreDown: 503,
    DiskLow: 507,
}

_RETRY_SECONDS = {429: 1, 503: 2, 507: 30}

_END_CONNECTION = frozenset({408, 413, 503})
"""What was not read of the body, or may still come, is not worth reading."""


def register_status(statuses: dict[type[CascadeError], int]) -> None:
    """Give errors of a service their HTTP statuses; subclasses have their parent's."""
    _STATUS.update(statuses)


def status_of(error: CascadeError) -> int:
    """The HTTP status of an error; 500 for one that no route is known to raise."""
    if isinstance(error, WebError):
        return error.status
    for kind in type(error).__mro__:
        status = _STATUS.get(kind)
        if status is not None:
            return status
    return 500


def code_of(error: CascadeError) -> str:
    """The error's name in JSON: BadBatch -> bad_batch."""
    name = type(error).__name__
    return "".join(f"_{c.lower()}" if c.isupper() else c for c in name).lstrip("_")


def error_body(error: CascadeError) -> bytes:
    """The JSON of an error."""
    inner = {
        "code": code_of(error),
        "message": error.message,
        "hint": error.hint,
        "where": error.where,
    }
    return msgspec.json.encode({"error": inner})


def error_headers(error: CascadeError) -> dict[str, str]:
    """The headers that belong to an error, Content-Type left out."""
    status = status_of(error)
    headers = dict(error.headers) if isinstance(error, WebError) else {}
    if status in _RETRY_SECONDS:
        headers["retry-after"] = str(_RETRY_SECONDS[status])
    if status == 401:  # RFC 9110: it must say how to authenticate
        headers["www-authenticate"] = 'Bearer realm="cascade"'
    if status in _END_CONNECTION:
        headers["connection"] = "close"
    return headers


def error_response(error: CascadeError) -> Response:
    """An error as an answer."""
    return Response(
        error_body(error),
        status_code=status_of(error),
        headers=error_headers(error),
        media_type="application/json",
    )


def from_http(status: int, where: str, headers: Mapping[str, str] | None = None) -> WebError:
    """The error for a bare HTTP status, as the router raises it."""
    if status == NotFound.status:
        error: WebError = NotFound(
            "there is nothing here", where=where, hint="GET /openapi.json lists what there is"
        )
    elif status == MethodNotAllowed.status:
        error = MethodNotAllowed(
            "this path does not take that method", where=where, hint="see the Allow header"
        )
    else:
        error = WebError(http.HTTPStatus(status).phrase.lower(), where=where)
        error.status = status
    error.headers = headers or {}
    return error
