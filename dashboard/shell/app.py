"""Puts the dashboard into the collector's app: one process, one port."""

from __future__ import annotations

from fastapi import FastAPI
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from collector.web.errors import NotFound
from dashboard import story, tiles
from dashboard.shell.context import Shell
from dashboard.shell.lazy_pages import LazyPages, document
from dashboard.shell.paths import ROOT
from dashboard.shell.run_document import nowhere_document
from dashboard.shell.sign_in import sign_in_routes


def add_dashboard(app: FastAPI, shell: Shell) -> LazyPages:
    """Serve pages, stories and tiles beside what the app serves already.

    Dash gets an app of its own behind the one route ``/dash/...``. Inside the collector's app it
    would put its middleware before our guard, cost every batch of rows its share, and answer every
    unknown GET with a page. The guard, the headers and the log of the collector are around it.

    Args:
        app: by ``create_app``; not serving yet.
        shell: what is shown.

    Returns:
        The pages; ``warm_up()`` builds them before anybody asks.
    """
    pages = LazyPages(shell)
    app.include_router(story.routes(shell.sources))
    app.include_router(tiles.routes(shell.sources))
    app.router.routes += [
        Route("/", _to_the_pages, methods=["GET"]),
        Route(ROOT.rstrip("/"), _to_the_pages, methods=["GET"]),
        Route(f"{ROOT}{{path:path}}", pages),
        *sign_in_routes(shell.sessions),
    ]
    app.router.default = _Nowhere(app.router.default, shell)
    return pages


class _Nowhere:
    """What no route takes: a person gets a page with links, a program the collector's own error.

    Args:
        otherwise: answers programs.
        shell: what is shown.
    """

    def __init__(self, otherwise: ASGIApp, shell: Shell) -> None:
        self._otherwise = otherwise
        self._shell = shell

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http" or not _is_a_persons(Request(scope)):
            await self._otherwise(scope, receive, send)
            return
        told = await run_in_threadpool(nowhere_document, self._shell, scope["path"])
        await document(told, NotFound.status)(scope, receive, send)


def _is_a_persons(request: Request) -> bool:
    """Whether a browser asks for a page: it says so, and below ``/v1`` there are none."""
    wants = "text/html" in request.headers.get("accept", "")
    return wants and request.method in ("GET", "HEAD") and not request.url.path.startswith("/v1/")


async def _to_the_pages(request: Request) -> Response:
    return RedirectResponse(ROOT, status_code=307)
