"""Framed connections between agents, and from ranks, over sockets of the host."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import msgspec

from cascade_runtime.agent.protocol import LENGTH, MAX_FRAME, Frame, unpack_frame


class BadFrame(ValueError):
    """Bytes that are no frame."""


async def read_frames(reader: asyncio.StreamReader) -> AsyncIterator[tuple[Frame, int]]:
    """Frames and their sizes in bytes until the other end closes.

    Raises:
        BadFrame: a frame over the limit or one that does not decode.
    """
    while True:
        try:
            head = await reader.readexactly(LENGTH.size)
            (length,) = LENGTH.unpack(head)
            if length > MAX_FRAME:
                raise BadFrame(f"frame of {length} bytes")
            payload = await reader.readexactly(length)
            frame = unpack_frame(payload)
        except (asyncio.IncompleteReadError, OSError):
            return
        except msgspec.DecodeError as error:
            raise BadFrame(str(error)) from error
        yield frame, length + LENGTH.size


class PeerLink:
    """The sending side towards one other agent: dials until it answers, dials again when it breaks."""

    RETRY_S = 0.02

    def __init__(
        self, path: Path, hello: bytes, on_up: Callable[[], None], on_down: Callable[[], None]
    ) -> None:
        self._path = path
        self._hello = hello
        self._on_up = on_up
        self._on_down = on_down
        self._writer: asyncio.StreamWriter | None = None
        self.down_since: float | None = None
        self._task = asyncio.create_task(self._keep())

    def set_hello(self, hello: bytes) -> None:
        """The first frame of later connections."""
        self._hello = hello

    def send(self, frame: bytes) -> bool:
        """Queue a frame; False when the other end is away (the walk says things again)."""
        if self._writer is None:
            return False
        self._writer.write(frame)
        return True

    @property
    def num_unsent(self) -> int:
        """Bytes that the other end has not taken yet."""
        return self._writer.transport.get_write_buffer_size() if self._writer is not None else 0

    @property
    def up(self) -> bool:
        """The other agent is reachable."""
        return self._writer is not None

    async def _keep(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                reader, writer = await asyncio.open_unix_connection(str(self._path))
            except OSError:
                if self.down_since is None:
                    self.down_since = loop.time()
                await asyncio.sleep(self.RETRY_S)
                continue
            writer.write(self._hello)
            self._writer = writer
            self.down_since = None
            self._on_up()
            with contextlib.suppress(
                OSError
            ):  # a reset, with frames unread, is an end like any other
                await reader.read()  # nothing is sent this way: returns at the connection's end
            self._writer = None
            self.down_since = loop.time()
            self._on_down()
            writer.close()

    async def close(self) -> None:
        """Flush and stop."""
        self._task.cancel()
        if self._writer is not None:
            self._writer.close()
            try:
                await self._writer.wait_closed()
            except OSError:
                return
