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

from cascade_runtime.vocabulary.errors import CascadeError
from collector.web.errors import MethodNotAllowed, NotFound, status_of
from collector.web.limits import Room, read_body
from dashboard.shell.bundle import BUNDLES, bundle
from dashboard.shell.callback_form import MAX_BYTES, check_form
from dashboard.shell.context import Shell
from dashboard.shell.csp import OWN_REFERRER, page_policy
from dashboard.shell.paths import HOME, NOWHERE, ROOT, address, place_of
from dashboard.shell.run_document import failed_document, run_document

if TYPE_CHECKING:
    from dashboard.shell.dash_app import DashPages

_INNER = ("_", "assets/")
"""What pages fetch for themselves, below ``ROOT``."""

_CALLBACK = f"{ROOT}_dash-update-component"

_LATER_S = 3.0

_BODY_S = 30.0
_LARGE_BODY = 64 << 10
"""Bytes from which on a body is read in a thread: 4 MiB of JSON take 0.3 s."""

_NUM_BODIES = 8

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
        self._room = Room(_NUM_BODIES * MAX_BYTES)

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
            BadBody, BodyTooLarge: a callback is called with what it does not take.
        """
        path = _encoded_path(scope)
        inner = path.removeprefix(ROOT).startswith(_INNER)
        if scope["method"] not in ("GET", "HEAD") and not inner:
            error = MethodNotAllowed("pages are only read", where=path[:200], hint="use GET")
            error.headers = {"allow": "GET, HEAD"}
            raise error
        if path.startswith(BUNDLES):
            answer = await run_in_threadpool(_of_the_run_view, scope["path"], Request(scope))
            await answer(scope, receive, send)
            return
        try:
            status = 200 if inner else await run_in_threadpool(self._status, path)
        except CascadeError as error:  # a person reads it, not a program
            told = await run_in_threadpool(failed_document, error)
            await document(told, status_of(error))(scope, receive, send)
            return
        if isinstance(status, str):
            await RedirectResponse(status, status_code=303)(scope, receive, send)
            return
        if isinstance(status, bytes):
            self._warm_up_later()
            await document(status)(scope, receive, send)
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
        if scope["path"] == _CALLBACK and scope["method"] == "POST":
            said_length = dict(scope["headers"]).get(b"content-length")
            body = await read_body(receive, said_length, MAX_BYTES, _BODY_S, self._room)
            try:
                if len(body) > _LARGE_BODY:
                    await run_in_threadpool(check_form, body, pages.callbacks)
                else:
                    check_form(body, pages.callbacks)
                await pages.app(dict(scope), _once(body, receive), send)
            finally:
                self._room.give(len(body))
            return
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


def document(body: bytes, status: int = 200) -> Response:
    """A document of ours, with what it may load."""
    headers = {
        "content-security-policy": page_policy().decode(),
        "referrer-policy": OWN_REFERRER,
    }
    return Response(body, status, headers=headers, media_type="text/html")


def _once(body: bytes, receive: Receive) -> Receive:
    """A channel that gives the body, and then what else comes."""
    given = False

    async def again() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again


def _of_the_run_view(path: str, request: Request) -> Response:
    """A file of the bundle, which is read and packed when the first of them is asked for."""
    found = bundle().at(path)
    if found is None:
        raise NotFound("there is nothing here", where=path[:200])
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
