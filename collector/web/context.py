"""What the routes share."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TypeVar

from starlette.types import Receive, Scope

from collector.storage._interface import EventStore
from collector.web.errors import BodyTooLarge, Stopping, TooBusy, UnknownMediaType
from collector.web.limits import Room, read_body
from collector.web.metrics import Metrics
from collector.web.settings import Settings
from collector.web.unpack import most_bytes, packing_of, unpack

_T = TypeVar("_T")

_NUM_WORKERS = 2


@dataclass
class Context:
    """One collector, as its routes see it.

    Attributes:
        stopping: set when a stop was asked for; no new work is taken then.
        room: counts the bodies in memory, and what they are being unpacked to.
        num_at_work: bodies that a thread unpacks and decodes, or that wait for one; changed on the
            event loop only.
        workers: where large bodies are unpacked and decoded. Two threads: more would only take the
            interpreter from each other, and hold more unpacked bodies at one time.
    """

    store: EventStore
    settings: Settings
    metrics: Metrics
    room: Room
    stopping: bool = False
    num_at_work: int = 0
    workers: ThreadPoolExecutor = field(
        default_factory=lambda: ThreadPoolExecutor(_NUM_WORKERS, "cascade-decode")
    )

    def take_no_more(self) -> None:
        """Refuse new work once a stop was asked for.

        Raises:
            Stopping: it was.
        """
        if self.stopping:
            raise Stopping(
                "the collector is being stopped", hint="send it again, later or elsewhere"
            )

    async def unpacked(
        self, packing: str, body: bytes, limit: int, then: Callable[[bytes], _T]
    ) -> _T:
        """Unpack a body in a thread and go on there with ``then``, whose result this is.

        What the body may become is counted against the room until that is done.

        Raises:
            BodyTooLarge, BadBody, TooBusy; what ``then`` raises.
        """
        most = most_bytes(packing, body, limit)
        try:
            return await self.in_thread(most, lambda: then(unpack(packing, body, most)))
        except BodyTooLarge:
            if most == limit:
                raise
        # Several frames, of which the first says less than all of them become.
        return await self.in_thread(limit, lambda: then(unpack(packing, body, limit)))

    async def in_thread(self, num_bytes: int, work: Callable[[], _T]) -> _T:
        """Do in a thread what takes too long for the event loop.

        Args:
            num_bytes: that it may hold beside the body; counted against the room meanwhile.
            work: what is to be done.

        Raises:
            TooBusy: too many wait for a thread already, or there is no room; what ``work`` raises.
        """
        if self.num_at_work >= _NUM_WORKERS + self.settings.limits.waiting_bodies:
            raise TooBusy(
                "too many bodies wait to be unpacked and decoded",
                hint="send again after the seconds that Retry-After gives",
            )
        self.room.take(num_bytes)
        self.num_at_work += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self.workers, work)
        finally:
            self.num_at_work -= 1
            self.room.give(num_bytes)

    async def small_body(self, scope: Scope, receive: Receive, limit: int) -> bytes:
        """The body of a JSON route, unpacked.

        Args:
            scope: the request's.
            receive: its channel.
            limit: bytes it may have, packed and unpacked.

        Raises:
            UnknownMediaType, BodyTooLarge, BodyTooSlow, BadBody, TooBusy, ClientGone.
        """
        head = Head(scope)
        if head.media_type != "application/json":
            raise UnknownMediaType(
                "this route takes JSON",
                where=f"Content-Type: {head.media_type[:80]}",
                hint="send it with Content-Type: application/json",
            )
        packing = packing_of(head.encoding)
        seconds = self.settings.limits.body_seconds
        body = await read_body(receive, head.length, limit, seconds, self.room)
        try:
            if packing is None:
                return body
            return await self.unpacked(packing, body, limit, lambda plain: plain)
        finally:
            self.room.give(len(body))


class Head:
    """The headers that say what a body is.

    Attributes:
        media_type: in lower case, without parameters; empty when none is given.
        encoding: Content-Encoding as given.
        length: Content-Length as given.
    """

    __slots__ = ("encoding", "length", "media_type")

    def __init__(self, scope: Scope) -> None:
        self.media_type = self.encoding = ""
        self.length: bytes | None = None
        for name, value in scope["headers"]:
            if name == b"content-type":
                self.media_type = value.decode("latin-1").partition(";")[0].strip().lower()
            elif name == b"content-encoding":
                # Twice the header is one list of two, which is then refused by its name.
                given = value.decode("latin-1")
                self.encoding = f"{self.encoding},{given}" if self.encoding else given
            elif name == b"content-length":
                self.length = value
