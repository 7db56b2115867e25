"""Loads the compiled passes before the first batch would wait for them."""

from __future__ import annotations

from typing import Any

import msgspec

from collector.hot.raw_rows import Raw, convert
from collector.hot.scanned import scan_completions
from collector.wire.scan import scan_body


def warm_up() -> None:
    """Send a small batch through scan and conversion, into nothing.

    It takes a second; the first time on a machine about fifteen, while numba compiles.
    """
    lead: tuple[Any, ...] = ("warm-up", 0, 0)
    rest: tuple[Any, ...] = ("world", 0, "STRONG", 0, 0, 0)
    dot = [0, 0, 1]
    records = [
        ["collectives", *lead, 0, *rest],
        ["collective_done", *lead, 0, 1],
        ["updates", *lead, 1, *rest, "applied", "object", 0, 0, 1, 1, [dot]],
    ]
    body = msgspec.msgpack.encode(records)
    scan = scan_body(body, len(records))
    assert scan is not None
    convert([Raw(body, scan, 2, scan_completions(scan))])
