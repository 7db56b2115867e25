"""One keep-alive connection to a collector, and what its answers mean for a sender (docs/wire.md)."""

from __future__ import annotations

import http.client
import struct
import urllib.parse

import msgspec
import zstandard

TIMEOUT_S = 10.0
MEDIA_TYPE = "application/vnd.msgpack"
_STOP = {
    401: "give its token in the environment variable CASCADE_TOKEN",
    403: "give a token with the write scope in the environment variable CASCADE_TOKEN",
    410: "the collector has dropped this run and takes nothing more of it",
}
_GONE = 410
_REFUSED = (400, 413, 422)
_LONGEST_ANSWER = 1 << 22
_ARRAY32 = struct.Struct(">BI")


class Mark(msgspec.Struct, frozen=True):
    """Up to which seq the collector has every row of an actor."""

    run_id: str
    rank: int
    incarnation: int
    seq: int


class Answer(msgspec.Struct, frozen=True):
    """To a batch that was taken."""

    marks: list[Mark]


class Later(Exception):
    """It cannot be sent now. ``retry_after_s``: what the collector asked for."""

    def __init__(self, why: str, retry_after_s: float | None = None) -> None:
        super().__init__(why)
        self.retry_after_s = retry_after_s


class Refused(Exception):
    """There is something wrong with what was sent."""

    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status = status


class Stopped(Exception):
    """The collector wants nothing from us.

    Attributes:
        hint: what to do about it.
        for_good: it will never want these rows.
    """

    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.hint = _STOP[status]
        self.for_good = status == _GONE


class Link:
    """The connection; not for use by several threads.

    Args:
        url: of the collector, checked.
        token: bearer token, if there is one.
        timeout_s: how long the collector may be silent during a request, in seconds.
    """

    def __init__(self, url: str, token: str | None, timeout_s: float = TIMEOUT_S) -> None:
        parts = urllib.parse.urlsplit(url)
        kind = (
            http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        )
        self._connection = kind(parts.hostname or "", parts.port, timeout=timeout_s)
        self._path = parts.path
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._pack = zstandard.ZstdCompressor(level=1).compress

    def set_timeout(self, timeout_s: float) -> None:
        """For later requests."""
        self._connection.timeout = timeout_s
        if self._connection.sock is not None:
            self._connection.sock.settimeout(timeout_s)

    def post(self, payloads: list[bytes]) -> Answer:
        """Send packed records.

        Raises:
            Later, Refused, Stopped.
        """
        body = b"".join((_ARRAY32.pack(0xDD, len(payloads)), *payloads))
        headers = {"Content-Type": MEDIA_TYPE, "Content-Encoding": "zstd"}
        data = self._ask("POST", "/v1/events", self._pack(body), headers, _REFUSED)
        try:
            return msgspec.json.decode(data, type=Answer)
        except msgspec.MsgspecError:
            raise Later("what answers there is no collector") from None

    def put_run(self, run_id: str, trace_json: bytes) -> None:
        """Send a run's trace.json.

        Raises:
            Later, Refused, Stopped.
        """
        path = f"/v1/runs/{urllib.parse.quote(run_id, safe='')}"
        headers = {"Content-Type": "application/json"}
        self._ask("PUT", path, trace_json, headers, (*_REFUSED, 404, 405))

    def close(self) -> None:
        """Close the connection; the next request opens another one."""
        self._connection.close()

    def _ask(
        self,
        method: str,
        path: str,
        body: bytes,
        headers: dict[str, str],
        refusals: tuple[int, ...],
    ) -> bytes:
        status, asked_s, data = self._exchange(method, self._path + path, body, headers)
        if status in (200, 201, 204):
            return data
        why = f"it answered {status}{_reason(data)}"
        if status in _STOP:
            raise Stopped(status, why)
        if status in refusals:
            raise Refused(status, why)
        raise Later(why, asked_s)

    def _exchange(
        self, method: str, path: str, body: bytes, headers: dict[str, str]
    ) -> tuple[int, float | None, bytes]:
        reused = self._connection.sock is not None
        try:
            self._connection.request(method, path, body, self._headers | headers)
            response = self._connection.getresponse()
            data = response.read(_LONGEST_ANSWER)
            if not response.isclosed():  # more than any collector says: do not read on in it
                self.close()
            return response.status, _seconds(response.headers.get("Retry-After")), data
        except ConnectionError as error:
            self.close()
            if reused:  # it was idle for too long and the other end had closed it: no failure yet
                return self._exchange(method, path, body, headers)
            raise Later(_say_why(error)) from error
        except (OSError, http.client.HTTPException, UnicodeError) as error:
            self.close()
            raise Later(_say_why(error)) from error


def _say_why(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return "it did not answer in time"
    if isinstance(error, OSError) and error.strerror:
        return f"it cannot be reached: {error.strerror}"
    return f"it cannot be reached: {type(error).__name__}"


def _seconds(value: str | None) -> float | None:
    return float(value) if value is not None and value.isascii() and value.isdigit() else None


class _Error(msgspec.Struct):
    message: str
    where: str = ""


class _ErrorBody(msgspec.Struct):
    error: _Error


def _reason(data: bytes) -> str:
    """The collector's own words, fit for one line of a terminal."""
    try:
        error = msgspec.json.decode(data, type=_ErrorBody).error
    except msgspec.MsgspecError:
        return ""
    text = f"{error.where}: {error.message}" if error.where else error.message
    return " (" + "".join(c if c.isprintable() else " " for c in text)[:200] + ")"
