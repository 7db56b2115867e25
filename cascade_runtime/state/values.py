"""What may be put: plain data, bounded in size. Never pickle: a value cannot run anything."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from cascade_runtime.vocabulary.errors import BadUsage

MOST_VALUE_BYTES = 64 << 10
MOST_KEYS = 4096
MOST_BYTES = 16 << 20
"""Of all values that stand, over all States of a job."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_MOST_KEY = 200
_DEEPEST = 32

_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder()


def encode(value: Any, where: str) -> bytes:
    """The value as MessagePack.

    Raises:
        BadUsage: it is not made of None, bool, int of 64 bits, float, str, bytes, list, tuple and dict
            with str keys, or it is larger than MOST_VALUE_BYTES.
    """
    if (strange := _strange(value, 0)) is not None:
        raise BadUsage(
            f"a value may hold None, bool, int, float, str, bytes, lists and dicts by str, and this "
            f"one holds {strange}",
            where=where,
            hint="put plain data (numbers as int or float, tensors as lists)",
        )
    try:
        data = _encoder.encode(value)
    except (OverflowError, UnicodeEncodeError) as error:
        raise BadUsage(
            f"this value cannot be encoded: {error}", where=where, hint="put plain data"
        ) from error
    if len(data) > MOST_VALUE_BYTES:
        raise BadUsage(
            f"this value takes {len(data):,} bytes, and one may take {MOST_VALUE_BYTES:,}",
            where=where,
            hint="put where it lies (a path, a digest) and keep the data elsewhere",
        )
    return data


def decode(data: bytes) -> Any:
    """A fresh copy of the value; tuples come back as lists."""
    return _decoder.decode(data)


def check_name(name: Any) -> str:
    """The name of a State.

    Raises:
        BadUsage: not a word of letters, digits, dots, dashes and underscores, of at most 64.
    """
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise BadUsage(
            f"{name!r} is no name of a State",
            where="State",
            hint="letters, digits, dots, dashes and underscores, at most 64 of them",
        )
    return name


def check_key(key: Any, where: str) -> str:
    """A key.

    Raises:
        BadUsage: not a printable string of 1 to 200 characters.
    """
    if not isinstance(key, str) or not 0 < len(key) <= _MOST_KEY or not key.isprintable():
        raise BadUsage(
            f"{key!r} is no key"[:120],
            where=where,
            hint=f"a printable string of 1 to {_MOST_KEY} characters",
        )
    return key


def _strange(value: Any, depth: int) -> str | None:
    """The name of a type that may not be in a value, or None."""
    if depth > _DEEPEST:
        return f"more than {_DEEPEST} levels"
    if value is None or type(value) in (bool, int, float, str, bytes):
        return None
    if type(value) in (list, tuple):
        return next((s for item in value if (s := _strange(item, depth + 1))), None)
    if type(value) is dict:
        for key, item in value.items():
            if type(key) is not str:
                return f"a dict key of type {type(key).__name__}"
            if (found := _strange(item, depth + 1)) is not None:
                return found
        return None
    return f"a {type(value).__name__}"
