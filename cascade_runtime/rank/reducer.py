"""The comm hook: one reduction a step over the view, held until its last bucket, never blocking.

A scratch copy of each bucket is reduced (DDP's own buffer keeps the local gradient, so the step can be
reduced again on another view), and the scratch itself resolves the bucket's future: no copy back. The
step's futures are held until its last bucket, because DDP copies a resolved bucket out at once and a
later failure would fork the replicas. Scratch sets alternate by step, so that the buckets of the last
decided step are kept for members that are one step behind (12 % of random kills leave some).
"""

# No `from __future__ import annotations` here: DDP checks the hook's annotations as objects.

import contextlib
import os
import time
from typing import Any

import torch
import torch.distributed as dist
import xxhash
from torch.distributed import GradBucket  # type: ignore[attr-defined]  # absent from the stubs

from cascade_runtime.agent.protocol import (
    Commit,
    Drain,
    Halt,
    Halted,
    Leave,
    Message,
    Proposed,
    Serve,
    Settle,
    Stuck,
    Value,
    View,
)
from cascade_runtime.progress import BACKWARD, FORWARD, HALTED, LEAVING, WAITING
from cascade_runtime.rank.bucket_map import Layout
from cascade_runtime.rank.feed import Feeds
from cascade_runtime.rank.groups import (
    OPERATION_TIMEOUT,
    Group,
    GroupFactory,
    Superseded,
    bury,
)
from cascade_runtime.rank.layouts import Layouts
from cascade_runtime.rank.link import AgentLink, wait_readable
from cascade_runtime.rank.member import Member
from cascade_runtime.rank.objects import pack, raw_bytes, unpack
from cascade_runtime.rank.part import Offsets, Part
from cascade_runtime.rank.told_buckets import ToldBuckets
from cascade_runtime.rank.used import UsedParameters
from cascade_runtime.recorder import Recorder
from cascade_runtime.vocabulary.errors import CascadeError
from cascade_runtime.vocabulary.regime import Regime

DIGEST_EVERY = 64
"""One collective in so many carries a digest of its result."""

STUCK_AFTER_S = 2.0
"""A collective that failed although nobody died: ask for a new epoch after this."""

BROKEN_PATIENCE_S = 60.0

LONG_WAIT_S = 1.0
"""A wait that long, and longer than usual, may be for a member whose buckets are not like ours."""


class StepReducer:
    """Reduces steps over the member's view and serves the walk wherever the job waits."""

    def __init__(
        self,
        member: Member,
        link: AgentLink,
        recorder: Recorder,
        factory: GroupFactory,
    ) -> None:
        self.member = member
        self._link = link
        self._recorder = recorder
        self._factory = factory
        self._group: Group | None = None
        self._parts: list[Part] = []
        self._kept: list[Part] = []
        self._pools: list[dict[str, torch.Tensor]] = [{}, {}]
        self._step_decided = False
        self._in_step = False
        self._all_buckets = False
        self._done_ns = 0
        """When (monotonic) the last of the step's collectives completed here."""
        self._layouts = Layouts(member, link, member.objects.parameters)
        self._hold_launches = False
        self._last_wait_s = 0.0
        self.used: UsedParameters | None = None
        """Set where ranks may use different parameters."""
        self.unreduced = False
        """A backward under ``no_sync`` since the last decided step."""
        self._wakeup = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self.left = False
        self._ask = 0
        self.feeds: Feeds | None = None
        """Where newcomers are served from; None: nobody is."""
        self.params: dict[str, torch.Tensor] = {}
        """The model's parameters by name; the session sets them."""
        self.param_names: dict[int, str] = {}
        """Their names by ``id``."""
        self._owes_answer = False
        self._told: ToldBuckets | None = None
        """A newcomer's, while its own buckets may differ from the members'."""
        self._cut_is_fresh = True
        """DDP has just been built: it orders its buckets anew after the next step."""
        link.on_return = member.tell_again

    # ---- the hook --------------------------------------------------------------------------------

    def hook(self, state: object, bucket: GradBucket) -> torch.futures.Future[torch.Tensor]:
        """What DDP calls for each bucket; returns with the last one when the step is decided."""
        del state
        if bucket.index() == 0:
            self._begin_backward()
        self.serve_pending()
        last = bucket.is_last()
        if self._told is not None:
            return self._hook_as_told(bucket, self._told)
        part = self._bucket_part(bucket)
        self._add(part)
        self._launch_buckets(last)
        return part.future

    def _add(self, part: Part) -> None:
        if not self._layouts.expects(len(self._parts), part):
            self._hold_launches = True  # until all have been found to have the same cut
        self._parts.append(part)

    def _launch_buckets(self, last: bool) -> None:
        """Launch what is not under way yet; with the last bucket, complete the step."""
        self._all_buckets = last
        if last:
            self.member.objects.look_up_buffers()
            if self._buffers():
                self._parts.append(self._buffers_part())
            if self.used is not None:
                marks = self.used.marks.clone()
                self._parts.append(Part("used", marks, self._scratch("used", marks), "all_reduce"))
            self.member.issue()
            self.member.tell_progress(WAITING)
            self.member.steps.entered_ns = time.monotonic_ns()
        if not self._hold_launches and (not last or self._layouts.agree(self._parts)):
            self._launch_open()
        if last:
            self._complete_step()

    def end_skipped(self) -> None:
        """Before a forward: the optimizer did not step on the last decided step, and will not."""
        if self._step_decided:
            self.end_step()

    def begin_forward(self) -> None:
        """The first forward of a step: serve what the agent asks, then the step's first rows."""
        self.end_skipped()
        if self.feeds is not None and not self._in_step:
            self.feeds.boundary()
        self._answer_owed()
        self.serve_pending()
        self._hold_in_eventual()
        if not self._in_step:
            self._in_step = True
            self.member.begin_step()
            self.member.tell_progress(FORWARD)

    @property
    def decided_now(self) -> bool:
        """A step is decided and the optimizer has not stepped yet."""
        return self._step_decided

    def end_step(self) -> None:
        """After the optimizer's step."""
        if self._step_decided:
            self.member.check_fence()
            self._step_decided = False
            self._in_step = False
            self.member.end_step(self._done_ns)
            self._done_ns = 0
            if self._is_logging:
                # A newcomer's log of this step is whole when the next one begins: schedulers step
                # after the optimizer. A walk that counts on this member's stand waits for that.
                return
            self.serve_pending()
            self._hold_in_eventual()

    @property
    def _is_logging(self) -> bool:
        return self.feeds is not None and self.feeds.is_logging

    def _answer_owed(self) -> None:
        """Answer the drain whose step was still to be finished and logged."""
        if self._owes_answer:
            self._owes_answer = False
            self._answer()
            self._walk(self._link.receive())

    def _hold_in_eventual(self) -> None:
        """Nothing is relaxed that could not be repaid: members hold until RECOVERY_DETECTED."""
        if self.member.view.regime is Regime.EVENTUAL and not self.left:
            self.member.reconcile()
            self._walk(self._link.receive())

    def _begin_backward(self) -> None:
        self._parts = []
        if self._told is not None:
            self._told.begin()
        self._step_decided = self._all_buckets = self._hold_launches = False
        if not self._in_step:  # a backward without a forward of the wrapped module
            self.begin_forward()
        self.member.tell_progress(BACKWARD)

    def _bucket_part(self, bucket: GradBucket) -> Part:
        local = bucket.buffer()
        label = f"bucket/{bucket.index()}"
        of: Offsets = ()
        if self.used is not None:
            first = local.storage_offset()
            offsets = [int(g.storage_offset() - first) for g in bucket.gradients()]
            of = list(zip(bucket.parameters(), offsets, strict=True))
        scratch = self._scratch(label, local)
        return Part(label, local, scratch, "all_reduce", bucket.parameters, of)

    def join_as_told(self, layout: Layout) -> None:
        """The members' buckets, for a newcomer whose own ones may differ at first."""
        self._told = ToldBuckets(layout, self.params)

    def _hook_as_told(
        self, bucket: GradBucket, told: ToldBuckets
    ) -> torch.futures.Future[torch.Tensor]:
        """A newcomer's step: nothing is launched before all gradients are there."""
        names = [self.param_names[id(p)] for p in bucket.parameters()]
        future = told.add(names, bucket.buffer())
        if bucket.is_last():
            for i, packed in enumerate(told.packed()):
                label = f"bucket/{i}"
                of = told.offsets(i)
                scratch = self._scratch(label, packed)
                self._add(Part(label, packed, scratch, "all_reduce", told.parameters_of(i), of))
            self._launch_buckets(last=True)
        return future

    def _buffers_part(self) -> Part:
        packed = pack(self._buffers())
        return Part("buffers", packed, self._scratch("buffers", packed), "broadcast")

    def _buffers(self) -> list[torch.Tensor]:
        return [b for b in self.member.objects.buffers if b.numel()]

    def cut_anew(self) -> None:
        """DDP was built anew, here and on all other members, so all cut their buckets anew."""
        self._layouts.look_again()
        self._told = None
        self._cut_is_fresh = True
        if self.feeds is not None:
            self.feeds.layout = []  # nobody comes in before the order is known that DDP settles on

    def _scratch(self, label: str, like: torch.Tensor) -> torch.Tensor:
        pool = self._pools[self.member.decided % 2]
        scratch = pool.get(label)
        if scratch is None or scratch.shape != like.shape or scratch.dtype != like.dtype:
            scratch = pool[label] = torch.empty_like(like)
        return scratch

    # ---- collectives -----------------------------------------------------------------------------

    def _launch_open(self) -> None:
        for part in self._parts:
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
            root = self.member.author.rank if part.op == "broadcast" else None
        self._start(part, group, root)

    def _start(self, part: Part, group: Group, root: int | None) -> None:
        """Enter one collective; its completion wakes whoever waits."""
        part.cseq = group.next_cseq()
        part.complete_ns, part.failed = 0, None
        part.entered_seq = self._recorder.entered(
            group.comm_id,
            part.cseq,
            part.op,
            part.label,
            part.scratch.numel() * part.scratch.element_size(),
            str(part.scratch.dtype).removeprefix("torch."),
            root,
        )
        # gloo knows no complex numbers; their sum is that of their parts.
        complex_ = part.scratch.is_complex()
        tensor = torch.view_as_real(part.scratch) if complex_ else part.scratch
        try:
            if root is None:
                reduction = dist.AllreduceOptions()
                reduction.timeout = OPERATION_TIMEOUT
                if part.label == "used":
                    reduction.reduceOp = dist.ReduceOp(dist.ReduceOp.MAX)
                part.work = group.pg.allreduce([tensor], reduction)
            else:
                options = dist.BroadcastOptions()
                options.timeout = OPERATION_TIMEOUT
                options.rootRank = [m.rank for m in group.members].index(root)
                options.rootTensor = 0
                part.work = group.pg.broadcast([tensor], options)
        except RuntimeError as error:  # the peer is gone already
            part.failed = str(error)
            part.work = error
            return
        wakeup, attempt = self._wakeup, part.entered_seq
        group.num_pending += 1

        def completed(future: torch.futures.Future[Any]) -> None:
            group.num_pending -= 1
            if part.entered_seq != attempt:
                return  # an operation of an abandoned group: the part was launched again since
            try:
                future.value()
            except RuntimeError as error:
                part.failed = str(error)
            part.complete_ns = time.monotonic_ns()
            os.eventfd_write(wakeup, 1)

        part.work.get_future().add_done_callback(completed)

    def _wait(self, parts: list[Part]) -> Message | None:
        """Until all of ``parts`` are done (None), or the agent wants something of the walk."""
        broken_since: float | None = None
        told = False
        began = time.monotonic()
        while not all(p.done for p in parts):
            message = self._next_walk_message()
            if message is not None:
                return message
            if any(p.failed for p in parts):
                now = time.monotonic()
                broken_since = broken_since or now
                why = next(p.failed for p in parts if p.failed)
                if not told and now - broken_since > STUCK_AFTER_S:
                    told = True
                    self._say_stuck(why or "")
                if now - broken_since > BROKEN_PATIENCE_S:
                    raise CascadeError(
                        f"a collective failed ({why}) and no agent announced a new view "
                        f"within {BROKEN_PATIENCE_S:.0f} s",
                        where=f"rank {self.member.actor}",
                        hint="the agents' output above says what they wait for",
                    )
            waited = time.monotonic() - began
            if waited > max(LONG_WAIT_S, 4 * self._last_wait_s) and parts is self._parts:
                self._layouts.tell(parts)
            wait_readable([self._wakeup, self._link.fd], 0.05 if self._link.fd < 0 else 1.0)
            with contextlib.suppress(BlockingIOError):
                os.eventfd_read(self._wakeup)
        return None

    def _complete_step(self) -> None:
        began = time.monotonic()
        while not self._step_decided:
            if not self._layouts.agree(self._parts):
                self._hold_launches = True
                message = self._next_walk_message()  # None: somebody is late, so ask again
            else:
                self._hold_launches = False
                self._launch_open()
                message = self._wait(self._parts)
                if message is None:
                    self._decide()
            if message is not None:
                self._walk(message)
        self._last_wait_s = time.monotonic() - began
        self.unreduced = False
        for part in self._parts:
            if part.label == "buffers":
                unpack(part.scratch, self._buffers())
            elif part.label == "used":
                self._take_used(part)
            else:
                part.future.set_result(part.scratch)
        self._note_layout()
        if self._told is not None and self._told.resolve([p.scratch for p in self._buckets()]):
            self._told = None
        self._cut_is_fresh = False
        self._kept, self._parts = self._parts, []
        self._all_buckets = False

    def _note_layout(self) -> None:
        """Names in the step's buckets, for newcomers; not of a step after which DDP orders them anew."""
        if self.feeds is None or not self.feeds.any:
            return
        if self._told is not None:
            self.feeds.layout = self._told.layout
        elif not self._cut_is_fresh:
            names = self.param_names
            self.feeds.layout = [
                [names[id(p)] for p in part.parameters()] for part in self._buckets()
            ]

    def _buckets(self) -> list[Part]:
        return [p for p in self._parts if p.label.startswith("bucket/")]

    def _decide(self) -> None:
        """The open step's last bucket is done: rows, and the step counts."""
        for part in self._parts:
            digest = None
            if part.cseq % DIGEST_EVERY == DIGEST_EVERY - 1:
                digest = xxhash.xxh3_128_hexdigest(raw_bytes(part.scratch))
            self._recorder.done(part.entered_seq, part.complete_ns, digest)
        self._layouts.decide(self._parts)
        self.member.decide()
        self._step_decided = True
        self._done_ns = max(p.complete_ns for p in self._parts)
        self.member.tell_progress(BACKWARD)

    def _take_used(self, marks: Part) -> None:
        reduced = [
            (parameter, part.scratch[first : first + parameter.numel()])
            for part in self._parts
            for parameter, first in part.of
        ]
        assert self.used is not None
        self.used.take(marks.scratch, marks.local, reduced)

    # ---- the walk --------------------------------------------------------------------------------

    def serve_pending(self) -> None:
        """At a point where the job is in our hands anyway: do what the agent asks."""
        self._link.pump()
        while (message := self._next_walk_message()) is not None:
            self._walk(message)

    def _next_walk_message(self) -> Message | None:
        """The next message that stops this member; others are handled here."""
        self._link.pump()
        while self._link.inbox:
            message = self._link.inbox.popleft()
            if isinstance(message, Halt | Proposed | Commit):
                return message
            if isinstance(message, Settle):
                self.member.settle(message)
            elif isinstance(message, Serve) and self.feeds is not None:
                self.feeds.request(message)
            elif isinstance(message, Value):
                self._layouts.hear(message)
        return None

    def leave(self) -> None:
        """Say that this rank's job is done and serve the walk until a view without it is committed."""
        member = self.member
        member.leaving = True
        if self.feeds is not None:
            self.feeds.stop()
        self._answer_owed()
        member.tell_progress(LEAVING)
        self._link.send(Leave(member.actor, member.decided))
        while not self.left:
            if not member.strong:
                member.reconcile()  # what stands open is settled before the last view
            message = self._link.receive()
            if isinstance(message, Settle):
                member.settle(message)
            elif message is not None:
                self._walk(message)

    def enter_first_view(self) -> None:
        """Form the communicator of the view that the job starts with."""
        self.member.membership_row()
        if not self._enter():
            message = self._link.receive()
            if message is not None:
                self._walk(message)

    def enter_joined(self, view: View) -> None:
        """A newcomer's first view: commit it and form its communicator."""
        self._walk(Commit(view))

    def _walk(self, message: Message | None) -> None:
        """Serve the walk from ``message`` on, until this member may step again (or has left)."""
        member = self.member
        while True:
            match message:
                case Halt(ask=ask):
                    self._ask = ask
                    self._answer()
                case Drain(step=step, ask=ask):
                    self._ask = ask
                    message = self._drain(step)
                    if message is not None:
                        continue
                    if self._step_decided and self._parts and self._is_logging:
                        self._owes_answer = True
                        return
                    self._answer()
                case Proposed():
                    member.acknowledge(message)
                case Settle():
                    member.settle(message)
                case Serve() if self.feeds is not None and not member.leaving:
                    self.feeds.request(message)
                case Commit(view=view) if view.epoch == member.view.epoch + 1:
                    self._abandon()
                    if member.actor not in view.members and not member.leaving:
                        member.on_left_behind(f"was out of reach for too long ({view.reason})")
                    member.commit(view)
                    if member.actor not in view.members:
                        self.left = True
                        return
                    if view.joined:
                        self._layouts.admit(view)
                        self._hold_launches = True
                    if self.feeds is not None:
                        self.feeds.committed(view)
                    if view.regime is Regime.EVENTUAL:
                        if view.source is not None and not self._enter():
                            message = self._link.receive()
                            continue
                        if self._step_decided and self._parts:
                            return  # rolled forward: the step is finished first, then held
                        member.reconcile()
                    elif self._enter():
                        return
                case _:
                    pass
            message = self._link.receive()

    def _answer(self) -> None:
        member = self.member
        member.tell_progress(HALTED)
        launched_all = bool(self._parts) and all(p.work is not None for p in self._parts)
        self._link.send(Halted(member.facts(launched_all), self._ask))
        # After the answer, so that the agents' round trip hides it. Not between a step's decision and
        # the optimizer's step: the frontier covers the step there and the parameters do not yet.
        if not (self._step_decided and self._parts):
            member.digest_cut(step_open=self._in_step)

    def _drain(self, step: int) -> Message | None:
        """Nobody died and others decided ``step``: finish it on the old group."""
        if self.member.decided < step and self._parts:
            message = self._wait(self._parts)
            if message is not None:
                return message
            self._decide()
        return None

    def _abandon(self) -> None:
        """Leave the old group; what may still be written to is never used again."""
        group, self._group = self._group, None
        if group is None:
            return
        if group.num_pending and self._parts and not self._step_decided:
            bury([(p.work, p.scratch) for p in self._parts])
            self._pools[self.member.decided % 2] = {}
            for part in self._parts:
                part.scratch = self._scratch(part.label, part.local)
        for part in (*self._parts, *self._kept):
            part.work = None  # it holds on to the group's connections
        group.abandon()

    def _enter(self) -> bool:
        """Form the new view's group, roll members forward, launch the open step again.

        False when another walk has begun meanwhile; its messages are in the inbox.
        """
        member = self.member
        view = member.view
        try:
            self._group = self._factory.form(member.cohort, member.actor, view.epoch)
        except Superseded as why:
            self._link.pump()
            if not self._link.inbox:
                self._say_stuck(str(why))
            return False
        member.group_row(view.epoch)
        if view.source is not None and not self._roll_forward():
            return False
        if not self._step_decided and view.regime is not Regime.EVENTUAL:
            if self._all_buckets:
                # The author may be another now, or its dots were voided: issue before the launch.
                self.member.issue()
            if not self._hold_launches:
                self._launch_open()
        return True

    def _say_stuck(self, why: str) -> None:
        member = self.member
        self._link.send(Stuck(member.actor, member.view.epoch, why.splitlines()[0][:200]))

    def _roll_forward(self) -> bool:
        """Members one decided step behind take the buckets that the others kept."""
        view, group = self.member.view, self._group
        assert view.source is not None
        assert group is not None
        behind = self.member.decided < view.cut_step
        parts = self._parts if behind else self._kept_or_decided()
        rolled = [Part(p.label, p.local, p.scratch, "broadcast") for p in parts]
        for part in rolled:
            part.label = f"kept/{part.label}"
            self._start(part, group, view.source.rank)
        message = self._wait(rolled)
        if message is not None:
            self._link.inbox.appendleft(message)
            return False
        for part in rolled:
            self._recorder.done(part.entered_seq, part.complete_ns)
        if behind:
            self._layouts.decide(self._parts)
            self.member.decide(rolled=True)
            self._step_decided = True
        return True

    def _kept_or_decided(self) -> list[Part]:
        """The buckets of the last decided step: the open list just after deciding, else the kept."""
        return self._parts if self._step_decided and self._parts else self._kept
