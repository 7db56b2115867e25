"""Whether the debts can be settled and the climb begun: pure bookkeeping of what members reported."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from cascade_runtime.agent.protocol import LOST, DebtInfo, DebtNote, Reconciled, Round, View
from cascade_runtime.vocabulary.identity import Actor
from cascade_runtime.vocabulary.regime import Regime


def owed_by(view: View) -> list[DebtInfo]:
    """The debts that a fall opens: a guarantee given up each, and the data of each member lost."""
    given_up = [r for r in (Regime.STRONG, Regime.CAUSAL) if view.regime < r <= view.from_regime]
    debts = [
        DebtInfo(
            debt_id=f"{view.epoch}/{relaxed.value.lower()}",
            relaxed=relaxed,
            new_epoch=view.epoch,
            object=None,
            in_flight=view.in_flight,
            voided=bool(view.voided),
        )
        for relaxed in given_up
    ]
    lost = view.departed if given_up and view.member_reason in LOST else []
    return debts + [
        DebtInfo(
            debt_id=f"{view.epoch}/data/{gone}",
            relaxed=given_up[0],
            new_epoch=view.epoch,
            object=f"data/{gone.rank}",
        )
        for gone in lost
    ]


class Reconciler:
    """What this epoch's members have reported so far.

    Every agent keeps one from the same broadcast messages, so any of them can take over.
    """

    def __init__(self, debts: Iterable[DebtInfo] = (), closed: Iterable[str] = ()) -> None:
        self.open: dict[str, DebtInfo] = {d.debt_id: d for d in debts}
        self.closed: set[str] = set(closed)
        self._epoch = -1
        self._members: list[Actor] = []
        self._regime = Regime.STRONG
        self._reports: dict[Actor, Reconciled] = {}
        self._rounds: dict[Actor, tuple[int, int]] = {}
        self._num_told = 0
        """Of the first so many views every debt was told of; that does not change any more."""

    def install(self, view: View) -> None:
        """A new epoch: reports of the old one say nothing about it."""
        self._epoch = view.epoch
        self._members = list(view.members)
        self._regime = view.regime
        self._reports.clear()
        self._rounds.clear()

    def on_round(self, message: Round) -> None:
        """A member decided a step."""
        if message.epoch == self._epoch:
            first, _ = self._rounds.get(message.actor, (message.step, 0))
            self._rounds[message.actor] = (first, message.step)

    def not_calm(self) -> None:
        """A fault goes on: calm rounds are counted from its end."""
        self._rounds.clear()

    def on_reconciled(self, message: Reconciled) -> None:
        """A member told the digest of everything it holds."""
        if message.epoch == self._epoch:
            self._reports[message.actor] = message

    def on_debt(self, note: DebtNote) -> None:
        """Debts were opened or closed."""
        for debt in note.opened:
            if (
                debt.debt_id not in self.closed
            ):  # told again by someone who has not heard of its end
                self.open[debt.debt_id] = debt
        for debt_id in note.closed:
            self.open.pop(debt_id, None)
            self.closed.add(debt_id)

    def unopened(self, log: Sequence[View]) -> tuple[Actor, list[DebtInfo]] | None:
        """Debts of a fall that nobody has told of, and who is to open them now.

        The lowest member of the fall's view opens them as it commits it. Where it was lost just then,
        another member of that view does it.

        Args:
            log: of all views, the same and longer each time.
        """
        now = set(log[-1].members) if log else set()
        for number in range(self._num_told, len(log)):
            view = log[number]
            debts = [
                d
                for d in owed_by(view)
                if d.debt_id not in self.open and d.debt_id not in self.closed
            ]
            if not debts and number == self._num_told:
                self._num_told += 1
            able = now.intersection(view.members)
            if debts and able and min(view.members) not in able:
                return min(able), debts
        return None

    def reports(self) -> list[Reconciled]:
        """What the members of this epoch have told so far."""
        return list(self._reports.values())

    def relaxed(self) -> list[Regime]:
        """``relaxed`` of every open debt."""
        return [d.relaxed for d in self.open.values()]

    def equal(self) -> bool | None:
        """True or False when every member has reported and all are equal or not; None before."""
        if not self._members or any(m not in self._reports for m in self._members):
            return None
        told = [(r.digest, r.frontier) for a, r in self._reports.items() if a in self._members]
        return all(t == told[0] for t in told)

    def due(self, everything: bool = False) -> list[DebtInfo]:
        """Open debts that the regime in force can settle (``everything``: at the end of the job)."""
        return [
            debt
            for debt in self.open.values()
            if everything or debt.relaxed.level == self._regime.level + 1
        ]

    def calm_rounds(self) -> int:
        """Steps that every member has decided in this epoch."""
        if not self._members or any(m not in self._rounds for m in self._members):
            return 0
        first = max(first for first, _ in self._rounds.values())
        last = min(last for _, last in self._rounds.values())
        return max(0, last - first + 1)
