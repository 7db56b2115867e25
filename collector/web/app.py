"""The collector's HTTP app."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from collector.sql.service import SqlRequest
from collector.storage._interface import EventStore, Receipt
from collector.web import health, runs, sql
from collector.web.auth import Guard
from collector.web.context import Context
from collector.web.errors import BadRequestField, from_http
from collector.web.events import OPENAPI, PATH, Events
from collector.web.front import Front
from collector.web.limits import Room
from collector.web.metrics import Metrics
from collector.web.openapi import document
from collector.web.sessions import Sessions
from collector.web.settings import Settings
from collector.web.tokens import Tokens

_TYPES = (Receipt, runs.Runs, runs.RunDetails, SqlRequest)


def create_app(
    store: EventStore, sql_runner: sql.SqlRunner, tokens: Tokens, settings: Settings | None = None
) -> FastAPI:
    """The app; ``app.state.context`` is what its routes share, ``app.state.sessions`` who signed in.

    Args:
        store: where rows go. Whoever opened it closes it.
        sql_runner: runs strangers' SQL.
        tokens: of the data folder.
        settings: defaults when not given.
    """
    settings = settings or Settings()
    metrics = Metrics(store, sql_runner.health)
    context = Context(store, settings, metrics, Room(settings.limits.held_bytes))
    events = Route(PATH, Events(context), methods=["POST"])
    sessions = Sessions(tokens)
    front = Front(Guard(tokens, sessions, loopback=settings.loopback), metrics, [events])
    app = _App(
        title="CASCADE collector",
        version="1",
        description="The one doorway for live and replayed events.",
        docs_url=None,  # these pages load scripts from elsewhere
        redoc_url=None,
        redirect_slashes=False,
    )
    app.front = front
    app.state.context = context
    app.state.sessions = sessions
    app.add_middleware(front.around)
    app.exception_handler(HTTPException)(_http_error)
    app.exception_handler(RequestValidationError)(_validation_error)
    app.router.routes.append(events)  # for the methods that it does not take
    app.include_router(runs.routes(context))
    app.include_router(sql.routes(context, sql_runner))
    app.include_router(health.routes(context))
    made: dict[str, Any] = {}

    def openapi() -> dict[str, Any]:
        if not made:
            made.update(document(app, _TYPES, {PATH: OPENAPI}))
        return made

    app.openapi = openapi  # type: ignore[method-assign]  # FastAPI's own way to extend it
    return app


class _App(FastAPI):
    """The direct routes are served before FastAPI's own layers."""

    front: Front

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if self.front.takes(scope):
            await self.front(scope, receive, send)
        else:
            await super().__call__(scope, receive, send)


async def _http_error(request: Request, error: HTTPException) -> None:
    raise from_http(error.status_code, request.url.path[:200], error.headers) from error


async def _validation_error(request: Request, error: RequestValidationError) -> None:
    first = error.errors()[0]
    raise BadRequestField(str(first["msg"]), where=".".join(map(str, first["loc"]))) from error
