"""All members are made level by a walk: origins' sums, and the optimizer where cohorts become one.

Two rounds of broadcasts on a communicator of all members: sizes, then what has them.
"""

from __future__ import annotations

import msgspec
import torch

from cascade_runtime.agent.protocol import Message, SumLevel, View
from cascade_runtime.delivery import Step
from cascade_runtime.rank.apart import Apart
from cascade_runtime.rank.collectives import Collectives
from cascade_runtime.rank.member import Member
from cascade_runtime.rank.objects import raw_bytes
from cascade_runtime.rank.part import Part
from cascade_runtime.rank.snapshot import Tree
from cascade_runtime.rank.state_codec import read_message
from cascade_runtime.rank.waiting import Waiting
from cascade_runtime.vocabulary.identity import Actor

_steps = msgspec.msgpack.Decoder(list[Step])


class Levelling:
    """One member's part in it."""

    def __init__(
        self, member: Member, apart: Apart, collectives: Collectives, waiting: Waiting
    ) -> None:
        self._member = member
        self._apart = apart
        self._collectives = collectives
        self._waiting = waiting

    def run(self, view: View, step_open: bool) -> Message | None:
        """None once this member is level; else what the agent wants of a walk that has begun.

        Args:
            step_open: a forward of the open step has begun.
        """
        me = self._member.actor
        roots: list[Actor] = [level.source for level in view.levels]
        labels = [f"level/{level.origin}" for level in view.levels]
        told = [self._tell(level) if level.source == me else b"" for level in view.levels]
        if view.optim_from is not None:
            roots.append(view.optim_from)
            labels.append("level/optim")
            own = view.optim_from == me
            told.append(b"".join(self._apart.tell_optimizer()) if own else b"")
        sizes = [torch.tensor([len(t)], dtype=torch.int64) for t in told]
        message = self._round([f"{label}/size" for label in labels], sizes, roots)
        if message is not None:
            return message
        data = [
            torch.frombuffer(bytearray(mine), dtype=torch.uint8)
            if mine
            else torch.empty(int(size), dtype=torch.uint8)
            for mine, size in zip(told, sizes, strict=True)
        ]
        message = self._round(labels, data, roots)
        if message is not None:
            return message
        for level, came in zip(view.levels, data, strict=False):
            self._take(level, came)
        self._apart.levelled()
        if view.optim_from is not None:
            self._apart.become_one(view, tree_of(data[-1]), data[-1], step_open)
        return None

    def _round(
        self, labels: list[str], tensors: list[torch.Tensor], roots: list[Actor]
    ) -> Message | None:
        parts = [
            Part(label, tensor, tensor, "broadcast")
            for label, tensor in zip(labels, tensors, strict=True)
        ]
        self._collectives.broadcast(parts, roots)
        message = self._waiting.until_done(parts, of_step=False)
        if message is None:
            self._collectives.done_rows(parts, with_digests=False)
        return message

    def _tell(self, level: SumLevel) -> bytes:
        steps, data = self._apart.tell_level(level)
        meta = msgspec.msgpack.encode(steps)
        return b"".join((len(meta).to_bytes(8, "little"), meta, data))

    def _take(self, level: SumLevel, came: torch.Tensor) -> None:
        end = 8 + int.from_bytes(raw_bytes(came[:8]), "little")
        steps = _steps.decode(bytes(raw_bytes(came[8:end])))
        self._apart.take_level(level, steps, came[end:])


def tree_of(packed: torch.Tensor) -> Tree:
    """What ``Apart.tell_optimizer`` packed."""
    view, at = raw_bytes(packed), 0

    def read_into(room: memoryview) -> None:
        nonlocal at
        room[:] = view[at : at + len(room)]
        at += len(room)

    _, body = read_message(read_into, packed.numel())
    return body
