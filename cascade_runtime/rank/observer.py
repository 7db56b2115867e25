"""``mode="observe"``: the same rows where they can be had, and nothing changed.

DDP keeps its own process group and its own way of failing; the hook reduces exactly as DDP would.
"""

# No `from __future__ import annotations` here: DDP checks the hook's annotations as objects.

import time
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed import GradBucket  # type: ignore[attr-defined]  # absent from the stubs

from cascade_runtime.agent.control_log import comm_id_of
from cascade_runtime.agent.protocol import Commit, Halt, Halted, Leave, Message, Proposed
from cascade_runtime.progress import FORWARD, WAITING
from cascade_runtime.rank.guard import guarded
from cascade_runtime.rank.link import AgentLink
from cascade_runtime.rank.member import Member
from cascade_runtime.recorder import Recorder

LEAVE_PATIENCE_S = 5.0


class StepObserver:
    """Records steps around DDP's own reduction."""

    def __init__(
        self, member: Member, link: AgentLink | None, recorder: Recorder, process_group: Any
    ) -> None:
        self.member = member
        self._link = link
        self._recorder = recorder
        self._pg = process_group
        self._size = dist.get_world_size(process_group)
        self._comm_id = comm_id_of(member.cohort, 0)
        self._cseq = 0
        self._in_step = False
        self._step_decided = False
        self._entered: list[tuple[int, list[int]]] = []

    def hook(self, state: object, bucket: GradBucket) -> torch.futures.Future[torch.Tensor]:
        """DDP's default reduction (its share, all_reduce), with a row at entry."""
        del state
        buffer = bucket.buffer()
        seq = self._before(bucket, buffer)
        buffer.mul_(1.0 / self._size)  # as DDP does it without a hook: the same bytes
        work: Any = dist.all_reduce(buffer, group=self._pg, async_op=True)
        future: torch.futures.Future[torch.Tensor] = work.get_future()
        done: list[int] = []
        self._entered.append((seq, done))

        def finish(reduced: torch.futures.Future[Any]) -> torch.Tensor:
            result: torch.Tensor = reduced.value()[0]
            done.append(time.monotonic_ns())
            return result

        reduced_later: torch.futures.Future[torch.Tensor] = future.then(finish)
        return reduced_later

    @guarded(default=-1)
    def _before(self, bucket: GradBucket, buffer: torch.Tensor) -> int:
        if bucket.index() == 0:
            self._tell_completions()
            self._step_decided = False
        if bucket.is_last():
            self.member.issue()
            self._step_decided = True
            self.member.tell_progress(WAITING)
            self.member.steps.entered_ns = time.monotonic_ns()
        self._cseq += 1
        return self._recorder.entered(
            self._comm_id,
            self._cseq - 1,
            "all_reduce",
            f"bucket/{bucket.index()}",
            buffer.numel() * buffer.element_size(),
            str(buffer.dtype).removeprefix("torch."),
        )

    @guarded()
    def begin_forward(self) -> None:
        """First rows of a step."""
        if not self._in_step:
            self._in_step = True
            self.member.begin_step()
            self.member.tell_progress(FORWARD)

    @guarded()
    def end_step(self) -> None:
        """After the optimizer's step: completions, updates, digest, end."""
        if not self._step_decided:
            return
        self._step_decided = self._in_step = False
        done_ns = self._tell_completions()
        self.member.decide()
        self.member.end_step(done_ns)

    def _tell_completions(self) -> int:
        """Rows of what has completed; when (monotonic) the last of it was, 0 while one is under way."""
        whole = all(done for _, done in self._entered)
        done_ns = max((done[0] for _, done in self._entered if done), default=0)
        for seq, done in self._entered:
            if done and seq >= 0:
                self._recorder.done(seq, done[0])
        self._entered = []
        return done_ns if whole else 0

    @guarded()
    def enter_first_view(self) -> None:
        """Rows of the view that the job starts with."""
        self.member.membership_row()
        self.member.group_row(0)

    @guarded()
    def leave(self) -> None:
        """Say that this rank is done; the job's end never waits long for it."""
        link, member = self._link, self.member
        if link is None:
            return
        member.leaving = True
        link.send(Leave(member.actor, member.decided))
        end = time.monotonic() + LEAVE_PATIENCE_S
        while (left := end - time.monotonic()) > 0:
            message = link.receive(timeout_s=left)
            if message is not None and self._serve(message):
                return

    def _serve(self, message: Message) -> bool:
        """True when a view without this member is committed."""
        member = self.member
        match message:
            case Halt(ask=ask):
                assert self._link is not None
                self._link.send(Halted(member.facts(launched_all=False), ask))
            case Proposed():
                member.acknowledge(message)
            case Commit(view=view) if view.epoch == member.view.epoch + 1:
                member.commit(view)
                return member.actor not in view.members
            case _:
                pass
        return False
