"""Who may ask for what: tokens where there are any, else this machine's own users alone."""

from __future__ import annotations

import re
from collections.abc import Sequence
from urllib.parse import urlencode

from starlette.types import Scope

from collector.web.errors import NoToken, SignIn, ThroughProxy, WrongHost, WrongScope
from collector.web.sessions import Sessions, check_same_site
from collector.web.tokens import Tokens

OPEN = frozenset({"/v1/healthz", "/v1/readyz"})
"""Paths that need no token: orchestrators ask them, and they tell nothing."""

PAGES = "/dash/"
"""Where the pages are; a browser without a session is sent to the sign-in from here."""

SIGN_IN, SIGN_OUT = "/sign-in", "/sign-out"
_OPEN_TO_BROWSERS = frozenset({"/", SIGN_IN, SIGN_OUT, "/dash"})

_RUN = re.compile(r"/v1/runs/[^/]+")
_EITHER = frozenset({"read", "write"})
_READ = frozenset({"read"})
_WRITE = frozenset({"write"})
_ASKS = frozenset({"GET", "HEAD"})
_OURS = frozenset({"localhost", "127.0.0.1", "[::1]"})
_BY_PROXIES = frozenset({b"forwarded", b"x-real-ip", b"via"})
_HOST = re.compile(r"(\[[0-9a-fA-F:.]+\]|[^:\[\]]+)(?::\d{1,5})?")
_MAKE_ONE = "cascade serve --new-token NAME makes a token; send it as Authorization: Bearer TOKEN"


def scopes_for(method: str, path: str) -> frozenset[str]:
    """The scopes of which a token needs one.

    Asking needs ``read`` and the rest ``write``, but for two: SQL only asks, and whoever writes a
    run may ask how far it is stored.
    """
    if path == "/v1/sql" or path.startswith(PAGES):
        return _READ
    if method in _ASKS:
        return _EITHER if _RUN.fullmatch(path) else _READ
    return _WRITE


class Guard:
    """Lets a request in, or raises.

    Args:
        tokens: of the data folder.
        sessions: of browsers.
        loopback: whether the socket is bound to this machine alone.
    """

    def __init__(self, tokens: Tokens, sessions: Sessions, *, loopback: bool) -> None:
        self._tokens = tokens
        self._sessions = sessions
        self._loopback = loopback

    def check(self, scope: Scope) -> None:
        """Look at a request before anything else does.

        Raises:
            NoToken, WrongScope: a token is needed.
            SignIn: one is, and a browser asked for a page.
            CrossSite: a page of another site makes a browser act on our pages, or with its session.
            WrongHost: none is, and the Host header names another machine. A page of the web that
                has its own name point here (DNS rebinding) would else read what we have.
            ThroughProxy: none is, and a proxy passed the request on. It may come from anywhere, and
                many proxies write 127.0.0.1 into the Host header.
        """
        path = scope["path"]
        self._tokens.look_again()
        if self._tokens.required or not self._loopback:
            if path not in OPEN and path not in _OPEN_TO_BROWSERS:
                self._check_token(scope)
        else:
            _check_host(scope["headers"])
            _check_direct(scope["headers"])
        if path.startswith(PAGES) or path in _OPEN_TO_BROWSERS:
            check_same_site(scope)

    def _check_token(self, scope: Scope) -> None:
        given = _values(scope["headers"], b"authorization")
        if not given:
            if self._sessions.may(scope) & scopes_for(scope["method"], scope["path"]):
                check_same_site(scope)
                return
            if _is_page(scope["path"]) and scope["method"] in _ASKS:
                raise _to_sign_in(scope)
            raise NoToken("this collector needs a token", where="Authorization", hint=_MAKE_ONE)
        kind, _, token = given[0].strip().partition(" ")
        token = token.strip()
        if len(given) > 1 or kind.lower() != "bearer" or not token:
            raise NoToken(
                "this is not a bearer token",
                where="Authorization",
                hint="it has the form Authorization: Bearer TOKEN",
            )
        may = self._tokens.may(token)
        if may is None:
            raise NoToken("this token is not known here", where="Authorization", hint=_MAKE_ONE)
        wanted = scopes_for(scope["method"], scope["path"])
        if not may & wanted:
            (scope_name,) = wanted
            raise WrongScope(
                f"this token has not the scope {scope_name}",
                where="Authorization",
                hint=f"cascade serve --new-token NAME --scope {scope_name} makes one that has",
            )


def _is_page(path: str) -> bool:
    """Not what a page fetches for itself: that must fail as what it is."""
    return path.startswith(PAGES) and not path.startswith((f"{PAGES}_", f"{PAGES}assets/"))


def _to_sign_in(scope: Scope) -> SignIn:
    asked = scope["path"]
    if scope.get("query_string"):
        asked += f"?{scope['query_string'].decode('latin-1')}"
    error = SignIn("sign in to see this page", where=asked[:200])
    error.headers = {"location": f"{SIGN_IN}?{urlencode({'next': asked})}"}
    return error


def _check_host(headers: Sequence[tuple[bytes, bytes]]) -> None:
    hosts = _values(headers, b"host")
    found = _HOST.fullmatch(hosts[0]) if len(hosts) == 1 else None
    if found is None or found[1].lower() not in _OURS:
        raise WrongHost(
            "without a token, only this machine's own names are answered",
            where=f"Host: {', '.join(hosts)[:80]}",
            hint=f"use localhost or 127.0.0.1, or a token. {_MAKE_ONE}",
        )


def _check_direct(headers: Sequence[tuple[bytes, bytes]]) -> None:
    for name, _ in headers:
        if name in _BY_PROXIES or name.startswith(b"x-forwarded-"):
            raise ThroughProxy(
                "without a token, nothing is answered that came through a proxy",
                where=f"{name.decode('latin-1')[:80]} header",
                hint=_MAKE_ONE,
            )


def _values(headers: Sequence[tuple[bytes, bytes]], name: bytes) -> list[str]:
    return [value.decode("latin-1") for key, value in headers if key == name]
