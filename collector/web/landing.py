"""How the store's answers come back to the event loop."""

from __future__ import annotations

import asyncio
from collections import deque
from concurrent.futures import Future

from collector.storage._interface import Receipt


class Landing:
    """Awaits futures that another thread completes, many at a time.

    A group commit completes hundreds of futures at one moment. ``asyncio.wrap_future`` would wake
    the loop once for each, with a system call of the writer's thread; this wakes it once. And a
    request that is cancelled here leaves the store's future alone, so that the writer never meets
    one that it cannot complete.
    """

    def __init__(self) -> None:
        self._landed: deque[asyncio.Future[None]] = deque()
        self._called = False

    async def wait(self, future: Future[Receipt]) -> Receipt:
        """The future's result.

        Raises:
            Exception: what the future failed with.
        """
        if not future.done():
            loop = asyncio.get_running_loop()
            waiter: asyncio.Future[None] = loop.create_future()

            def landed(_: Future[Receipt]) -> None:
                self._landed.append(waiter)
                if not self._called:
                    self._called = True
                    try:
                        loop.call_soon_threadsafe(self._wake)
                    except RuntimeError:  # the loop ended meanwhile: nobody waits any more
                        self._called = False

            future.add_done_callback(landed)
            await waiter
        return future.result()

    def _wake(self) -> None:
        # First the flag: what lands from here on calls again, or is still found below.
        self._called = False
        while self._landed:
            waiter = self._landed.popleft()
            if not waiter.done():
                waiter.set_result(None)
