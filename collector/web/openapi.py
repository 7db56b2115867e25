"""The OpenAPI document: routes by FastAPI, types by the vocabulary, the same words everywhere.

FastAPI's own pages load their scripts from another server, so only the document is offered.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from cascade_runtime.vocabulary.events import Record
from collector.web.auth import OPEN

_COMPONENTS = "#/components/schemas/{name}"

_MEANS = {
    400: "the body cannot be unpacked, or the request cannot be served",
    401: "a token is needed, or this one is not known",
    403: "the token has not the scope for this",
    404: "there is nothing of that name",
    405: "the path does not take this method",
    408: "it took too long",
    410: "the run was dropped by retention",
    413: "a body or an answer is too large",
    415: "another Content-Type or Content-Encoding",
    421: "without a token, only this machine's own names are answered, and no proxy",
    422: "something breaks the documented form; it is named",
    429: "too much is waiting; send again after Retry-After seconds",
    500: "a fault of the collector, with a reference into its log",
    503: "the collector is stopping, or its store is being opened again",
    507: "the collector's disk is nearly full",
}

_ERROR_SCHEMA: dict[str, Any] = {
    "title": "Error",
    "description": "What happened, where, and what to do.",
    "type": "object",
    "required": ["error"],
    "properties": {
        "error": {
            "type": "object",
            "required": ["code", "message", "hint", "where"],
            "properties": {
                "code": {"type": "string", "description": "for programs"},
                "message": {"type": "string", "description": "what happened"},
                "hint": {"type": "string", "description": "what to do; may be empty"},
                "where": {"type": "string", "description": "what is concerned; may be empty"},
            },
        }
    },
}

_STATUS_SCHEMA: dict[str, Any] = {
    "title": "Status",
    "type": "object",
    "required": ["status"],
    "properties": {"status": {"type": "string"}},
}

_RETRY_AFTER = {"description": "seconds", "schema": {"type": "integer"}}
_WITH_RETRY = frozenset({429, 503, 507})

Answers = dict[int | str, dict[str, Any]]


def ref(name: str) -> dict[str, str]:
    """A reference to a schema of the document."""
    return {"$ref": _COMPONENTS.format(name=name)}


def answers(*statuses: int) -> Answers:
    """Errors that a route may answer, for its ``responses``."""
    return {status: _error(status) for status in statuses}


def json_answer(schema: str, description: str = "as asked") -> Answers:
    """The good answer of a route, for its ``responses``."""
    return answer_200(description, {"application/json": {"schema": ref(schema)}})


def answer_200(
    description: str, content: Mapping[str, Any], headers: Mapping[str, Any] | None = None
) -> Answers:
    """The good answer of a route that is not one JSON type, for its ``responses``."""
    return {200: {"description": description, "content": content, "headers": headers or {}}}


def json_body(schema: str) -> dict[str, Any]:
    """The JSON body of a route, for its ``openapi_extra``."""
    return {
        "requestBody": {
            "required": True,
            "content": {"application/json": {"schema": ref(schema)}},
        }
    }


def document(
    app: FastAPI, types: Sequence[type[msgspec.Struct]], more: Mapping[str, Any]
) -> dict[str, Any]:
    """The OpenAPI document.

    Args:
        app: whose routes it describes.
        types: that the routes' answers and bodies refer to by name.
        more: paths of endpoints that are no FastAPI routes.
    """
    made = get_openapi(
        title=app.title, version=app.version, description=app.description, routes=app.routes
    )
    _, schemas = msgspec.json.schema_components([*types, Record], ref_template=_COMPONENTS)
    (either,), _ = msgspec.json.schema_components([Record], ref_template=_COMPONENTS)
    made["paths"].update(more)
    made["components"] = {
        "schemas": {
            **schemas,
            "Record": {"title": "Record", "description": "A row of an event table.", **either},
            "Error": _ERROR_SCHEMA,
            "Status": _STATUS_SCHEMA,
        },
        "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}},
    }
    for path, operations in made["paths"].items():
        for operation in operations.values():
            # An empty alternative: on loopback without tokens nothing is needed.
            operation["security"] = [] if path in OPEN else [{"bearer": []}, {}]
    return made


def _error(status: int) -> dict[str, Any]:
    found: dict[str, Any] = {
        "description": _MEANS[status],
        "content": {"application/json": {"schema": ref("Error")}},
    }
    if status in _WITH_RETRY:
        found["headers"] = {"Retry-After": _RETRY_AFTER}
    return found
