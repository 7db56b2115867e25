"""``GET /v1/runs/{run_id}/tile``: the busy lanes of a window, as bytes."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from collector.web.errors import BadRequestField
from collector.web.openapi import answer_200, answers
from collector.wire.run_ids import RULE, fits_a_path
from dashboard.tiles.asked import RunId
from dashboard.tiles.content import LANES
from dashboard.tiles.encode import packed
from dashboard.tiles.in_threads import in_threads
from dashboard.tiles.run_tiles import tiles_of
from dashboard.tiles.source import RowSources

MAX_PIXELS = 8192
MAX_RANKS = 4096
MAX_BYTES = 32 << 20
WAIT_LANES = ("waited", "caused")
"""Lanes with a row a rank."""

MAX_NS = (1 << 53) - 1
"""What a JavaScript number holds."""

MEDIA = "application/octet-stream"

Ns = Annotated[int, Query(ge=-MAX_NS, le=MAX_NS, description="nanoseconds since t0")]
Pixels = Annotated[int, Query(ge=1, le=MAX_PIXELS, description="how many the window is wide")]
Lanes = Annotated[str, Query(max_length=100, description=f"some of {','.join(LANES)}")]
T0 = Annotated[
    int | None,
    Query(ge=0, le=1 << 62, description="the story's t0_ns, which a and b count from"),
]
Ranks = Annotated[
    str | None, Query(max_length=30_000, description="as in 0-63,70; all of them when not given")
]


def routes(sources: RowSources) -> APIRouter:
    """The routes of this file; handlers run in threads of the picture.

    Args:
        sources: the runs that are answered for. Whoever opened them closes them.
    """
    router = APIRouter(tags=["picture"])

    @router.get(
        "/v1/runs/{run_id}/tile",
        summary="Who waited, who caused it, gpu and cpu in a window of time, one byte a pixel",
        responses=answer_200("u32 length of a JSON head, the head, the layers", {MEDIA: {}}, {})
        | answers(401, 403, 404, 421, 422, 500, 503),
    )
    @in_threads
    def tile(
        run_id: RunId,
        request: Request,
        a: Ns,
        b: Ns,
        w: Pixels,
        lanes: Lanes,
        ranks: Ranks = None,
        t0: T0 = None,
    ) -> Response:
        if not fits_a_path(run_id):
            raise BadRequestField(RULE, where="run_id")
        if b <= a:
            raise BadRequestField("a window ends after it begins", where=f"a={a} b={b}")
        wanted = parsed_lanes(lanes)
        listed = None if ranks is None else parsed_ranks(ranks)
        tiles = tiles_of(sources.get(run_id))
        _check_size(tiles.num_ranks() if listed is None else len(listed), w, wanted)
        body = tiles.tile(a, b, w, wanted, listed, t0)
        body, headers = packed(body, request.headers.get("accept-encoding", ""))
        return Response(body, media_type=MEDIA, headers=headers | {"cache-control": "no-store"})

    return router


def _check_size(num_ranks: int, w: int, lanes: list[str]) -> None:
    """Refuse what would be too large a body.

    Raises:
        BadRequestField: too many ranks, or too many pixels of them.
    """
    lanes = [lane for lane in lanes if lane in WAIT_LANES]
    if not lanes:
        return
    if num_ranks > MAX_RANKS:
        raise BadRequestField(
            f"a tile has {MAX_RANKS} ranks at most, and these are {num_ranks}",
            where="ranks",
            hint="ask for some of them, as in ranks=0-63",
        )
    if num_ranks * w * len(lanes) > MAX_BYTES:
        raise BadRequestField(
            f"a tile has {MAX_BYTES} bytes at most: ranks x pixels x lanes",
            where=f"w={w}",
            hint="ask for fewer ranks, pixels or lanes",
        )


def parsed_lanes(text: str) -> list[str]:
    """The lanes, each once.

    Raises:
        BadRequestField: none, or one that there is not.
    """
    lanes = list(dict.fromkeys(text.split(",")))
    for lane in lanes:
        if lane not in LANES:
            raise BadRequestField(
                "there is no such lane", where=f"lanes={lane[:80]!r}", hint=f"one of {LANES}"
            )
    return lanes


def parsed_ranks(text: str) -> list[int]:
    """The ranks of ``0-63,70``, each once, in the order given.

    Raises:
        BadRequestField: not of that form, or too many.
    """
    ranks: dict[int, None] = {}
    for part in text.split(","):
        first, dash, last = part.partition("-")
        if not (_is_rank(first) and (not dash or _is_rank(last))):
            raise BadRequestField(
                "these are no ranks", where=f"ranks={part[:80]!r}", hint="as in 0-63,70"
            )
        low, high = int(first), int(last if dash else first)
        if high < low:
            raise BadRequestField(
                "a range of ranks goes upward", where=f"ranks={part[:80]!r}", hint="as in 0-63"
            )
        if len(ranks) + high - low >= MAX_RANKS:
            raise BadRequestField(
                f"a tile has {MAX_RANKS} ranks at most", where="ranks", hint="ask for fewer"
            )
        ranks.update(dict.fromkeys(range(low, high + 1)))
    return list(ranks)


def _is_rank(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 9
