"""Where a collector is and with what token it is asked: one rule for the agent and for every verb."""

from __future__ import annotations

import os
import urllib.parse

from cascade_runtime.vocabulary.errors import BadUsage

TOKEN_VARIABLE = "CASCADE_TOKEN"  # noqa: S105  # the name of the variable that holds it


def token_from_environment() -> str | None:
    """The bearer token of this environment, None without one.

    Raises:
        BadUsage: no header can carry it. The message does not show it.
    """
    return checked_token(os.environ.get(TOKEN_VARIABLE, ""))


def checked_token(token: str) -> str | None:
    """A token without the spaces around it, None for an empty one.

    Raises:
        BadUsage: no header can carry it. The message does not show it.
    """
    token = token.strip()
    if not token.isascii() or not token.isprintable() or " " in token:
        raise BadUsage(
            "the token holds characters that cannot be sent",
            where=TOKEN_VARIABLE,
            hint="copy it again, as one line",
        )
    return token or None


def checked_url(url: str, where: str | None = None) -> str:
    """A collector's address without the slash at its end.

    Args:
        url: what a person gave.
        where: how messages call the place; the address itself when not given.

    Raises:
        BadUsage: not http or https, no host, a port that is none, or more than an address in it.
            What may be secret is not shown: it would be printed, and lie in files.
    """
    where = where or ("URL" if "@" in url else url.partition("?")[0].partition("#")[0])
    hint = "give it like http://127.0.0.1:7654"
    try:
        parts = urllib.parse.urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable or any(c.isspace() or not c.isprintable() for c in url):
        raise BadUsage("this is not the address of a collector", where=where, hint=hint)
    if "@" in parts.netloc:
        raise BadUsage(
            "an address with a name or password in it is not taken",
            where=where,
            hint=f"put a token into the environment variable {TOKEN_VARIABLE}",
        )
    if parts.query or parts.fragment:
        raise BadUsage("a collector's address ends before ? and #", where=where, hint=hint)
    return url.rstrip("/")
