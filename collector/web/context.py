"""What the routes share."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from starlette.types import Receive, Scope

from collector.storage._interface import EventStore
from collector.web.errors import Stopping, UnknownMediaType
from collector.web.limits import Room, read_body
from collector.web.metrics import Metrics
from collector.web.settings import Settings
from collector.web.unpack import packing_of, unpack


@dataclass
class Context:
    """One collector, as its routes see it.

    Attributes:
        stopping: set when a stop was asked for; no new work is taken then.
        room: counts the bodies in memory.
        workers: where large bodies are unpacked and decoded. Two threads: more would only take the
            interpreter from each other, and hold more unpacked bodies at one time.
    """

    store: EventStore
    settings: Settings
    metrics: Metrics
    room: Room
    stopping: bool = False
    workers: ThreadPoolExecutor = field(
        default_factory=lambda: ThreadPoolExecutor(2, thread_name_prefix="cascade-decode")
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
            loop = asyncio.get_running_loop()
            return await loop.run_in_executor(self.workers, unpack, packing, body, limit)
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
