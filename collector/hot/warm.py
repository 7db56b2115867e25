"""Loads the compiled passes before the first batch would wait for them."""

from __future__ import annotations

from typing import Any

from cascade_runtime.vocabulary.events import CollectiveDone, Collectives, Record, Updates
from cascade_runtime.vocabulary.identity import Dot
from cascade_runtime.vocabulary.regime import Regime
from collector.hot.raw_rows import Raw, convert
from collector.wire.batch import MSGPACK
from collector.wire.decode import decode
from collector.wire.records import encode_msgpack


def warm_up() -> None:
    """Send a small batch through scan and conversion, into nothing.

    It takes a second; the first time on a machine about fifteen, while numba compiles.
    """
    lead: tuple[Any, ...] = ("warm-up", 0, 0)
    rest: tuple[Any, ...] = ("world", 0, Regime.STRONG, 0, 0, 0)
    records: list[Record] = [
        Collectives(*lead, 0, *rest, completed=False),
        CollectiveDone(*lead, 0, 1, None, 1),
        Updates(*lead, 1, *rest, deps=[Dot(0, 0, 1)]),
    ]
    batch = decode(MSGPACK, encode_msgpack(records))
    assert batch.scan is not None
    convert([Raw(batch.body, batch.scan, 2)])
