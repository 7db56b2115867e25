"""``/v1/runs/{run_id}/story, pulse, state, window``: what the picture asks of a run."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from collector.web.errors import BadRequestField
from collector.web.openapi import Answers, answer_200, answers
from collector.wire.run_ids import RULE, fits_a_path
from dashboard.story.packing import packed_json
from dashboard.story.source import RunSources
from dashboard.story.tellers import tellers_of
from dashboard.tiles.asked import RunId, takes_gzip
from dashboard.tiles.in_threads import in_threads

MAX_NS = 1 << 62

Ns = Annotated[int, Query(ge=-MAX_NS, le=MAX_NS, description="nanoseconds since t0")]
Version = Annotated[
    str | None,
    Query(
        max_length=200,
        description="the story that is known: waits a moment for the next one, 304 when there is none",
    ),
]
Packed = Annotated[
    bool,
    Query(description="as pages read it: u32 length of a JSON head, the head, regimes as bytes"),
]
Soon = Annotated[
    bool, Query(description="answer 204 when the story takes longer to tell than a moment")
]
Group = Annotated[
    str | None,
    Query(max_length=200, description="whose regimes, as the story names it; else world"),
]

_JSON = {"application/json": {"schema": {"type": "object"}}}
_BYTES = "application/octet-stream"
_ERRORS = (401, 403, 404, 421, 422, 500, 503)


def routes(sources: RunSources) -> APIRouter:
    """The routes of this folder; handlers run in threads of the picture.

    Args:
        sources: the runs that are answered for. Whoever opened them closes them.
    """
    router = APIRouter(tags=["picture"])
    tellers = tellers_of(sources)

    @router.get(
        "/v1/runs/{run_id}/story",
        summary="What happened in a run: regimes, walks, debts, violations, incidents, the verdict",
        responses=answer_200("the story", _JSON | {_BYTES: {}})
        | {204: {"description": "not told yet"}, 304: {"description": "still that version"}}
        | _bad(),
    )
    @in_threads
    def story(
        run_id: RunId,
        request: Request,
        if_version: Version = None,
        packed: Packed = False,
        soon: Soon = False,
    ) -> Response:
        teller = tellers.of(_checked(run_id))
        if soon and not teller.pulse()["is_told"]:
            return Response(status_code=204)
        told = teller.story() if if_version is None else teller.next_story(if_version)
        if if_version == told.version:
            return Response(status_code=304)
        takes = takes_gzip(request.headers.get("accept-encoding", ""))
        if packed:
            return _answer(told.framed, told.framed_packed if takes else None, _BYTES)
        return _answer(told.body, told.packed if takes else None)

    @router.get(
        "/v1/runs/{run_id}/pulse",
        summary="Whether there is anything new in a run; cheap",
        responses=_good("the pulse") | _bad(),
    )
    @in_threads
    def pulse(run_id: RunId) -> Response:
        return _answer(msgspec.json.encode(tellers.of(_checked(run_id)).pulse()), None)

    @router.get(
        "/v1/runs/{run_id}/state",
        summary="Every rank at one moment: step, clock, what is in flight, devices",
        responses=_good("the state") | _bad(),
    )
    @in_threads
    def state(run_id: RunId, t: Ns, request: Request) -> Response:
        return _pack(tellers.of(_checked(run_id)).state(t), request)

    @router.get(
        "/v1/runs/{run_id}/window",
        summary="Exact numbers of a window of time, by rank",
        responses=_good("the numbers") | _bad(),
    )
    @in_threads
    def window(run_id: RunId, a: Ns, b: Ns, request: Request, group: Group = None) -> Response:
        if b <= a:
            raise BadRequestField(
                "a window ends after it begins", where=f"a={a} b={b}", hint="give a < b"
            )
        return _pack(tellers.of(_checked(run_id)).window(a, b, group), request)

    return router


def _checked(run_id: str) -> str:
    if not fits_a_path(run_id):
        raise BadRequestField(RULE, where="run_id")
    return run_id


def _pack(value: Any, request: Request) -> Response:
    body = msgspec.json.encode(value)
    return _answer(
        body, packed_json(body) if takes_gzip(request.headers.get("accept-encoding", "")) else None
    )


def _answer(body: bytes, packed: bytes | None, media: str = "application/json") -> Response:
    headers = {"vary": "Accept-Encoding"}
    if packed is not None:
        headers["content-encoding"] = "gzip"
    return Response(body if packed is None else packed, headers=headers, media_type=media)


def _good(what: str) -> Answers:
    return answer_200(what, _JSON)


def _bad() -> Answers:
    return answers(*_ERRORS)
