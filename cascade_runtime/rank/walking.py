"""A rank's side of the walk: it halts, says where it stands, and goes on in the view that was committed."""

from __future__ import annotations

import time

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
from cascade_runtime.progress import BACKWARD, BETWEEN, HALTED, LEAVING, WAITING
from cascade_runtime.rank.apart import Apart
from cascade_runtime.rank.aside import sets_apart
from cascade_runtime.rank.channel import Channel
from cascade_runtime.rank.collectives import Collectives
from cascade_runtime.rank.entering import Entering
from cascade_runtime.rank.feed import Feeds
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
        apart: Apart,
        channel: Channel,
    ) -> None:
        self._member = member
        self._link = link
        self._step = step
        self._collectives = collectives
        self._layouts = layouts
        self._waiting = waiting
        self.has_left = False
        """A view without this member is committed."""
        self._apart = apart
        self._channel = channel
        self._entering = Entering(member, link, step, collectives, layouts, waiting, apart, channel)
        self._ask = 0
        self._owes_answer = False
        self._is_aside = False
        """A walk was answered while the script was in code of its own, and is not over."""

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
        self._finish_aside()
        self._link.pump()
        while (message := self._waiting.next_message()) is not None:
            self.walk(message)

    def serve_aside(self) -> None:
        """While the script is in code of its own: answer the walk that sets this member apart.

        Whatever else the agent has said stays in the inbox. Not where the optimizer is stepping, nor
        where this member's stand is more than a place in the loop.
        """
        member, step, inbox = self._member, self._step, self._link.inbox
        self._link.pump()
        if step.is_decided or member.is_apart or member.leaving or self.has_left:
            return
        if self._feeds is not None and self._feeds.any:
            return
        while inbox:
            message = inbox[0]
            if isinstance(message, Halt) and message.epoch == member.view.epoch + 1:
                self._ask, self._is_aside = message.ask, True
                self._tell_stand()
            elif isinstance(message, Proposed) and self._is_aside:
                if not sets_apart(message.view, member.actor):
                    return
                member.acknowledge(message)
            else:
                return
            inbox.popleft()

    def _finish_aside(self) -> None:
        """The script is in our code again, and a walk was answered: it stands until that is over."""
        if self._is_aside:
            self._is_aside = False
            self.walk(self._link.receive())

    def answer_owed(self) -> None:
        """Answer the drain whose step was still to be finished and logged."""
        if not self._entering.finish():
            self.walk(self._link.receive())
        if self._owes_answer:
            self._owes_answer = False
            self._answer()
            self.walk(self._link.receive())

    def wait_for_room(self) -> int:
        """Not too far ahead of what other cohorts have folded; the walk is served meanwhile.

        Just after a step, where what comes meanwhile can be folded. Answers how long (ns) that was.
        """
        if not self._channel.must_wait:
            return 0
        began_ns = time.monotonic_ns()
        self._member.tell_progress(WAITING)
        while (message := self._waiting.for_room(self._channel)) is not None:
            self.walk(message)
        self._member.tell_progress(BETWEEN)  # from here on it is the one that is waited for
        return time.monotonic_ns() - began_ns

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
        self._apart.ensure_base()
        self.answer_owed()
        self._finish_aside()
        self._entering.fold_if_leaving()
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
        if not self._entering.enter():
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
                    if self._entering.must_finish:
                        self._owes_answer = True
                        return
                    self._answer()
                case Drain(step=decided, ask=ask):
                    self._ask = ask
                    message = self._drain(decided)
                    if message is not None:
                        continue
                    if (not step.is_handed_over and self.is_logging) or self._entering.must_finish:
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
                        if (view.source is not None or view.cuts) and not self._entering.enter():
                            message = self._link.receive()
                            continue
                        if not step.is_handed_over:
                            return  # rolled forward: the step is finished first, then held
                        member.reconcile()
                    elif self._entering.enter():
                        return
                case _:
                    pass
            message = self._link.receive()

    def _tell_stand(self) -> None:
        member, step = self._member, self._step
        launched_all = bool(step.parts) and all(p.work is not None for p in step.parts)
        broken = any(p.failed for p in step.parts)
        self._link.send(Halted(member.facts(launched_all, broken), self._ask))

    def _answer(self) -> None:
        member, step = self._member, self._step
        # Not where it is answered aside: there the script is still on its way, which others may come
        # to wait for, and a rank whose word says that it has halted is never named as slow.
        member.tell_progress(HALTED)
        self._tell_stand()
        # After the answer, so that the agents' round trip hides it. Not between a step's decision and
        # the optimizer's step: the frontier covers the step there and the parameters do not yet.
        if step.is_handed_over and self._apart.is_clear:
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
        self._channel.decided(step.parts)
        self._member.decide()
        step.is_decided = True
        step.done_ns = max(p.complete_ns for p in step.parts)
        self._member.tell_progress(BACKWARD)

    def _install(self, view: View) -> None:
        member = self._member
        self._channel.close(self._step)
        self._collectives.abandon()
        self._waiting.rows.end()
        if member.actor not in view.members and not member.leaving:
            member.on_left_behind(f"was out of reach for too long ({view.reason})")
        member.commit(view)
        self._apart.committed(view, self._step.has_begun and not self._step.is_decided)
        if member.actor not in view.members:
            self.has_left = True
            return
        if self._layouts.admit(view):
            self._step.is_held = True
        if self._feeds is not None:
            if len(view.cohorts) > 1:
                self._feeds.let_go()
            self._feeds.committed(view)
