"""Logs on stderr: one JSON object a line, or text for a person at a terminal.

A request is one line: no body, no header, no query; a token never comes near.
"""

from __future__ import annotations

import json
import logging
import sys
import time
from datetime import UTC, datetime
from typing import Any, Literal, TextIO

Format = Literal["json", "text"]

logger = logging.getLogger("cascade.web")
"""What the HTTP side logs with; ``extra={"fields": {...}}`` adds fields to the line."""

_ROOTS = ("cascade", "uvicorn")
_SLOW_SECONDS = 1.0
_OF_A_RUN = ("story", "pulse", "state", "window", "tile")
_QUIET = frozenset(
    {"/v1/events", "/v1/healthz", "/v1/readyz", "/metrics", "/dash/{path:path}"}
    | {f"/v1/runs/{{run_id}}/{name}" for name in _OF_A_RUN}
)
"""Routes that senders and open pages ask all the time: their successes are counted, not logged."""

_TELL_EVERY_S = 1.0
"""Of those, slow ones are told so often: a thousand lines a second would make an overload worse."""

_BAD = 400
_OURS = 500


class JsonLines(logging.Formatter):
    """One JSON object a line: time, level, message, then the fields."""

    def format(self, record: logging.LogRecord) -> str:
        """The line."""
        when = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        line: dict[str, Any] = {
            "time": when,
            "level": record.levelname.lower(),
            "message": record.getMessage(),
            **getattr(record, "fields", {}),
        }
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        # ASCII only: no separator that some reader takes for a line's end, no lone surrogate.
        return json.dumps(line, default=str, skipkeys=True)


class Text(logging.Formatter):
    """The same for a person; control characters of strangers are written out."""

    def format(self, record: logging.LogRecord) -> str:
        """The line, and a traceback below it."""
        fields = getattr(record, "fields", {})
        told = "".join(f" {key}={_plain(value)}" for key, value in fields.items())
        when = time.strftime("%H:%M:%S", time.localtime(record.created))
        line = f"{when} {record.levelname.lower()} {_plain(record.getMessage())}{told}"
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line


def set_up_logs(
    form: Format | None = None, stream: TextIO | None = None, least: int = logging.INFO
) -> None:
    """Send our logs and uvicorn's to stderr.

    Args:
        form: text where stderr is a terminal, else json, when not given.
        stream: stderr when not given.
        least: the level below which nothing is told.
    """
    out = stream or sys.stderr
    chosen = form or ("text" if out.isatty() else "json")
    handler = logging.StreamHandler(out)
    handler.setFormatter(Text() if chosen == "text" else JsonLines())
    for name in _ROOTS:
        root = logging.getLogger(name)
        root.handlers[:] = [handler]
        root.propagate = False
        root.setLevel(least)
    # Its starts and stops are told in our own words; its complaints are not lost.
    logging.getLogger("uvicorn.error").setLevel(max(least, logging.WARNING))


class _Seldom:
    """Counts what is not told, so that the next line says it."""

    def __init__(self) -> None:
        self._next_s = float("-inf")
        self._untold = 0

    def tell(self) -> int | None:
        """None: not now. Else how many were not told since the last one that was."""
        now = time.monotonic()
        if now < self._next_s:
            self._untold += 1
            return None
        self._next_s = now + _TELL_EVERY_S
        untold, self._untold = self._untold, 0
        return untold


_slow = _Seldom()


def log_request(route: str, fields: dict[str, Any], status: int, seconds: float) -> None:
    """One line for a request that was answered, where it is worth one.

    Args:
        route: the route's template.
        fields: request id, method, path, and what else is known.
        status: of the answer.
        seconds: that it took.
    """
    level = logging.INFO
    if status >= _OURS:
        level = logging.ERROR
    elif status >= _BAD:
        level = logging.WARNING
    elif seconds >= _SLOW_SECONDS:
        level = logging.WARNING
        if route in _QUIET:
            untold = _slow.tell()
            if untold is None:
                return
            fields["slow_before"] = untold
    elif route in _QUIET:
        level = logging.DEBUG
    if logger.isEnabledFor(level):
        told = {**fields, "status": status, "ms": round(seconds * 1e3, 2)}
        logger.log(level, "request", extra={"fields": told})


def _plain(value: object) -> str:
    text = str(value)
    return text if text.isprintable() else repr(text)[1:-1]
