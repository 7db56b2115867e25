"""Where rows go, with what token, and how long a job's end may wait for them."""

from __future__ import annotations

import math
import os
import urllib.parse

from cascade_runtime.vocabulary.errors import BadUsage

TOKEN_VARIABLE = "CASCADE_TOKEN"  # noqa: S105  # the variable's name, not a token
DEADLINE_VARIABLE = "CASCADE_SHIP_DEADLINE_S"
DEADLINE_S = 5.0


def check_collector(url: str) -> str:
    """The collector's address without a final slash.

    Raises:
        BadUsage: not http or https, no host, a port that is none, or more than an address in it.
    """
    hint = "give it like http://127.0.0.1:7654"
    try:
        parts = urllib.parse.urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable or any(c.isspace() or not c.isprintable() for c in url):
        raise BadUsage(
            "this is not the address of a collector",
            where="--collector or CASCADE_COLLECTOR",
            hint=hint,
        )
    if "@" in parts.netloc:  # not shown: it would be printed, and lie in job.json
        raise BadUsage(
            "an address with a name or password in it is not taken",
            where="--collector or CASCADE_COLLECTOR",
            hint=f"put the token into the environment variable {TOKEN_VARIABLE}",
        )
    if parts.query or parts.fragment:
        raise BadUsage("a collector's address ends before ? and #", where=url, hint=hint)
    return url.rstrip("/")


def token() -> str | None:
    """The bearer token of this environment, None without one.

    Raises:
        BadUsage: it holds what no HTTP header can carry (the message does not show it).
    """
    value = os.environ.get(TOKEN_VARIABLE, "").strip()
    if not value.isascii() or not value.isprintable():
        raise BadUsage(
            "the token holds characters that cannot be sent",
            where=TOKEN_VARIABLE,
            hint="copy it again, as one line",
        )
    return value or None


def deadline_s() -> float:
    """Seconds that an agent may go on shipping after its part of the job has ended.

    Raises:
        BadUsage: the variable holds no number of seconds.
    """
    text = os.environ.get(DEADLINE_VARIABLE)
    try:
        value = DEADLINE_S if text is None else float(text)
    except ValueError:
        value = -1.0
    if not math.isfinite(value) or value < 0:
        raise BadUsage(
            f"{text!r} is no number of seconds",
            where=DEADLINE_VARIABLE,
            hint=f"give 0 or more, or leave it out ({DEADLINE_S:g})",
        )
    return value
