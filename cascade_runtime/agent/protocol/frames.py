"""Frames: u32 length + MessagePack of one message, numbered where it is recorded.

Messages of the walk and of reconciliation are recorded as ``messages`` rows on both ends: their frame
carries a ``channel_seq``. The rest (hello, rendezvous keys, progress) moves no consistency state.
"""

from __future__ import annotations

import struct
from typing import Any

import msgspec

from cascade_runtime.agent.protocol.between_agents import (
    Accepted,
    AddRank,
    AgentHello,
    Answer,
    Attached,
    Beat,
    DrainRanks,
    Ended,
    History,
    HostLost,
    Lag,
    Propose,
    Query,
    RankAdded,
    Rejected,
    SettleOrder,
    StopJob,
    Trigger,
    Waits,
)
from cascade_runtime.agent.protocol.from_ranks import (
    Acked,
    DebtNote,
    Get,
    Halted,
    Hello,
    Joining,
    Leave,
    Level,
    Lifeline,
    Put,
    Reconciled,
    Round,
    Stuck,
)
from cascade_runtime.agent.protocol.state import StateAsk, StateStand, StateUpdate
from cascade_runtime.agent.protocol.to_ranks import (
    Commit,
    Drain,
    Halt,
    NotWanted,
    Proposed,
    Serve,
    Settle,
    Value,
    Welcome,
)

LENGTH = struct.Struct("<I")
MAX_FRAME = 64 << 20

Message = (
    Hello | Lifeline | Halted | Acked | Round | Reconciled | DebtNote | Leave | Stuck | Put | Get
    | Welcome | Halt | Drain | Proposed | Commit | Settle | Value
    | AgentHello | Beat | HostLost | Attached | Trigger | Query | Answer | Rejected | DrainRanks | Propose
    | Accepted | History | Lag | SettleOrder
    | StopJob | Waits | Joining | Level | Serve | NotWanted | Ended | AddRank | RankAdded
    | StateUpdate | StateAsk | StateStand
)  # fmt: skip

RECORDED = (
    Halted, Acked, Reconciled, DebtNote, Leave, Stuck, Halt, Drain, Proposed, Commit, Settle, Trigger,
    Query, Answer, DrainRanks, Propose, Accepted, History, SettleOrder, Level,
)  # fmt: skip
"""Messages that carry cause and effect of the walk: both ends record them."""


class Frame(msgspec.Struct, frozen=True, array_like=True):
    """One message with its number on the channel (None: not recorded)."""

    body: Message
    channel_seq: int | None = None


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(Frame)


def pack_frame(body: Any, channel_seq: int | None = None) -> bytes:
    """A frame with its length in front."""
    payload = _encoder.encode(Frame(body, channel_seq))
    return LENGTH.pack(len(payload)) + payload


def unpack_frame(payload: bytes) -> Frame:
    """A frame without its length.

    Raises:
        msgspec.DecodeError: it is none; the sentence names what is wrong.
    """
    try:
        return _decoder.decode(payload)
    except RecursionError as error:
        raise msgspec.DecodeError("nested too deeply") from error
