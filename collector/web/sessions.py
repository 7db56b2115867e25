"""Browser sessions: what a person who signed in with a token holds instead of the token.

A cookie carries a random id; the token itself never leaves the sign-in. Sessions live in memory only:
after a restart people sign in again.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from starlette.types import Scope

from collector.web.errors import CrossSite, NoToken, TooManyTries
from collector.web.tokens import Tokens

COOKIE = "cascade_session"

HOURS = 12
_SECONDS = HOURS * 3600.0
_MOST = 1000
"""Sessions; the oldest goes when one more comes."""
_TRIES = 10
_TRY_SECONDS = 60.0
_CALLERS = 1000
_ITSELF = frozenset({"same-origin", "none"})
_SAFE = frozenset({"GET", "HEAD"})


@dataclass(frozen=True)
class _Session:
    token_hash: bytes
    until_s: float


class Sessions:
    """The sessions of one collector. Safe to call from several threads.

    Args:
        tokens: of the data folder; a session ends with its token.
        clock: seconds, steady.
    """

    def __init__(self, tokens: Tokens, clock: Callable[[], float] = time.monotonic) -> None:
        self._tokens = tokens
        self._clock = clock
        self._lock = threading.Lock()
        self._sessions: OrderedDict[str, _Session] = OrderedDict()
        self._tries: OrderedDict[str, list[float]] = OrderedDict()

    @property
    def needed(self) -> bool:
        """Whether pages ask who is there."""
        self._tokens.look_again()
        return self._tokens.required

    def sign_in(self, token: str, caller: str) -> str:
        """A new session's id.

        Args:
            token: as it was typed.
            caller: the client's address; wrong tries are counted by it.

        Raises:
            NoToken: the token is not known, or may not read.
            TooManyTries: 10 wrong ones came from there within a minute.
        """
        with self._lock:
            may = self._tokens.may(token)
            if may is None or "read" not in may:
                # Not before: the right token comes in also while somebody at the same address
                # (behind one proxy, say) tries others.
                self._check_tries(caller)
                self._tries.setdefault(caller, []).append(self._clock())
                while len(self._tries) > _CALLERS:
                    self._tries.popitem(last=False)
                what = "is not known here" if may is None else "may only write; pages need to read"
                raise NoToken(
                    f"this token {what}",
                    hint="cascade serve --new-token NAME --scope read makes one",
                )
            self._tries.pop(caller, None)
            made = secrets.token_urlsafe(32)
            until = self._clock() + _SECONDS
            self._sessions[made] = _Session(self._tokens.hash_of(token), until)
            while len(self._sessions) > _MOST:
                self._sessions.popitem(last=False)
            return made

    def may(self, scope: Scope) -> frozenset[str]:
        """What the session of a request may do: read, or nothing."""
        made = session_id(scope)
        with self._lock:
            session = self._sessions.get(made) if made else None
            if session is None:
                return frozenset()
            may = self._tokens.may_hash(session.token_hash)
            if may is None or "read" not in may or session.until_s < self._clock():
                del self._sessions[str(made)]
                return frozenset()
        return frozenset({"read"})

    def sign_out(self, scope: Scope) -> None:
        """End the session of a request, if it has one."""
        with self._lock:
            self._sessions.pop(session_id(scope) or "", None)

    def _check_tries(self, caller: str) -> None:
        since = self._clock() - _TRY_SECONDS
        kept = [at for at in self._tries.get(caller, ()) if at > since]
        if kept:
            self._tries[caller] = kept
        else:
            self._tries.pop(caller, None)
        if len(kept) >= _TRIES:
            raise TooManyTries(
                f"{_TRIES} wrong tokens came from this address within a minute",
                where=caller,
                hint="wait a minute, then try again",
            )


def session_id(scope: Scope) -> str | None:
    """The id in a request's cookie; None when there is none, or more than one."""
    # By hand: http.cookies stops without a word at the first cookie that it does not like, and those of
    # every other server on this host's ports come along.
    pairs = [
        pair.strip().partition("=")
        for text in _values(scope["headers"], b"cookie")
        for pair in text.split(";")
    ]
    found = [value.strip() for name, _, value in pairs if name.strip() == COOKIE]
    return found[0] if len(found) == 1 else None


def check_same_site(scope: Scope) -> None:
    """Refuse what a page of another site makes a browser send.

    Browsers say where a request comes from: in Sec-Fetch-Site, and where they do not send that (over
    plain HTTP from another machine) in Origin. A client that says neither is no browser, and holds
    nothing that a page could misuse.

    Raises:
        CrossSite: it is not from a page of ours.
    """
    if scope["method"] in _SAFE:
        return
    headers = scope["headers"]
    sites, origins = _values(headers, b"sec-fetch-site"), _values(headers, b"origin")
    hosts = _values(headers, b"host")
    if sites:
        ours = all(site in _ITSELF for site in sites)
    else:
        ours = all([origin.partition("://")[2]] == hosts for origin in origins)
    if not ours:
        raise CrossSite(
            "this was sent from a page of another site",
            where=f"Origin: {', '.join(origins)[:80]}",
            hint="open the page here and do it there",
        )


def _values(headers: Sequence[tuple[bytes, bytes]], name: bytes) -> list[str]:
    return [value.decode("latin-1") for key, value in headers if key == name]
