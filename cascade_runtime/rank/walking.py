"""A rank's side of the walk: it halts, says where it stands, and goes on in the view that was committed."""

from __future__ import annotations

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
    View,
)
from cascade_runtime.progress import BACKWARD, HALTED, LEAVING
from cascade_runtime.rank.collectives import Collectives
from cascade_runtime.rank.feed import Feeds
from cascade_runtime.rank.groups import Superseded
from cascade_runtime.rank.layouts import Layouts
from cascade_runtime.rank.link import AgentLink
from cascade_runtime.rank.member import Member
from cascade_runtime.rank.open_step import OpenStep
from cascade_runtime.rank.waiting import Waiting
from cascade_runtime.vocabulary.regime import Regime


class Walking:
    """Serves the walk for one member wherever its job waits."""

    def __init__(
        self,
        member: Member,
        link: AgentLink,
        step: OpenStep,
        collectives: Collectives,
        layouts: Layouts,
        waiting: Waiting,
    ) -> None:
        self._member = member
        self._link = link
        self._step = step
        self._collectives = collectives
        self._layouts = layouts
        self._waiting = waiting
        self.has_left = False
        """A view without this member is committed."""
        self._ask = 0
        self._owes_answer = False

    @property
    def _feeds(self) -> Feeds | None:
        return self._waiting.feeds

    @property
    def is_logging(self) -> bool:
        """A newcomer is served: this member's stand is at a step's beginning, once it is logged."""
        return self._feeds is not None and self._feeds.is_logging

    # ---- where the job is in our hands -----------------------------------------------------------

    def serve_pending(self) -> None:
        """Do what the agent asks, if it asks for something."""
        self._link.pump()
        while (message := self._waiting.next_message()) is not None:
            self.walk(message)

    def answer_owed(self) -> None:
        """Answer the drain whose step was still to be finished and logged."""
        if self._owes_answer:
            self._owes_answer = False
            self._answer()
            self.walk(self._link.receive())

    def hold_in_eventual(self) -> None:
        """Nothing is relaxed that could not be repaid: members hold until RECOVERY_DETECTED."""
        if self._member.view.regime is Regime.EVENTUAL and not self.has_left:
            self._member.reconcile()
            self.walk(self._link.receive())

    def leave(self) -> None:
        """Say that this rank's job is done and serve the walk until a view without it is committed."""
        member = self._member
        member.leaving = True
        if self._feeds is not None:
            self._feeds.stop()
        self.answer_owed()
        member.tell_progress(LEAVING)
        self._link.send(Leave(member.actor, member.decided))
        while not self.has_left:
            if not member.strong:
                member.reconcile()  # what stands open is settled before the last view
            message = self._link.receive()
            if isinstance(message, Settle):
                member.settle(message)
            elif message is not None:
                self.walk(message)

    def enter_first_view(self) -> None:
        """Form the communicator of the view that the job starts with."""
        self._member.membership_row()
        if not self._enter():
            message = self._link.receive()
            if message is not None:
                self.walk(message)

    def enter_joined(self, view: View) -> None:
        """A newcomer's first view: commit it and form its communicator."""
        self.walk(Commit(view))

    # ---- the walk --------------------------------------------------------------------------------

    def walk(self, message: Message | None) -> None:
        """Serve the walk from ``message`` on, until this member may step again (or has left)."""
        member, step = self._member, self._step
        while True:
            match message:
                case Halt(ask=ask):
                    self._ask = ask
                    self._answer()
                case Drain(step=decided, ask=ask):
                    self._ask = ask
                    message = self._drain(decided)
                    if message is not None:
                        continue
                    if not step.is_handed_over and self.is_logging:
                        self._owes_answer = True
                        return
                    self._answer()
                case Proposed():
                    member.acknowledge(message)
                case Settle():
                    member.settle(message)
                case Serve() if self._feeds is not None and not member.leaving:
                    self._feeds.request(message)
                case Commit(view=view) if view.epoch == member.view.epoch + 1:
                    self._install(view)
                    if self.has_left:
                        return
                    if view.regime is Regime.EVENTUAL:
                        if view.source is not None and not self._enter():
                            message = self._link.receive()
                            continue
                        if not step.is_handed_over:
                            return  # rolled forward: the step is finished first, then held
                        member.reconcile()
                    elif self._enter():
                        return
                case _:
                    pass
            message = self._link.receive()

    def _answer(self) -> None:
        member, step = self._member, self._step
        member.tell_progress(HALTED)
        launched_all = bool(step.parts) and all(p.work is not None for p in step.parts)
        broken = any(p.failed for p in step.parts)
        self._link.send(Halted(member.facts(launched_all, broken), self._ask))
        # After the answer, so that the agents' round trip hides it. Not between a step's decision and
        # the optimizer's step: the frontier covers the step there and the parameters do not yet.
        if step.is_handed_over:
            member.digest_cut(step_open=step.has_begun)

    def _drain(self, decided: int) -> Message | None:
        """Nobody died and others decided this step: finish it on the old group."""
        if self._member.decided < decided and self._step.parts:
            message = self._waiting.until_done(self._step.parts, or_failed=True)
            if message is not None:
                return message
            if all(p.done for p in self._step.parts):
                self.decide()
        return None

    def decide(self) -> None:
        """The open step's last bucket is done: rows, and the step counts."""
        step = self._step
        self._collectives.done_rows(step.parts)
        self._layouts.decide(step.parts)
        self._member.decide()
        step.is_decided = True
        step.done_ns = max(p.complete_ns for p in step.parts)
        self._member.tell_progress(BACKWARD)

    def _install(self, view: View) -> None:
        member = self._member
        self._collectives.abandon()
        self._waiting.rows.end()
        if member.actor not in view.members and not member.leaving:
            member.on_left_behind(f"was out of reach for too long ({view.reason})")
        member.commit(view)
        if member.actor not in view.members:
            self.has_left = True
            return
        if view.joined:
            self._layouts.admit(view)
            self._step.is_held = True
        if self._feeds is not None:
            self._feeds.committed(view)

    def _enter(self) -> bool:
        """Form the new view's group, roll members forward, launch the open step again.

        False when another walk has begun meanwhile; its messages are in the inbox.
        """
        view, step = self._member.view, self._step
        try:
            self._collectives.form()
        except Superseded as why:
            self._link.pump()
            if not self._link.inbox:
                self._waiting.say_stuck(str(why))
            return False
        if view.source is not None and not self._roll_forward(view):
            return False
        if not step.is_decided and view.regime is not Regime.EVENTUAL:
            if step.has_all:
                # The author may be another now, or its dots were voided: issue before the launch.
                self._member.issue()
            if not step.is_held:
                self._collectives.launch_open()
        return True

    def _roll_forward(self, view: View) -> bool:
        """Members one decided step behind take the buckets that the others kept."""
        assert view.source is not None
        step = self._step
        behind = self._member.decided < view.cut_step
        parts = step.parts if behind else step.last_decided
        rolled = self._collectives.broadcast_kept(parts, view.source)
        message = self._waiting.until_done(rolled, of_step=False)
        if message is not None:
            self._link.inbox.appendleft(message)
            return False
        self._collectives.done_rows(rolled, with_digests=False)
        if behind:
            self._layouts.decide(step.parts)
            self._member.decide(rolled=True)
            step.is_decided = True
        return True
