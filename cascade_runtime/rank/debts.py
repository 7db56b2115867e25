"""What walks relaxed: debts opened by the lowest member, and closed when the agents order it."""

from __future__ import annotations

from cascade_runtime.agent.protocol import DebtInfo, DebtNote, Settle, View
from cascade_runtime.agent.reconcile import owed_by
from cascade_runtime.rank.link import AgentLink
from cascade_runtime.recorder import Recorder
from cascade_runtime.vocabulary.events import Debt, Objects
from cascade_runtime.vocabulary.identity import Actor, Clock


class Debts:
    """The debts of one member, who has opened them."""

    def __init__(self, actor: Actor, recorder: Recorder, link: AgentLink) -> None:
        self._actor = actor
        self._recorder = recorder
        self._link = link
        self.standing: dict[str, DebtInfo] = {}
        """Opened here and not closed, by id."""
        self._closed: list[str] = []

    def open(self, view: View, frontier: Clock) -> None:
        """What this walk relaxed, if it is on this member, the lowest, to say so."""
        if self._actor == min(view.members):
            self._open(owed_by(view), frontier)

    def _open(self, debts: list[DebtInfo], frontier: Clock) -> None:
        for debt in debts:
            if debt.debt_id in self.standing or debt.debt_id in self._closed:
                continue  # ordered again, because the note below was lost with an agent
            if debt.object is not None:
                self._recorder.row(Objects, object=debt.object, kind="shard", update_kind="assign")
            self._row("opened", debt, clock=frontier.dots())
            self.standing[debt.debt_id] = debt
        if debts:
            self._link.send(DebtNote(self._actor, opened=debts))

    def settle(self, order: Settle, frontier: Clock) -> None:
        """Close debts: settled where all members agree by digest, written off where not.

        Before that, open those that nobody has opened.
        """
        self._open(order.unopened, frontier)
        for debt in order.debts:
            if debt.debt_id in self._closed:
                continue
            self._closed.append(debt.debt_id)
            if debt.object is not None and debt.object.startswith("data/"):
                # The dead rank's unread range: nobody reads it again in this job.
                self._row("written_off", debt, resolution="discarded")
            elif order.equal:
                self._row(
                    "settled",
                    debt,
                    frontier=frontier.dots(),
                    resolved=debt.in_flight,
                    resolution="discarded" if debt.voided else "applied",
                    drift_l2=0.0,
                    drift_max=0.0,
                )
            else:
                self._row("written_off", debt)
            self.standing.pop(debt.debt_id, None)
        if order.debts:
            self._link.send(DebtNote(self._actor, closed=[d.debt_id for d in order.debts]))

    def tell_again(self) -> None:
        """The agent was away and may have missed it."""
        if self.standing or self._closed:
            debts = list(self.standing.values())
            self._link.send(DebtNote(self._actor, opened=debts, closed=self._closed))

    def _row(self, action: str, debt: DebtInfo, **fields: object) -> None:
        self._recorder.row(
            Debt,
            action=action,
            debt_id=debt.debt_id,
            relaxed=debt.relaxed,
            new_epoch=debt.new_epoch,
            object=debt.object,
            in_flight=debt.in_flight,
            **fields,
        )
