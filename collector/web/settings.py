"""What a collector's HTTP side can be told."""

from __future__ import annotations

from dataclasses import dataclass

MIB = 1 << 20


@dataclass(frozen=True)
class Limits:
    """Bounds on what one client, and all of them together, may make us hold or wait for.

    Attributes:
        body_bytes: of one body as it comes over the wire.
        unpacked_bytes: of one body, unpacked.
        held_bytes: of all bodies that are being read or decoded at one time, and of what those that
            are being unpacked may become.
        waiting_bodies: how many may wait for a thread that unpacks and decodes.
        sql_bytes, meta_bytes: of a body of ``/v1/sql`` and of a trace.json.
        body_seconds: from the first wait for a body to its last byte.
        head_bytes, head_seconds: of a request line with its headers.
        inline_bytes: bodies up to this size are decoded on the event loop: cheaper than a thread.
    """

    body_bytes: int = 32 * MIB
    unpacked_bytes: int = 64 * MIB
    held_bytes: int = 512 * MIB
    waiting_bodies: int = 16
    sql_bytes: int = MIB
    meta_bytes: int = 4 * MIB
    body_seconds: float = 30.0
    head_bytes: int = 32 << 10
    head_seconds: float = 30.0
    inline_bytes: int = 64 << 10


@dataclass(frozen=True)
class Settings:
    """How one collector serves.

    Attributes:
        loopback: bound to this machine alone; without tokens the Host header is then checked.
        limits: see there.
        keep_alive_seconds: an idle connection is kept this long. Agents flush every few seconds, and
            uvicorn's own 5 s closes connections just as the next flush is written.
        stop_seconds: requests under way may take this long once a stop was asked for.
    """

    loopback: bool = True
    limits: Limits = Limits()
    keep_alive_seconds: int = 75
    stop_seconds: float = 10.0
