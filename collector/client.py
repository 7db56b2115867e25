"""A collector over HTTP, as ``cascade push`` and ``cascade sql`` ask it.

URL and token are checked, a busy collector is asked again, and what it refuses is told in its words.
"""

from __future__ import annotations

import ipaddress
import math
import random
import ssl
import time
from collections.abc import Callable
from typing import Any, TypeVar

import httpx
import msgspec

from cascade_runtime.vocabulary.collector_address import (
    TOKEN_VARIABLE,
    checked_token,
    checked_url,
)
from cascade_runtime.vocabulary.errors import CascadeError

BUSY = frozenset({429, 503, 507})
"""Statuses by which a collector says: later."""

_T = TypeVar("_T", bound=msgspec.Struct)

_TLS_HINT = "set SSL_CERT_FILE to the certificate of the collector or its authority"
_FIRST_WAIT_S = 0.1
_LONGEST_WAIT_S = 10.0
_LONGEST_ASKED_S = 30.0
_TOLD_BUSY = 4
"""A collector is busy for a moment now and then; after so many tries it is told."""


class CollectorRefused(CascadeError):
    """The collector answered, and does not want what was sent."""


class CollectorAway(CascadeError):
    """The collector could not be reached, or could take nothing, for as long as was allowed."""


class Client:
    """One collector.

    Args:
        url: its URL.
        token: bearer token, if it needs one.
        scope: that the token needs for what is asked; a hint names it.
        timeout_s: how long to go on trying while nothing succeeds.
        again: statuses after which the same is sent again.
        wait_for_it: send again too where nobody answers; else that is an error at once.
        first_wait_s: how long to go on trying where nobody has answered yet; None: ``timeout_s``.
        on_wait: told once a request that it is tried again: why, and for how many seconds at most.
        away_hint: what to do when the time is over.
        unreached_hint: what to do where nobody answers.
        sleep: waits; for tests.
        http: the HTTP client; for tests.

    Raises:
        BadUsage: no http or https URL, or a token that no header can carry.
    """

    def __init__(
        self,
        url: str,
        token: str | None = None,
        *,
        scope: str,
        timeout_s: float,
        again: frozenset[int] = BUSY,
        wait_for_it: bool = True,
        first_wait_s: float | None = None,
        on_wait: Callable[[str, float], None] = lambda why, seconds: None,
        away_hint: str = "run the same command again later",
        unreached_hint: str = "check the address, and that cascade serve runs there",
        sleep: Callable[[float], None] = time.sleep,
        http: httpx.Client | None = None,
    ) -> None:
        self.url = checked_url(url)
        token = checked_token(token or "")
        self._scope = scope
        self._timeout_s = timeout_s
        self._again = again
        self._wait_for_it = wait_for_it
        self._first_wait_s = timeout_s if first_wait_s is None else first_wait_s
        self._on_wait = on_wait
        self._met = False
        """Somebody has answered."""
        self._away_hint = away_hint
        self._unreached_hint = unreached_hint
        self._sleep = sleep
        self._headers = {"authorization": f"Bearer {token}"} if token else {}
        self._http = http or httpx.Client(timeout=httpx.Timeout(60.0, connect=10.0))

    def close(self) -> None:
        """End the connections."""
        self._http.close()

    def ask(
        self,
        method: str,
        path: str,
        *,
        good: tuple[int, ...] = (200,),
        content: bytes | None = None,
        media_type: str = "application/json",
    ) -> httpx.Response:
        """One request, sent again until it succeeds, is refused, or the time is over.

        Args:
            method, path: what is asked.
            good: statuses that are no error.
            content: the body.
            media_type: of the body.

        Raises:
            CollectorRefused, CollectorAway.
        """
        headers = self._headers | ({"content-type": media_type} if content is not None else {})
        began = time.monotonic()
        num_tries = 0
        while True:
            asked_s = 0.0
            try:
                answer = self._http.request(
                    method, self.url + path, content=content, headers=headers
                )
            except httpx.TransportError as error:
                why = f"it cannot be reached: {error}" if str(error) else "it does not answer"
                patience_s = self._timeout_s if self._met else self._first_wait_s
                if not self._wait_for_it or not patience_s or _is_tls(error):
                    hint = _TLS_HINT if _is_tls(error) else self._unreached_hint
                    raise CollectorAway(why, where=self.url, hint=hint) from error
                if num_tries == 0:
                    self._on_wait(why, patience_s)
            except httpx.RequestError as error:  # an answer that cannot be unpacked, say
                raise self._no_collector() from error
            else:
                self._met, patience_s = True, self._timeout_s
                if answer.status_code in good:
                    return answer
                why, hint = self._told(answer)
                if answer.status_code not in self._again:
                    raise CollectorRefused(why, where=f"{method} {self.url}{path}", hint=hint)
                asked_s = _retry_after(answer)
                if num_tries == _TOLD_BUSY:
                    self._on_wait(why, patience_s)
            wait_s = _wait(num_tries, asked_s)
            if time.monotonic() + wait_s > began + patience_s:
                raise CollectorAway(
                    f"{why} (after trying for {patience_s:g} s)",
                    where=self.url,
                    hint=self._away_hint,
                )
            num_tries += 1
            self._sleep(wait_s)

    def parsed(self, answer: httpx.Response, kind: type[_T]) -> _T:
        """The JSON of an answer.

        Raises:
            CollectorRefused: it is not what a collector answers.
        """
        try:
            return msgspec.json.decode(answer.content, type=kind)
        except msgspec.MsgspecError as error:
            raise self._no_collector() from error

    def _no_collector(self) -> CollectorRefused:
        return CollectorRefused(
            "what answers there is no collector", where=self.url, hint="check the URL"
        )

    def _told(self, answer: httpx.Response) -> tuple[str, str]:
        """What an error answer says: message and hint."""
        hint = ""
        if answer.status_code in (httpx.codes.UNAUTHORIZED, httpx.codes.FORBIDDEN):
            hint = (
                f"put a token that may {self._scope} into the environment variable {TOKEN_VARIABLE}"
            )
        try:
            told: dict[str, Any] = msgspec.json.decode(answer.content)["error"]
            where = f" ({told['where']})" if told["where"] else ""
            return f"the collector says: {told['message']}{where}", hint or str(told["hint"])
        except (msgspec.MsgspecError, KeyError, TypeError):
            return f"it answered {answer.status_code}, which is not a collector's way", hint


def readable_on_the_way(url: str, token: str | None) -> str | None:
    """A warning where a token goes over a network as it is; None where it does not."""
    parsed = httpx.URL(url)
    if token is None or parsed.scheme != "http" or _is_loopback(parsed.host):
        return None
    return f"the token goes to {parsed.host} unencrypted; serve with TLS and ask https://"


def _is_loopback(host: str) -> bool:
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _retry_after(answer: httpx.Response) -> float:
    told = answer.headers.get("retry-after", "")
    seconds = float(told) if told.isascii() and told.isdigit() else 0.0
    return min(seconds, _LONGEST_ASKED_S) if math.isfinite(seconds) else _LONGEST_ASKED_S


def _wait(num_tries: int, asked_s: float) -> float:
    """Seconds until the next try: as asked, and longer each time, at random so that many spread."""
    most = min(_FIRST_WAIT_S * 2 ** min(num_tries, 10), _LONGEST_WAIT_S)
    return asked_s + random.uniform(0.0, most)  # noqa: S311  # no secret


def _is_tls(error: BaseException | None) -> bool:
    while error is not None:
        if isinstance(error, ssl.SSLError):
            return True
        error = error.__cause__ or error.__context__
    return False
