"""The bytes of a tile: a JSON head, then the layers' arrays."""

from __future__ import annotations

import gzip
from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np
import zstandard

from dashboard.tiles.asked import takes_gzip, takes_zstd
from dashboard.tiles.edges_native import Bytes, Ints

_ALIGN = 8


class Layer(NamedTuple):
    """One lane of a tile: its rows' names, how a byte is to be read, uint8[rows, pixels].

    ``peers``: how many times a pixel's own time is all of it. What a rank caused is summed over those
    who waited, so all of it is that every other rank waited for the whole pixel.
    """

    lane: str
    rows: Sequence[int | str]
    code: str
    values: Bytes
    peers: int = 1


def pixel_bounds(a: int, b: int, w: int) -> Ints:
    """Where the ``w`` pixels of a..b begin, and b: whole ns, as even as they go."""
    each, rest = divmod(b - a, w)
    at = np.arange(w + 1, dtype=np.int64)
    return a + each * at + rest * at // w


def encoded(head: dict[str, Any], layers: Sequence[Layer]) -> bytes:
    """u32 length of the head (LE), the head padded with spaces, the arrays padded with zeros.

    The first array begins at a multiple of 8; ``offset`` counts from there.
    """
    told, bodies, offset = [], [], 0
    for layer in layers:
        body = layer.values.tobytes()
        body += bytes(-len(body) % _ALIGN)
        told.append(
            {
                "lane": layer.lane,
                "dtype": "uint8",
                "rows": list(layer.rows),
                "cols": layer.values.shape[1],
                "offset": offset,
                "code": layer.code,
                "peers": layer.peers,
            }
        )
        bodies.append(body)
        offset += len(body)
    text = msgspec.json.encode(head | {"layers": told})
    text += b" " * (-(len(text) + 4) % _ALIGN)
    return b"".join([len(text).to_bytes(4, "little"), text, *bodies])


def packed(body: bytes, accepted: str) -> tuple[bytes, dict[str, str]]:
    """The body as a client wants it by its Accept-Encoding, and the headers that say so."""
    headers = {"vary": "accept-encoding"}
    if len(body) <= 1000:
        return body, headers
    # The lowest levels: lanes are mostly empty, and a tile is not to be waited for. gzip takes ten times
    # as long; browsers take zstd over https and from their own machine.
    if takes_zstd(accepted):
        return zstandard.compress(body, 1), headers | {"content-encoding": "zstd"}
    if takes_gzip(accepted):
        return gzip.compress(body, 1, mtime=0), headers | {"content-encoding": "gzip"}
    return body, headers
