"""Puts the dashboard into the collector's app: one process, one port."""

from __future__ import annotations

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from dashboard import story, tiles
from dashboard.shell.context import Shell
from dashboard.shell.lazy_pages import LazyPages
from dashboard.shell.paths import ROOT
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
    return pages


async def _to_the_pages(request: Request) -> Response:
    return RedirectResponse(ROOT, status_code=307)
