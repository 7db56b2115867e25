"""Entering a committed view: groups, roll-forward, levelling, and the open step launched again."""

from __future__ import annotations

from cascade_runtime.agent.protocol import Cut
from cascade_runtime.rank.apart import Apart
from cascade_runtime.rank.channel import Channel
from cascade_runtime.rank.collectives import Collectives
from cascade_runtime.rank.groups import Superseded, leads_beyond
from cascade_runtime.rank.layouts import Layouts
from cascade_runtime.rank.levelling import Levelling
from cascade_runtime.rank.link import AgentLink
from cascade_runtime.rank.member import Member
from cascade_runtime.rank.open_step import OpenStep
from cascade_runtime.rank.waiting import Waiting
from cascade_runtime.vocabulary.identity import Actor
from cascade_runtime.vocabulary.regime import Regime


class Entering:
    """One member's way into each view."""

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
        self._apart = apart
        self._channel = channel
        self._levelling = Levelling(member, apart, collectives, waiting)
        self._is_owed = False
        """A step that was rolled forward is to be finished before this member can be made level."""

    @property
    def must_finish(self) -> bool:
        """While cohorts are apart, a decided step is in the sums only once the optimizer has stepped."""
        return self._member.is_apart and self._step.is_decided

    def finish(self) -> bool:
        """The rest of ``enter`` where it was owed, just after the step; answers as ``enter``."""
        if not self._is_owed:
            return True
        self._is_owed = False
        return self._enter_level()

    def enter(self) -> bool:
        """Form the new view's group, roll members forward, launch the open step again.

        False when another walk has begun meanwhile; its messages are in the inbox.
        """
        view, member = self._member.view, self._member
        self._is_owed = False
        if view.cuts:
            cut = view.cut_of(member.actor)
            if cut.source is not None:
                if not self._form_side(cut.members, f"cut/{view.epoch}/{view.cuts.index(cut)}"):
                    return False
                if not self._roll_forward(cut):
                    return False
            if self.must_finish:
                self._is_owed = True
                return True
        return self._enter_level()

    def _enter_level(self) -> bool:
        """The rest of it, once this member is at the cut of those that it stepped with."""
        view, step, member = self._member.view, self._step, self._member
        if view.levels or view.optim_from is not None:
            if not self._form_side(view.members, f"level/{view.epoch}"):
                return False
            message = self._levelling.run(view, step.has_begun)
            if message is not None:
                self._link.inbox.appendleft(message)
                return False
            self.fold_if_leaving()
        if not self._form_side(member.cohort, ""):
            return False
        cut = view.cut_of(member.actor)
        if not view.cuts and cut.source is not None and not self._roll_forward(cut):
            return False
        self._channel.open(view)
        if not step.is_decided and view.regime is not Regime.EVENTUAL:
            if step.has_all:
                step.parts += self._channel.parts(step)
                # The author may be another now, or its dots were voided: issue before the launch.
                member.issue()
                self._channel.issued()
            if not step.is_held:
                self._collectives.launch_open()
        return True

    def fold_if_leaving(self) -> None:
        """Who is done makes no step in which to fold what a levelling brought."""
        if self._member.leaving:
            drift = self._apart.fold_pending()
            if drift is not None:
                self._member.note_drift(*drift)

    def _form_side(self, members: list[Actor], label: str) -> bool:
        try:
            self._collectives.form_side(members, label)
        except Superseded as why:
            self._link.pump()
            if not any(leads_beyond(m, self._member.view.epoch) for m in self._link.inbox):
                self._waiting.say_stuck(str(why))
            return False
        return True

    def _roll_forward(self, cut: Cut) -> bool:
        """Members one decided step behind take the buckets that the others kept."""
        assert cut.source is not None
        step, member = self._step, self._member
        behind = member.actor in cut.behind and member.decided < cut.step
        kept = step.parts if behind else step.last_decided
        rolled = self._collectives.broadcast_kept([p for p in kept if not p.is_fold], cut.source)
        message = self._waiting.until_done(rolled, of_step=False)
        if message is not None:
            self._link.inbox.appendleft(message)
            return False
        self._collectives.done_rows(rolled, with_digests=False)
        if behind:
            self._layouts.decide(step.parts)
            member.decide(rolled=True)
            step.is_decided = True
        return True
