"""What the leading agent wants next, and why: pending triggers, leaving ranks, settling, climbing.

Every agent keeps a Judge from the same broadcast messages, so that any of them can lead. The clock
is passed in.
"""

from __future__ import annotations

from collections.abc import Sequence

from cascade_runtime.agent.plan import judged
from cascade_runtime.agent.protocol import DebtInfo, Settle, SettleOrder, Trigger, View
from cascade_runtime.agent.reconcile import Reconciler
from cascade_runtime.agent.rows import AgentRows
from cascade_runtime.vocabulary.fault import RECOVERIES, FaultEvent
from cascade_runtime.vocabulary.identity import Actor
from cascade_runtime.vocabulary.policy import Policy
from cascade_runtime.vocabulary.regime import Regime

ORDER_AGAIN_S = 1.0
"""An order to settle that has not been carried out is given again after this."""

OPEN_PATIENCE_S = 5.0
"""So long the job is held where it is for debts to be opened that their opener did not live to open."""

LEVEL_PATIENCE_S = 30.0
"""So long a leaving waits for those that leave to be level, where cohorts were made one for it."""


STUCK_AGAIN_S = 0.5
MAX_STUCK_AGAIN_S = 16.0
"""Walks for a rank that is stuck, one after the other: each waits twice as long as the one before."""

STUCK_NO_MORE_S = 60.0
"""A view that stood so long was no failure."""


class Judge:
    """Pending fault events and what they, the leaving ranks and the debts ask for."""

    def __init__(self, policy: Policy, rows: AgentRows, reconciler: Reconciler) -> None:
        self.policy = policy
        self.reconciler = reconciler
        self.triggers: list[Trigger] = []
        self.standing: list[Trigger] = []
        self.leaving: set[Actor] = set()
        self._rows = rows
        self._view: View | None = None
        self._log: Sequence[View] = []
        self._installed_at = 0.0
        self._num_stuck = 0
        """Views in a row that answer a stuck rank."""
        self._told_unequal = False
        self._stood: set[str] = set()  # fault events that went on in this view
        self._observed: list[Trigger] = []
        self._unopened_since: float | None = None
        self._ordered: dict[tuple[str, str], float] = {}

    def install(self, view: View, log: Sequence[View], now: float) -> None:
        """A view was committed at ``now`` (seconds): what it answers is pending no more."""
        stuck = any(_is_stuck(t) for t in self.triggers) and not self.deaths
        stood = now - self._installed_at >= STUCK_NO_MORE_S
        self._num_stuck = 0 if not stuck else 1 if stood else self._num_stuck + 1
        self._view = view
        self._log = log
        self._installed_at = now
        self._told_unequal = False
        self._stood.clear()
        self.reconciler.install(view)
        self.triggers = [t for t in self.triggers if not _answered(t, view)]
        # Begun while this view was under way, or made void by it: it still stands.
        for trigger in self.standing:
            moves = view.regime is Regime.STRONG or self._may_part(trigger)
            if moves and trigger.evidence and self.consider(trigger):
                self.add(trigger)

    def add(self, trigger: Trigger) -> None:
        """A fault event, told by any agent; told twice it counts once."""
        if trigger.fault is None and trigger.subject is not None and not self._is_parted():
            return  # it keeps the others' pace, and steps with them already
        if trigger not in self.triggers and not judged(trigger, self._log):
            if _continuing(trigger):  # whatever calm there was is over
                self.triggers = [t for t in self.triggers if t.fault not in RECOVERIES]
            self.triggers.append(trigger)

    def _may_part(self, trigger: Trigger) -> bool:
        """A straggler in CAUSAL that steps with the others is set apart in CAUSAL."""
        return (
            trigger.fault is FaultEvent.RANK_SKEW_HIGH
            and self.policy.cohorts.split
            and self._view is not None
            and self._view.regime is Regime.CAUSAL
            and trigger.subject in self._view.members
            and not self._is_parted()
        )

    def _is_parted(self) -> bool:
        return self._view is not None and len(self._view.cohorts) > 1

    def stands(self, triggers: list[Trigger]) -> None:
        """Fault events that go on: nobody climbs to STRONG while they do, nor just after."""
        self.standing = triggers
        if triggers:
            self._stood.update(t.fault.value for t in triggers if t.fault is not None)
            self.reconciler.not_calm()

    def consider(self, trigger: Trigger, observe: bool = False) -> bool:
        """A detector found a fault event: whether a walk is to be asked for; else it is decided here.

        In observe mode, and where the policy has no move, the decision is all that follows from it.
        """
        assert self._view is not None
        assert trigger.fault is not None
        if judged(trigger, self._log):
            return False
        regime = self._view.regime
        to, changed, reason = self.policy.decide(regime, trigger.fault)
        if self._may_part(trigger) and not observe:
            return True
        if changed and not observe:
            if trigger.fault is not FaultEvent.STATE_CORRUPTION:
                return True
            # Below CAUSAL members hold until they are equal again, and nothing could make them so.
            to, changed = regime, False
            reason = f"no member can be resynchronised yet, so the job goes on in {regime}"
        self._rows.decision(trigger, regime, to, changed, reason)
        return False

    def stood_s(self, now: float) -> float:
        """How long (s) the view has stood."""
        return now - self._installed_at

    @property
    def deaths(self) -> bool:
        """A death waits for its walk."""
        return any(t.fault is FaultEvent.GPU_FAIL_STOP for t in self.triggers)

    def alive(self) -> set[Actor]:
        """Members whose death is not pending."""
        assert self._view is not None
        dead = {t.subject for t in self.triggers if t.fault is FaultEvent.GPU_FAIL_STOP}
        return {m for m in self._view.members if m not in dead}

    def wants_walk(self, now: float) -> tuple[bool, Settle | None]:
        """Whether a walk is wanted, and the debts to be closed before it (enforce mode)."""
        assert self._view is not None
        if self.deaths:
            return True, None
        if any(t.fault is None and not _is_stuck(t) for t in self.triggers):
            return True, None  # a rank that steps by itself keeps the others' pace
        if any(_is_stuck(t) for t in self.triggers):
            return now - self._installed_at >= self._stuck_pause(), None
        if self._holds_for_debts(now):
            return False, None
        if self.leaving & set(self._view.members):
            return self._leave(now)
        if any(_continuing(t) for t in self.triggers):
            return now - self._installed_at >= self.policy.walk.min_interval_ms / 1000, None
        return self._move(now)

    def _stuck_pause(self) -> float:
        """How long (s) a view stands before a rank that is stuck in it is walked for."""
        if self._num_stuck == 0:
            return 0.0
        return float(min(MAX_STUCK_AGAIN_S, STUCK_AGAIN_S * 2.0 ** (self._num_stuck - 1)))

    def wants_opened(self, now: float) -> SettleOrder | None:
        """Debts that a member is to open, since whoever should have was lost (enforce mode)."""
        found = self.reconciler.unopened(self._log)
        if found is None or self.deaths:
            return None
        opener, debts = found
        due = self._due(now, "open", debts)
        return SettleOrder(opener, Settle([], equal=False, unopened=due)) if due else None

    def _holds_for_debts(self, now: float) -> bool:
        """Nothing may pass for settled before it is on record; but nobody waits for that for ever."""
        if self.reconciler.unopened(self._log) is None:
            self._unopened_since = None
            return False
        if self._unopened_since is None:
            self._unopened_since = now
        return now - self._unopened_since < OPEN_PATIENCE_S

    def wants_last_view(self) -> bool:
        """Observe mode walks only once, when everybody alive has finished."""
        return bool(self.leaving) and self.leaving >= self.alive()

    def observe(self) -> None:
        """Observe mode: say what would have been decided, once a fault event."""
        assert self._view is not None
        for trigger in self.triggers:
            if trigger.fault is not None and trigger not in self._observed:
                self._observed.append(trigger)
                regime = self._view.regime
                decision = self.policy.decide(regime, trigger.fault)
                self._rows.decision(trigger, regime, decision.to, decision.changed, decision.reason)

    def _leave(self, now: float) -> tuple[bool, Settle | None]:
        assert self._view is not None
        if self._view.optim_from is not None and now - self._installed_at < LEVEL_PATIENCE_S:
            # They were made one cohort first. A walk that begins before they are level undoes that.
            level = {report.actor for report in self.reconciler.reports()}
            if not self.leaving & set(self._view.members) <= level:
                return False, None
        if self.leaving >= set(self._view.members) and self.reconciler.open:
            # Everybody is done: settle what stands open before the last view, or write it off.
            equal = self.reconciler.equal()
            return False, None if equal is None else self._settle(now, equal, everything=True)
        return True, None

    def _move(self, now: float) -> tuple[bool, Settle | None]:
        view, reconciler = self._view, self.reconciler
        assert view is not None
        if view.regime is Regime.STRONG:
            return False, None
        if any(t.fault in RECOVERIES for t in self.triggers):
            return True, None
        if view.coming:
            return False, None  # what was relaxed for newcomers stands open until they are level
        equal = reconciler.equal()
        if equal is not True:
            if equal is False and not self._told_unequal:
                self._told_unequal = True
                self._stay(view, "members' digests differ, so nothing can be settled")
            return False, None
        if (settle := self._settle(now, equal=True)) is not None:
            return False, settle
        if now - self._installed_at < self.policy.walk.min_interval_ms / 1000:
            return False, None
        if view.regime is Regime.CAUSAL:
            return self._stable(), None
        return self._recovered(now), None

    def _stable(self) -> bool:
        rounds, needed = self.reconciler.calm_rounds(), self.policy.walk.stable_rounds
        if rounds < needed or self.reconciler.open or self.standing:
            return False
        evidence = self._rows.calm(FaultEvent.STABLE_SYNC, "calm_rounds", rounds, needed, "steps")
        since = (
            f"after {' and '.join(sorted(self._stood))}" if self._stood else "without a fault event"
        )
        reason = f"{rounds} steps {since}, clocks and digests equal"
        self.add(Trigger(FaultEvent.STABLE_SYNC, None, [evidence], reason))
        return True

    def _recovered(self, now: float) -> bool:
        quiet, needed = now - self._installed_at, self.policy.walk.recovery_quiet_s
        if quiet < needed or Regime.CAUSAL in self.reconciler.relaxed():
            return False
        evidence = self._rows.calm(FaultEvent.RECOVERY_DETECTED, "quiet", quiet, needed, "s")
        reason = f"every live member answered and nothing happened for {quiet:.1f} s"
        self.add(Trigger(FaultEvent.RECOVERY_DETECTED, None, [evidence], reason))
        return True

    def _stay(self, view: View, reason: str) -> None:
        causal = view.regime is Regime.CAUSAL
        fault = FaultEvent.STABLE_SYNC if causal else FaultEvent.RECOVERY_DETECTED
        self._rows.decision(
            Trigger(fault, None, [], reason), view.regime, view.regime, False, reason
        )

    def _settle(self, now: float, equal: bool, everything: bool = False) -> Settle | None:
        """Debts to close now; each is ordered again only when the order was not carried out."""
        due = self._due(now, "close", self.reconciler.due(everything))
        return Settle(due, equal) if due else None

    def _due(self, now: float, what: str, debts: list[DebtInfo]) -> list[DebtInfo]:
        never = -ORDER_AGAIN_S
        due = [
            debt
            for debt in debts
            if now - self._ordered.get((what, debt.debt_id), never) >= ORDER_AGAIN_S
        ]
        self._ordered.update(((what, debt.debt_id), now) for debt in due)
        return due


def _is_stuck(trigger: Trigger) -> bool:
    """A rank says that its view does not go on, and nobody knows why."""
    return trigger.fault is None and trigger.subject is None


def _continuing(trigger: Trigger) -> bool:
    """A fault event that goes on for a while: no death, no recovery, nobody stuck."""
    once = (None, FaultEvent.GPU_FAIL_STOP, *RECOVERIES)
    return trigger.fault not in once


def _answered(trigger: Trigger, view: View) -> bool:
    """The view answers this trigger, or has made it void."""
    return judged(trigger, [view]) or trigger.fault is not FaultEvent.GPU_FAIL_STOP
