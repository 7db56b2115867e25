"""Dash, built when the first person looks: a collector that nobody looks at never imports it."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import MutableMapping
from typing import TYPE_CHECKING, Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.types import Message, Receive, Scope, Send

from collector.web.errors import MethodNotAllowed, NotFound
from dashboard.shell.bundle import BUNDLES, bundle
from dashboard.shell.context import Shell
from dashboard.shell.csp import OWN_REFERRER, page_policy
from dashboard.shell.paths import HOME, NOWHERE, ROOT, address, place_of
from dashboard.shell.run_document import run_document

if TYPE_CHECKING:
    from dashboard.shell.dash_app import DashPages

_INNER = ("_", "assets/")
"""What pages fetch for themselves, below ``ROOT``."""

_LATER_S = 3.0

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
        self._later: threading.Timer | None = None

    def warm_up(self) -> None:
        """Build the pages in a thread of their own: somebody is about to look."""
        threading.Thread(target=self._pages, name="cascade-pages", daemon=True).start()

    def _warm_up_later(self) -> None:
        """Somebody looks at a run, which needs no Dash, and may press a tab: not in the way of the picture."""
        if self._built is None and self._later is None:
            self._later = threading.Timer(_LATER_S, self._pages)
            self._later.daemon = True
            self._later.start()

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
        if path.startswith(BUNDLES):
            await _of_the_run_view(Request(scope))(scope, receive, send)
            return
        status = 200 if inner else await run_in_threadpool(self._status, path)
        if isinstance(status, str):
            await RedirectResponse(status, status_code=303)(scope, receive, send)
            return
        if isinstance(status, bytes):
            self._warm_up_later()
            headers = {
                "content-security-policy": page_policy().decode(),
                "referrer-policy": OWN_REFERRER,
            }
            answer = Response(status, headers=headers, media_type="text/html")
            await answer(scope, receive, send)
            return
        pages = self._built
        if pages is None:
            pages = await asyncio.to_thread(self._pages)
        if inner:
            await self._serve_inner(pages, scope, receive, send)
            return
        # Every other page is the same document; what is on it, its own callback says.
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

    def _status(self, path: str) -> int | str | bytes:
        """The status of a page of Dash's; the address of another page when that is meant, or a document."""
        place = place_of(path)
        if place == NOWHERE:
            return 404
        if place == HOME:
            runs = self._shell.runs()
            return address("run", runs[0].run_id) if len(runs) == 1 else 200
        run = None if place.run_id is None else self._shell.run(place.run_id)
        if run is not None and place.page == "run":
            return run_document(self._shell, run)
        return 200 if place.run_id is None or run is not None else 404


def _of_the_run_view(request: Request) -> Response:
    found = bundle().at(request.url.path)
    if found is None:
        raise NotFound("there is nothing here", where=request.url.path[:200])
    return found.answer(request.headers.get("accept-encoding", ""))


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
