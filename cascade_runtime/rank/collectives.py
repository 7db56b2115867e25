"""Collectives on the newest communicator, each with its rows; none of them is waited for here."""

from __future__ import annotations

import os
import time
from typing import Any

import torch
import torch.distributed as dist
import xxhash

from cascade_runtime.agent.control_log import comm_id_of
from cascade_runtime.rank.groups import OPERATION_TIMEOUT, Group, GroupFactory
from cascade_runtime.rank.member import Member
from cascade_runtime.rank.objects import raw_bytes
from cascade_runtime.rank.open_step import OpenStep
from cascade_runtime.rank.part import Attempt, Part
from cascade_runtime.recorder import Recorder
from cascade_runtime.vocabulary.identity import Actor

DIGEST_EVERY = 64
"""One collective in so many carries a digest of its result."""


class Collectives:
    """The communicator of this member's cohort, and what runs on it."""

    def __init__(
        self, member: Member, recorder: Recorder, factory: GroupFactory, step: OpenStep
    ) -> None:
        self._member = member
        self._recorder = recorder
        self._factory = factory
        self._step = step
        self._group: Group | None = None
        self._formed: dict[tuple[Actor, ...], Group] = {}
        """Those of the view in force."""
        self.wakeup = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        """Readable when a collective has ended."""

    def form(self) -> None:
        """Form the communicator of the view in force; raises Superseded when a walk begins."""
        member = self._member
        self._group = self._form(member.cohort)
        member.group_row(member.view.epoch)

    def form_side(self, members: list[Actor], label: str) -> None:
        """The same for other members of the view; what is launched next runs on it."""
        member = self._member
        if members == member.cohort:
            self.form()
            return
        self._group = self._form(members)
        member.side_group_row(members, member.view.epoch, label)

    def _form(self, members: list[Actor]) -> Group:
        member, view = self._member, self._member.view
        if tuple(members) not in self._formed:
            many = len(view.cohorts) > 1 or view.cuts
            tag = comm_id_of(members, view.epoch) + "/" if many else ""
            group = self._factory.form(members, member.actor, view.epoch, tag)
            self._formed[tuple(members)] = group
        return self._formed[tuple(members)]

    def abandon(self) -> None:
        """Leave the view's communicators."""
        groups, self._group, self._formed = list(self._formed.values()), None, {}
        if groups:
            self._step.leave_group(sum(g.num_pending for g in groups))
        for group in groups:
            group.abandon()

    def launch_open(self) -> None:
        """Launch all parts of the open step that are not under way."""
        for part in self._step.parts:
            if part.work is None:
                self._launch(part)

    def _launch(self, part: Part) -> None:
        group = self._group
        assert group is not None
        root = None
        if part.label.startswith("bucket/"):
            # A product with the reciprocal, as DDP itself does it: the same bytes.
            torch.mul(part.local, 1.0 / group.size, out=part.scratch)
        else:
            part.scratch.copy_(part.local)
            root = self._member.author if part.op == "broadcast" else None
        self._start(part, group, root)

    def broadcast(self, parts: list[Part], roots: list[Actor]) -> None:
        """Launch a broadcast of each part from its root."""
        group = self._group
        assert group is not None
        for part, root in zip(parts, roots, strict=True):
            self._start(part, group, root)

    def broadcast_kept(self, parts: list[Part], source: Actor) -> list[Part]:
        """Launch a broadcast of each part's result from ``source`` to who is behind."""
        group = self._group
        assert group is not None
        rolled = [Part(f"kept/{p.label}", p.local, p.scratch, "broadcast") for p in parts]
        for part in rolled:
            self._start(part, group, source)
        return rolled

    def _start(self, part: Part, group: Group, root: Actor | None) -> None:
        """Enter one collective; its completion wakes whoever waits."""
        part.cseq = group.next_cseq()
        attempt = part.attempt = Attempt()
        part.entered_seq = self._recorder.entered(
            group.comm_id,
            part.cseq,
            part.op,
            part.label,
            part.scratch.numel() * part.scratch.element_size(),
            str(part.scratch.dtype).removeprefix("torch."),
            None if root is None else root.rank,
        )
        try:
            part.work = _operation(part, group, root)
        except RuntimeError as error:  # the peer is gone already
            attempt.failed = str(error)
            part.work = error
            return
        wakeup = self.wakeup
        group.num_pending += 1

        def completed(future: torch.futures.Future[Any]) -> None:
            group.num_pending -= 1
            try:
                future.value()
            except RuntimeError as error:
                attempt.failed = str(error)
            attempt.complete_ns = time.monotonic_ns()
            os.eventfd_write(wakeup, 1)

        part.work.get_future().add_done_callback(completed)

    def done_rows(self, parts: list[Part], with_digests: bool = True) -> None:
        """They have completed here."""
        for part in parts:
            digest = None
            if with_digests and part.cseq % DIGEST_EVERY == DIGEST_EVERY - 1:
                digest = xxhash.xxh3_128_hexdigest(raw_bytes(part.scratch))
            self._recorder.done(part.entered_seq, part.complete_ns, digest)


def _operation(part: Part, group: Group, root: Actor | None) -> Any:
    # gloo knows no complex numbers; their sum is that of their parts.
    scratch = part.scratch
    tensor = torch.view_as_real(scratch) if scratch.is_complex() else scratch
    if root is None:
        reduction = dist.AllreduceOptions()
        reduction.timeout = OPERATION_TIMEOUT
        if part.label == "used":
            reduction.reduceOp = dist.ReduceOp(dist.ReduceOp.MAX)
        return group.pg.allreduce([tensor], reduction)
    options = dist.BroadcastOptions()
    options.timeout = OPERATION_TIMEOUT
    options.rootRank = [m.rank for m in group.members].index(root.rank)
    options.rootTensor = 0
    return group.pg.broadcast([tensor], options)
