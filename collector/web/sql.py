"""``POST /v1/sql``: one statement of a stranger, answered from the runs' files."""

from __future__ import annotations

from typing import Protocol

import msgspec
from fastapi import APIRouter, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from cascade_runtime.vocabulary.errors import CascadeError
from collector.sql.errors import SqlBusy, SqlFailed, SqlRefused, SqlTooLarge, SqlTooLong
from collector.sql.service import SqlAnswer, SqlHealth, SqlRequest
from collector.web.context import Context
from collector.web.errors import BadRequestField, code_of, register_status
from collector.web.openapi import answer_200, answers, json_body

NUM_ROWS = "cascade-num-rows"
TRUNCATED = "cascade-truncated"

register_status({SqlRefused: 400, SqlFailed: 400, SqlTooLong: 408, SqlTooLarge: 413, SqlBusy: 429})

_MEDIA = ("application/json", "text/csv", "application/vnd.apache.arrow.stream")
_HEADERS = {
    NUM_ROWS: {"description": "rows in this answer", "schema": {"type": "integer"}},
    TRUNCATED: {
        "description": "true when there were more rows than the limit",
        "schema": {"type": "string", "enum": ["true", "false"]},
    },
}


class SqlRunner(Protocol):
    """Runs a stranger's SQL; collector.sql.service has the real one."""

    def run(self, request: SqlRequest) -> SqlAnswer:
        """The answer; it may wait for as long as its limits allow."""
        ...

    def health(self) -> SqlHealth:
        """Figures since the start."""
        ...


def routes(context: Context, sql: SqlRunner) -> APIRouter:
    """The routes of this file."""
    router = APIRouter(tags=["sql"])

    @router.post(
        "/v1/sql",
        summary="One SELECT over all runs, or over one of them",
        responses=answer_200(
            "the rows, in the format asked for", {media: {} for media in _MEDIA}, _HEADERS
        )
        | answers(400, 401, 403, 404, 408, 413, 415, 421, 422, 429, 500, 503),
        openapi_extra=json_body("SqlRequest"),
    )
    async def ask(request: Request) -> Response:
        context.take_no_more()
        limit = context.settings.limits.sql_bytes
        body = await context.small_body(request.scope, request.receive, limit)
        try:
            answer = await run_in_threadpool(sql.run, _parsed(body))
        except CascadeError as error:
            context.metrics.sql(code_of(error))
            raise
        context.metrics.sql("ok")
        headers = {NUM_ROWS: str(answer.num_rows), TRUNCATED: str(answer.truncated).lower()}
        return Response(answer.body, headers=headers | {"content-type": answer.media_type})

    return router


def _parsed(body: bytes) -> SqlRequest:
    try:
        return msgspec.json.decode(body, type=SqlRequest)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise BadRequestField(
            f"this is no question: {error}",
            where="body",
            hint='send {"sql": "SELECT ..."}; run_id, format and limit are optional',
        ) from error
