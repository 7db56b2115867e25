"""What ranks and agents say of shared state, in both directions (docs/state.md)."""

from __future__ import annotations

import msgspec

from cascade_runtime.state.replica import Stand, Update
from cascade_runtime.vocabulary.identity import Dot


class StateUpdate(msgspec.Struct, frozen=True, tag="state_update"):
    """A put, or one that the other end lacks."""

    update: Update


class StateAsk(msgspec.Struct, frozen=True, tag="state_ask"):
    """I have applied this: send me what I lack. From a rank the first one opens its side."""

    clock: list[Dot]


class StateStand(msgspec.Struct, frozen=True, tag="state_stand"):
    """What the other end lacks is not kept any more: all keys as they stand."""

    stand: Stand
