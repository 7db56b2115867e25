"""JSON bodies in gzip."""

from __future__ import annotations

import gzip

GZIP_FROM = 1000
"""Bytes; smaller bodies are not worth packing."""


def packed_json(body: bytes, level: int = 4) -> bytes | None:
    """The body in gzip; None when it is too small to be worth it."""
    return gzip.compress(body, level, mtime=0) if len(body) >= GZIP_FROM else None
