"""Threads of their own for the picture's routes: many that look do not hold up who sends rows."""

from __future__ import annotations

import asyncio
import functools
import inspect
import weakref
from collections.abc import Awaitable, Callable
from typing import ParamSpec, TypeVar

import anyio
import anyio.to_thread

NUM_THREADS = 8
"""Answers of the picture that are made at once; the others wait their turn."""

P = ParamSpec("P")
T = TypeVar("T")

_limiters: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, anyio.CapacityLimiter] = (
    weakref.WeakKeyDictionary()
)


def in_threads(handler: Callable[P, T]) -> Callable[P, Awaitable[T]]:
    """A route's handler that runs in one of these threads."""

    @functools.wraps(handler)
    async def asked(*args: P.args, **kwargs: P.kwargs) -> T:
        loop = asyncio.get_running_loop()
        limiter = _limiters.get(loop)
        if limiter is None:
            limiter = _limiters[loop] = anyio.CapacityLimiter(NUM_THREADS)
        call = functools.partial(handler, *args, **kwargs)
        return await anyio.to_thread.run_sync(call, limiter=limiter)

    asked.__signature__ = inspect.signature(handler, eval_str=True)  # type: ignore[attr-defined]
    return asked
