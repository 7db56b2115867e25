"""``/v1/runs``: what runs there are, how far each is stored, and what each says of itself."""

from __future__ import annotations

from typing import Annotated

import msgspec
from fastapi import APIRouter, Path, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from cascade_runtime.vocabulary.trace_meta import TraceMeta, parse_trace_meta
from collector.storage._interface import EventStore, Mark, RunSummary
from collector.web.context import Context
from collector.web.errors import BadRequestField
from collector.web.openapi import answers, json_answer, json_body
from collector.wire.run_ids import LONGEST, RULE, fits_a_path

RunId = Annotated[str, Path(min_length=1, max_length=LONGEST, description=RULE)]


class Runs(msgspec.Struct, frozen=True):
    """Every run, the newest first."""

    runs: list[RunSummary]


class RunDetails(msgspec.Struct, frozen=True):
    """One run: its summary, its trace.json, and up to which seq each of its actors is stored."""

    run: RunSummary
    meta: TraceMeta
    marks: list[Mark]


def _checked(run_id: str) -> str:
    if not fits_a_path(run_id):
        raise BadRequestField(RULE, where="run_id")
    return run_id


def routes(context: Context) -> APIRouter:
    """The routes of this file."""
    router = APIRouter(tags=["runs"])
    store = context.store

    @router.get(
        "/v1/runs",
        summary="Every run, the newest first",
        responses=json_answer("Runs") | answers(401, 403, 421, 500, 503),
    )
    def list_runs() -> Response:
        return _json(Runs(store.runs()))

    @router.get(
        "/v1/runs/{run_id}",
        summary="One run, and how far it is stored",
        responses=json_answer("RunDetails") | answers(401, 403, 404, 421, 422, 500, 503),
    )
    def one_run(run_id: RunId) -> Response:
        return _json(_details(store, _checked(run_id)))

    @router.put(
        "/v1/runs/{run_id}",
        summary="What a run says of itself: its trace.json, at its start and with its end",
        status_code=204,
        responses=answers(400, 401, 403, 408, 410, 413, 415, 421, 422, 429, 500, 503, 507),
        openapi_extra=json_body("TraceMeta"),
    )
    async def put_run(run_id: RunId, request: Request) -> Response:
        context.take_no_more()
        _checked(run_id)
        limit = context.settings.limits.meta_bytes
        body = await context.small_body(request.scope, request.receive, limit)
        meta = parse_trace_meta(body, "trace.json")
        if meta.run_id != run_id:
            raise BadRequestField(
                "the run_id of this trace.json is not the path's",
                where=f"run_id {meta.run_id[:80]!r}",
                hint=f"send it to its own path, or mend it to {run_id!r}",
            )
        await run_in_threadpool(store.put_meta, meta)
        return Response(status_code=204)

    return router


def _details(store: EventStore, run_id: str) -> RunDetails:
    return RunDetails(store.run(run_id), store.meta(run_id), store.marks(run_id))


def _json(value: msgspec.Struct) -> Response:
    return Response(msgspec.json.encode(value), media_type="application/json")
