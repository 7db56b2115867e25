"""Dash, built when the first person looks: a collector that nobody looks at never imports it."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import MutableMapping
from typing import TYPE_CHECKING, Any

from starlette.concurrency import run_in_threadpool
from starlette.responses import RedirectResponse
from starlette.types import Message, Receive, Scope, Send

from collector.web.errors import MethodNotAllowed, NotFound
from dashboard.shell.context import Shell
from dashboard.shell.csp import OWN_REFERRER
from dashboard.shell.paths import HOME, NOWHERE, ROOT, address, place_of

if TYPE_CHECKING:
    from dashboard.shell.dash_app import DashPages

_INNER = ("_", "assets/")
"""What pages fetch for themselves, below ``ROOT``."""

_MAY_KEEP = b"no-cache"
"""Assets are asked for again, and answered 304 while they are the same."""


class LazyPages:
    """The ASGI app at ``/dash/...``.

    Args:
        shell: what is shown.
    """

    def __init__(self, shell: Shell) -> None:
        self._shell = shell
        self._building = threading.Lock()
        self._built: DashPages | None = None

    def warm_up(self) -> None:
        """Build the pages in a thread of their own: somebody is about to look."""
        threading.Thread(target=self._pages, name="cascade-pages", daemon=True).start()

    def _pages(self) -> DashPages:
        with self._building:
            if self._built is None:
                from dashboard.shell.dash_app import build_pages

                self._built = build_pages(self._shell)
                # Dash's modules stay for ever, as the collector's own do (see cascade serve).
                gc.freeze()
            return self._built

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a page, or what a page fetches.

        Raises:
            NotFound, MethodNotAllowed: it is neither.
        """
        path = _encoded_path(scope)
        inner = path.removeprefix(ROOT).startswith(_INNER)
        if scope["method"] not in ("GET", "HEAD") and not inner:
            error = MethodNotAllowed("pages are only read", where=path[:200], hint="use GET")
            error.headers = {"allow": "GET, HEAD"}
            raise error
        status = 200 if inner else await run_in_threadpool(self._status, path)
        if isinstance(status, str):
            await RedirectResponse(status, status_code=303)(scope, receive, send)
            return
        pages = self._built
        if pages is None:
            pages = await asyncio.to_thread(self._pages)
        if inner:
            await self._serve_inner(pages, scope, receive, send)
            return
        # Every page is the same document; what is on it, its own callback says.
        head = [
            (b"content-security-policy", pages.policy),
            (b"referrer-policy", OWN_REFERRER.encode()),
        ]
        asked = {**scope, "path": ROOT, "raw_path": ROOT.encode()}
        await pages.app(asked, receive, _changed(send, status, head))

    async def _serve_inner(
        self, pages: DashPages, scope: Scope, receive: Receive, send: Send
    ) -> None:
        if not pages.has(scope["path"]):
            raise NotFound("there is nothing here", where=scope["path"][:200])
        assets = scope["path"].startswith(f"{ROOT}assets/")
        head = [(b"cache-control", _MAY_KEEP)] if assets else []
        await pages.app(dict(scope), receive, _changed(send, None, head))

    def _status(self, path: str) -> int | str:
        """The status of a page; the address of another page when that is meant."""
        place = place_of(path)
        if place == NOWHERE:
            return 404
        if place == HOME:
            runs = self._shell.runs()
            return address("run", runs[0].run_id) if len(runs) == 1 else 200
        known = place.run_id is None or self._shell.run(place.run_id) is not None
        return 200 if known else 404


def _encoded_path(scope: MutableMapping[str, Any]) -> str:
    """The path as it was sent: a run's id may hold an encoded slash."""
    raw = scope.get("raw_path")
    return raw.decode("latin-1").partition("?")[0] if raw else str(scope["path"])


def _changed(send: Send, status: int | None, more: list[tuple[bytes, bytes]]) -> Send:
    """A channel that gives an answer a status and headers."""

    async def changed(message: Message) -> None:
        if message["type"] == "http.response.start":
            if status is not None:
                message["status"] = status
            message["headers"] = [*message.get("headers", ()), *more]
        await send(message)

    return changed
