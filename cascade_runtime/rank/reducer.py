"""The comm hook: one reduction a step over the view, held until its last bucket, never blocking.

A scratch copy of each bucket is reduced (open_step.py), and the scratch itself resolves the bucket's
future: no copy back. The step's futures are held until its last bucket, because DDP copies a resolved
bucket out at once and a later failure would fork the replicas.
"""

# No `from __future__ import annotations` here: DDP checks the hook's annotations as objects.

import time

import torch
from torch.distributed import GradBucket  # type: ignore[attr-defined]  # absent from the stubs

from cascade_runtime.agent.protocol import View
from cascade_runtime.progress import BACKWARD, FORWARD, WAITING
from cascade_runtime.rank.apart import Apart
from cascade_runtime.rank.aside import Aside, in_turn
from cascade_runtime.rank.bucket_map import Layout
from cascade_runtime.rank.channel import Channel
from cascade_runtime.rank.collectives import Collectives
from cascade_runtime.rank.feed import Feeds
from cascade_runtime.rank.groups import GroupFactory
from cascade_runtime.rank.layouts import Layouts
from cascade_runtime.rank.link import AgentLink
from cascade_runtime.rank.member import Member
from cascade_runtime.rank.objects import unpack
from cascade_runtime.rank.open_step import OpenStep
from cascade_runtime.rank.part import Part
from cascade_runtime.rank.snapshot import TrainingState
from cascade_runtime.rank.step_parts import StepParts
from cascade_runtime.rank.told_buckets import ToldBuckets
from cascade_runtime.rank.wait_rows import WaitRows
from cascade_runtime.rank.waiting import Waiting
from cascade_runtime.rank.walking import Walking
from cascade_runtime.recorder import Recorder


class StepReducer:
    """Reduces steps over the member's view and serves the walk wherever the job waits."""

    def __init__(
        self,
        member: Member,
        link: AgentLink,
        recorder: Recorder,
        factory: GroupFactory,
        state: TrainingState,
        *,
        may_part: bool = False,
        token: bytes = b"",
    ) -> None:
        self.member = member
        self._apart = Apart(member, state, may_part=may_part)
        self._channel = Channel(member, link, recorder, self._apart, token=token)
        self._step = OpenStep(member)
        self._collectives = Collectives(member, recorder, factory, self._step)
        self._layouts = Layouts(member, link, member.objects.parameters)
        rows = WaitRows(member.actor, recorder)
        self._waiting = Waiting(member, link, self._layouts, self._collectives.wakeup, rows)
        self._waiting.channel = self._channel
        self._apart.on_bound = self._waiting.say_stuck
        self._walking = Walking(
            member, link, self._step, self._collectives, self._layouts, self._waiting,
            self._apart, self._channel,
        )  # fmt: skip
        self.parts = StepParts(member, self._step)
        """Makes the parts of the open step."""
        self.unreduced = False
        """A backward under ``no_sync`` since the last decided step."""
        self.params: dict[str, torch.Tensor] = {}
        """The model's parameters by name; the session sets them."""
        self.param_names: dict[int, str] = {}
        """Their names by ``id``."""
        self._told: ToldBuckets | None = None
        """A newcomer's, while its own buckets may differ from the members'."""
        self._held_ns = 0
        """Waited at the staleness bound since the last step."""
        self._cut_is_fresh = True
        """DDP has just been built: it orders its buckets anew after the next step."""
        link.on_return, link.on_wait = self.tell_again, rows.look
        self.aside = Aside(link, self._walking.serve_aside)

    def tell_again(self) -> None:
        """The agent is back after it was away: what it may have missed."""
        self.member.tell_again()
        self._waiting.tell_again()

    @property
    def feeds(self) -> Feeds | None:
        """Where newcomers are served from; None: nobody is."""
        return self._waiting.feeds

    @feeds.setter
    def feeds(self, feeds: Feeds) -> None:
        self._waiting.feeds = feeds

    # ---- the hook --------------------------------------------------------------------------------

    @in_turn
    def hook(self, state: object, bucket: GradBucket) -> torch.futures.Future[torch.Tensor]:
        """What DDP calls for each bucket; returns with the last one when the step is decided."""
        del state
        if bucket.index() == 0:
            self._begin_backward()
        self._walking.serve_pending()
        last = bucket.is_last()
        if self._told is not None:
            return self._hook_as_told(bucket, self._told)
        part = self.parts.of_bucket(bucket)
        self._add(part)
        self._launch_buckets(last)
        return part.future

    def _begin_backward(self) -> None:
        self._step.begin_backward()
        if self._told is not None:
            self._told.begin()
        if not self._step.has_begun:  # a backward without a forward of the wrapped module
            self.begin_forward()
        self.member.tell_progress(BACKWARD)

    def _add(self, part: Part) -> None:
        step = self._step
        if not self._layouts.expects(len(step.parts), part):
            step.is_held = True
        step.parts.append(part)

    def _launch_buckets(self, last: bool) -> None:
        """Launch what is not under way yet; with the last bucket, complete the step."""
        step = self._step
        step.has_all = last
        if last:
            self._step.parts += self.parts.rest()
            self._step.parts += self._channel.parts(self._step)
            self.member.issue()
            self._channel.issued()
            self.member.tell_progress(WAITING)
            # What was waited for at the step's beginning is no work of it.
            self.member.steps.entered_ns = time.monotonic_ns() - self._held_ns
            self._held_ns = 0
            self._complete_step()
        elif not step.is_held:
            self._collectives.launch_open()

    # ---- a newcomer's buckets --------------------------------------------------------------------

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
                scratch = self._step.scratch(label, packed)
                parameters, of = told.parameters_of(i), told.offsets(i)
                self._add(Part(label, packed, scratch, "all_reduce", parameters, of))
            self._launch_buckets(last=True)
        return future

    def cut_anew(self) -> None:
        """DDP was built anew, here and on all other members, so all cut their buckets anew."""
        self._layouts.look_again()
        self._told = None
        self._cut_is_fresh = True
        if self.feeds is not None:
            self.feeds.layout = []  # nobody comes in before the order is known that DDP settles on

    def _note_layout(self) -> None:
        """Names in the step's buckets, for newcomers; not of a step after which DDP orders them anew."""
        if self.feeds is None or not self.feeds.any:
            return
        if self._told is not None:
            self.feeds.layout = self._told.layout
        elif not self._cut_is_fresh:
            names, buckets = self.param_names, self._step.buckets
            self.feeds.layout = [[names[id(p)] for p in part.parameters()] for part in buckets]

    # ---- steps -----------------------------------------------------------------------------------

    def end_skipped(self) -> None:
        """Before a forward: the optimizer did not step on the last decided step, and will not."""
        if self._step.is_decided:
            self.end_step()

    def begin_forward(self) -> None:
        """A forward of a step: serve what the agent asks; with the first, the step's first rows."""
        self.end_skipped()
        if not self._step.has_begun:
            if self.feeds is not None and self._apart.is_clear:
                self.feeds.boundary()
            self._keep_base()
        self._walking.answer_owed()
        self._walking.serve_pending()
        self._walking.hold_in_eventual()
        if not self._step.has_begun:
            self._keep_base()  # a walk that was served just now may have parted the cohorts
            self._step.has_begun = True
            self.member.begin_step()
            self.member.tell_progress(FORWARD)

    def _keep_base(self) -> None:
        self._apart.ensure_base()
        self._channel.open(self.member.view)

    @property
    def decided_now(self) -> bool:
        """A step is decided and the optimizer has not stepped yet."""
        return self._step.is_decided

    def _complete_step(self) -> None:
        step, began = self._step, time.monotonic()
        while not step.is_decided:
            if not self._layouts.agree(step.parts):
                step.is_held = True
                message = self._waiting.next_message()  # None: somebody is late, so ask again
            else:
                step.is_held = False
                self._collectives.launch_open()
                message = self._waiting.until_done(step.parts)
                if message is None:
                    self._walking.decide()
            if message is not None:
                self._walking.walk(message)
        self._waiting.usual_s = time.monotonic() - began
        self._hand_over()

    def _hand_over(self) -> None:
        """Give DDP what was reduced."""
        step = self._step
        self.unreduced = False
        for part in step.parts:
            if part.is_fold:
                continue
            if part.label == "buffers":
                unpack(part.scratch, self.parts.buffers())
            elif part.label == "used":
                self.parts.take_used(part)
            else:
                part.future.set_result(part.scratch)
        self._note_layout()
        if self._told is not None and self._told.resolve([p.scratch for p in step.buckets]):
            self._told = None
        self._cut_is_fresh = False
        step.hand_over()

    def end_step(self) -> None:
        """After the optimizer's step."""
        step = self._step
        if step.is_decided:
            self.member.check_fence()
            step.is_decided = step.has_begun = False
            self.fold_pending()  # where the optimizer did not step
            self._channel.end_step()
            self._apart.look_at_optimizer()
            self.member.end_step(step.done_ns)
            step.done_ns = 0
            # A walk takes digests, and the user's loop may still write to what this step has made; so it
            # is served when the next one begins, as a newcomer's log of this one is whole only then.
            # Apart there are no digests, and the others may wait for the answer.
            if self.member.is_apart:
                self._walking.answer_owed()
                self._walking.serve_pending()
                self._held_ns = self._walking.wait_for_room()
                self._walking.hold_in_eventual()

    def fold_pending(self) -> None:
        """The optimizer is about to step: parameters become those that all have, after a levelling."""
        drift = self._apart.fold_pending()
        if drift is not None:
            self.member.note_drift(*drift)

    # ---- the view --------------------------------------------------------------------------------

    def enter_first_view(self) -> None:
        """Form the communicator of the view that the job starts with."""
        self._walking.enter_first_view()

    def enter_joined(self, view: View) -> None:
        """A newcomer's first view: commit it and form its communicator."""
        self._walking.enter_joined(view)

    @in_turn
    def leave(self) -> None:
        """Say that this rank's job is done and serve the walk until a view without it is committed."""
        if self.member.is_apart:
            self.end_skipped()  # else it would owe its answers to a step that nobody finishes
        self._walking.leave()
