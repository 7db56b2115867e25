"""Whether anybody waits for what is being asked: what comes in gives way to questions of people alone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_is_background: ContextVar[bool] = ContextVar("is_background", default=False)


@contextmanager
def in_background() -> Iterator[None]:
    """Around questions for whose answers nobody waits."""
    before = _is_background.set(True)
    try:
        yield
    finally:
        _is_background.reset(before)


def is_background() -> bool:
    """True inside ``in_background``, in its thread."""
    return _is_background.get()
