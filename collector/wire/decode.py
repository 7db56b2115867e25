"""A body becomes a checked batch, by its media type."""

from __future__ import annotations

from collections.abc import Callable

from collector.wire.arrow_body import decode_arrow
from collector.wire.batch import ARROW, MSGPACK, NDJSON, Batch
from collector.wire.records import decode_msgpack, decode_ndjson

_DECODERS: dict[str, Callable[[bytes], Batch]] = {
    ARROW: decode_arrow,
    MSGPACK: decode_msgpack,
    NDJSON: decode_ndjson,
}

MEDIA_TYPES = {
    **{media_type: media_type for media_type in _DECODERS},
    "application/ndjson": NDJSON,
    "application/jsonl": NDJSON,
    "application/msgpack": MSGPACK,
    "application/x-msgpack": MSGPACK,
}
"""Names that are understood, with the one that is used here."""


def decode(media_type: str, body: bytes) -> Batch:
    """The rows of a body, every one checked.

    Args:
        media_type: a key of ``MEDIA_TYPES``, without parameters.
        body: decompressed.

    Raises:
        KeyError: no such media type.
        BadBatch: the body holds something that is no row of the schema; ``where`` names it.
    """
    return _DECODERS[MEDIA_TYPES[media_type]](body)
