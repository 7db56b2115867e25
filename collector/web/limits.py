"""Bodies are read within limits of size, time and of what all of them may hold together."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from starlette.types import Message, Receive, Scope

from collector.web.errors import BadBody, BodyTooLarge, BodyTooSlow, TooBusy

_LONGEST_LENGTH = 18  # digits; int() of very many is slow


class ClientGone(Exception):
    """The client closed the connection before its request was whole; there is nobody to answer."""


class Room:
    """Counts the bytes of all bodies in memory; used on the event loop only.

    Args:
        num_bytes: how many there may be.
    """

    def __init__(self, num_bytes: int) -> None:
        self._free = num_bytes

    def take(self, num_bytes: int) -> None:
        """Count bytes in.

        Raises:
            TooBusy: there is no room for them.
        """
        if num_bytes > self._free:
            raise TooBusy(
                "too many bodies are being read at this moment",
                hint="send again after the seconds that Retry-After gives",
            )
        self._free -= num_bytes

    def give(self, num_bytes: int) -> None:
        """Count bytes out."""
        self._free += num_bytes


WHOLE_BODY = "cascade.body"
"""Key of a scope under which the server puts a call that gives the body, where all of it came with
its head. It is for once, instead of the receive channel."""


def whole_body(scope: Scope, said_length: bytes | None, limit: int, room: Room) -> bytes | None:
    """The body that came with the head, as ``read_body`` gives it; None where one must wait for it.

    Nearly all of a small request comes in one piece, and then no deadline is needed.

    Raises:
        BodyTooLarge, BadBody, TooBusy.
    """
    take: Callable[[], bytes] | None = scope.pop(WHOLE_BODY, None)
    if take is None:
        return None
    _check_length(said_length, limit)
    body = take()
    if len(body) > limit:
        raise _too_large(limit)
    room.take(len(body))
    return body


async def read_body(
    receive: Receive, said_length: bytes | None, limit: int, seconds: float, room: Room
) -> bytes:
    """A request's body, whole; the caller gives its length back to ``room`` when it is done.

    Args:
        receive: the request's ASGI channel.
        said_length: its Content-Length, where it has one.
        limit: bytes it may have.
        seconds: until it must be whole.
        room: what it counts into.

    Raises:
        BodyTooLarge: as soon as that is known.
        BodyTooSlow, ClientGone, TooBusy.
    """
    _check_length(said_length, limit)
    taken = 0
    parts: list[bytes] = []
    try:
        async with asyncio.timeout(seconds):
            while True:
                message = await receive()
                part = _part_of(message, limit - taken, limit)
                if part:
                    room.take(len(part))
                    taken += len(part)
                    parts.append(part)
                if not message.get("more_body", False):
                    return parts[0] if len(parts) == 1 else b"".join(parts)
    except TimeoutError:
        room.give(taken)
        raise BodyTooSlow(
            f"the body was not whole after {seconds:g} s", where="body", hint="send smaller batches"
        ) from None
    except BaseException:
        room.give(taken)
        raise


def _check_length(said_length: bytes | None, limit: int) -> None:
    if said_length is None:
        return
    if not said_length.isdigit():
        raise BadBody("this is no length", where="Content-Length")
    if len(said_length) > _LONGEST_LENGTH or int(said_length) > limit:
        raise _too_large(limit)


def _part_of(message: Message, num_free: int, limit: int) -> bytes:
    if message["type"] == "http.disconnect":
        raise ClientGone
    part: bytes = message.get("body", b"")
    if len(part) > num_free:
        raise _too_large(limit)
    return part


def _too_large(limit: int) -> BodyTooLarge:
    return BodyTooLarge(
        f"the body is larger than {limit} bytes", where="body", hint="send smaller batches"
    )
