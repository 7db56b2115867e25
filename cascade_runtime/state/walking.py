"""A process without a training step, as a member of the job: it serves the walk and opens debts.

It launches no collective and applies nothing by steps, so it halts at once, and always stands at 0.
What it holds is shared state, whose causes and effects no walk changes (decision 0032).
"""

from __future__ import annotations

import time
from collections.abc import Callable

from cascade_runtime.agent.protocol import (
    Acked,
    Commit,
    Drain,
    Facts,
    Halt,
    Halted,
    Leave,
    Level,
    Message,
    Proposed,
    Reconciled,
    Round,
    Settle,
    View,
)
from cascade_runtime.rank.debts import Debts
from cascade_runtime.rank.link import AgentLink
from cascade_runtime.rank.view_rows import ViewRows
from cascade_runtime.recorder import Recorder
from cascade_runtime.vocabulary.identity import Actor, Clock
from cascade_runtime.vocabulary.regime import Regime

ROUND_S = 0.1
"""Below STRONG so often does such a member say that it goes on, as others do after a step."""

_HOLDS = "no parameters"
"""In place of their digest: members that hold none are equal."""


class PlainMember:
    """One process in the job's view.

    Args:
        actor: who it is.
        view: the newest committed view, which a newcomer is not in yet.
        recorder: for its rows.
        link: to its agent.
        on_left_behind: called with the reason when a view without it was committed.
    """

    def __init__(
        self,
        actor: Actor,
        view: View,
        recorder: Recorder,
        link: AgentLink,
        on_left_behind: Callable[[str], None],
    ) -> None:
        self.actor = actor
        self.view = view
        self.leaving = False
        self.has_left = False
        """A view without it is committed after it said LEAVE."""
        self._recorder = recorder
        self._link = link
        self._on_left_behind = on_left_behind
        self._rows = ViewRows(recorder)
        self._debts = Debts(actor, recorder, link)
        self._acknowledged: tuple[int, View] | None = None
        self._rounds = 0
        self._next_round = 0.0
        self._reconciled = -1
        link.epoch = view.epoch
        recorder.set_view(view.epoch, view.regime)
        if self.is_member:
            self._rows.membership(view)
        else:
            self._ask_in()

    @property
    def is_member(self) -> bool:
        """It is in the view; a process that comes back is not, until a walk has added it."""
        return self.actor in self.view.members

    def serve(self, message: Message) -> None:
        """Do what the agent asks."""
        match message:
            case Halt(ask=ask) | Drain(ask=ask):
                facts = Facts(decided=0, leaving=self.leaving)
                self._link.send(Halted(facts, ask))
            case Proposed(view=view, ballot=ballot) if view.epoch == self.view.epoch + 1:
                if self._acknowledged != (view.epoch, view):
                    self._acknowledged = (view.epoch, view)
                    self._rows.transition("acknowledged", view)
                self._link.send(Acked(view.epoch, ballot))
            case Settle():
                self._debts.settle(message, Clock())
            case Commit(view=view) if view.epoch == self.view.epoch + 1:
                self._commit(view)
            case _:
                pass  # said again by somebody who had not heard

    def look(self) -> None:
        """Called often: below STRONG, say that this member goes on."""
        now = time.monotonic()
        if self.view.regime is Regime.STRONG or not self.is_member or now < self._next_round:
            return
        self._next_round = now + ROUND_S
        if self._reconciled != self.view.epoch:
            self._reconciled = self.view.epoch
            self._reconcile()
        if self.view.regime is Regime.CAUSAL:
            self._rounds += 1
            self._link.send(Round(self.actor, self.view.epoch, self._rounds))

    def leave(self) -> None:
        """Say that this process is done."""
        self.leaving = True
        self._link.send(Leave(self.actor, 0))

    def tell_again(self) -> None:
        """The agent was away and may have missed it."""
        self._debts.tell_again()
        self._reconciled = -1
        if self.leaving:
            self._link.send(Leave(self.actor, 0))
        if not self.is_member:
            self._ask_in()

    def _reconcile(self) -> None:
        self._link.send(Reconciled(self.actor, self.view.epoch, _HOLDS, []))

    def _ask_in(self) -> None:
        """A newcomer takes no state from anybody, so it is level at once."""
        if self.view.members:
            source = min(self.view.members)
            self._link.send(Level(self.actor, source, self.view.epoch, 0))

    def _commit(self, view: View) -> None:
        was_member = self.is_member
        self.view = view
        self._link.epoch = view.epoch
        if not (was_member or self.is_member):
            self._ask_in()
            return
        if not self.is_member and not self.leaving:
            self._on_left_behind(f"was out of reach for too long ({view.reason})")
        self._recorder.set_view(view.epoch, view.regime)
        self._rows.transition("committed", view)
        if view.joined or view.departed:
            self._rows.membership(view)
        if self.is_member:
            self._debts.open(view, Clock())
        else:
            self.has_left = True
