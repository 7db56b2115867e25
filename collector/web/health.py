"""``/v1/healthz``, ``/v1/readyz`` and ``/metrics``: how the collector is."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import Response

from collector.storage._interface import StoreDown
from collector.web.context import Context
from collector.web.metrics import CONTENT_TYPE
from collector.web.openapi import answer_200, answers, json_answer


def routes(context: Context) -> APIRouter:
    """The routes of this file."""
    router = APIRouter(tags=["health"])

    @router.get(
        "/v1/healthz",
        summary="The process is alive and answers",
        responses=json_answer("Status") | answers(421, 500),
    )
    async def healthz() -> Response:
        return Response(b'{"status":"alive"}', media_type="application/json")

    @router.get(
        "/v1/readyz",
        summary="Rows can be stored now",
        responses=json_answer("Status") | answers(421, 500, 503),
    )
    def readyz() -> Response:
        context.take_no_more()
        problem = context.store.problem()
        if problem is not None:
            raise StoreDown(problem, where="the store")
        return Response(b'{"status":"ready"}', media_type="application/json")

    @router.get(
        "/metrics",
        summary="Figures for Prometheus",
        responses=answer_200("figures", {"text/plain": {}}) | answers(401, 403, 421, 500),
    )
    def metrics() -> Response:
        return Response(context.metrics.text(), headers={"content-type": CONTENT_TYPE})

    return router
