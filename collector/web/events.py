"""``POST /v1/events``: rows come in.

A thousand agents send one small batch a second each, so this route is a bare ASGI endpoint: no
request object, no dependency, no pydantic between the socket and the decoder.
"""

from __future__ import annotations

from typing import Any

import msgspec
from starlette.types import Receive, Scope, Send

from collector.storage._interface import Receipt
from collector.web.context import Context, Head
from collector.web.errors import BodyTooLarge, UnknownMediaType
from collector.web.landing import Landing
from collector.web.limits import read_body, whole_body
from collector.web.openapi import answers, json_answer, ref
from collector.web.unpack import packing_of, unpack, unpacks_to
from collector.wire.batch import ARROW, MSGPACK, NDJSON, Batch
from collector.wire.decode import MEDIA_TYPES, decode
from collector.wire.unread import Unread, unread

PATH = "/v1/events"

_SMALL_GZIP = 4 << 10  # gzip makes at most a thousand bytes of one
_to_json = msgspec.json.Encoder()


class Events:
    """The endpoint.

    Args:
        context: what the routes share.
    """

    def __init__(self, context: Context) -> None:
        self._context = context
        self._landing = Landing()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Take one batch; the answer is sent when its rows are durable."""
        context = self._context
        context.take_no_more()
        head = Head(scope)
        media_type = MEDIA_TYPES.get(head.media_type)
        if media_type is None:
            raise UnknownMediaType(
                "rows do not come in this form",
                where=f"Content-Type: {head.media_type[:80]}",
                hint=f"use one of {', '.join(sorted(set(MEDIA_TYPES.values())))}",
            )
        packing = packing_of(head.encoding)
        limits = context.settings.limits
        body = whole_body(scope, head.length, limits.body_bytes, context.room)
        if body is None:
            body = await read_body(
                receive, head.length, limits.body_bytes, limits.body_seconds, context.room
            )
        try:
            batch = await self._batch(media_type, packing, body)
        finally:
            context.room.give(len(body))
        receipt = await self._stored(batch)
        answer = _to_json.encode(receipt)
        await send(
            {
                "type": "http.response.start",
                "status": 200,
                "headers": [
                    (b"content-type", b"application/json"),
                    (b"content-length", b"%d" % len(answer)),
                ],
            }
        )
        await send({"type": "http.response.body", "body": answer})

    async def _batch(self, media_type: str, packing: str | None, body: bytes) -> Batch | Unread:
        limits = self._context.settings.limits
        if len(body) <= limits.inline_bytes:
            if packing is None:
                return _decode_small(media_type, body)
            if _is_small(packing, body, limits.inline_bytes):
                try:
                    plain = unpack(packing, body, min(limits.inline_bytes, limits.unpacked_bytes))
                except BodyTooLarge:
                    pass  # it becomes more than its beginning says
                else:
                    return _decode_small(media_type, plain)
        if packing is None:
            return await self._context.in_thread(0, lambda: decode(media_type, body))
        return await self._context.unpacked(
            packing, body, limits.unpacked_bytes, lambda plain: decode(media_type, plain)
        )

    async def _stored(self, batch: Batch | Unread) -> Receipt:
        if not batch.num_rows:
            return Receipt(0, 0, [])
        return await self._landing.wait(self._context.store.append(batch))


def _decode_small(media_type: str, body: bytes) -> Batch | Unread:
    """What a store reads together with others, or a batch."""
    later = unread(body) if media_type == MSGPACK else None
    return decode(media_type, body) if later is None else later


def _is_small(packing: str, body: bytes, limit: int) -> bool:
    """Whether unpacking is quick enough for the event loop."""
    if packing == "gzip":
        return len(body) <= _SMALL_GZIP
    size = unpacks_to(packing, body)
    return size is not None and size <= limit


OPENAPI: dict[str, Any] = {
    "post": {
        "tags": ["events"],
        "summary": "Rows come in; the answer is given when they are durable",
        "description": "The body may be packed: Content-Encoding zstd or gzip. One wrong record "
        "rejects the batch. Sending a batch again is safe: rows that are there are dropped.",
        "operationId": "post_events",
        "requestBody": {
            "required": True,
            "content": {
                MSGPACK: {
                    "schema": {
                        "description": "a MessagePack array of records",
                        "type": "array",
                        "items": ref("Record"),
                    }
                },
                NDJSON: {
                    "schema": {
                        "description": "one record a line, as JSON: an array as in MessagePack, or "
                        "an object with the key `table` and the table's columns",
                        "type": "string",
                    }
                },
                ARROW: {
                    "schema": {
                        "description": "Arrow IPC streams one after the other, one a table; the "
                        "schema's metadata names the table under the key `table`",
                        "type": "string",
                        "format": "binary",
                    }
                },
            },
        },
        "responses": {
            str(status): answer
            for status, answer in (
                json_answer("Receipt", "the rows are durable")
                | answers(400, 401, 403, 408, 410, 413, 415, 421, 422, 429, 500, 503, 507)
            ).items()
        },
    }
}
"""This route's part of the OpenAPI document, which FastAPI does not see."""
