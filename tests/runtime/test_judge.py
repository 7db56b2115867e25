"""What the leading agent wants next, situation by situation; the clock is passed in."""

from __future__ import annotations

from typing import Any

import pytest

from cascade_runtime.agent.judge import (
    LEVEL_PATIENCE_S,
    OPEN_PATIENCE_S,
    ORDER_AGAIN_S,
    STUCK_NO_MORE_S,
    Judge,
)
from cascade_runtime.agent.protocol import DebtInfo, DebtNote, Reconciled, Round, Trigger, View
from cascade_runtime.agent.reconcile import Reconciler
from cascade_runtime.agent.rows import AgentRows
from cascade_runtime.vocabulary.events import Decisions, Health
from cascade_runtime.vocabulary.fault import FaultEvent
from cascade_runtime.vocabulary.identity import Actor, Dot, EventRef
from cascade_runtime.vocabulary.policy import CohortRules, load_policy
from cascade_runtime.vocabulary.regime import Regime
from tests.agent.facts import actors, death_of, told, view

S, C, E = Regime.STRONG, Regime.CAUSAL, Regime.EVENTUAL
POLICY = load_policy("default")
CALM = POLICY.walk.stable_rounds
QUIET = POLICY.walk.recovery_quiet_s
NOW = 100.0
INTERVAL = load_policy().walk.min_interval_ms / 1000
"""Seconds; every view below is installed then."""


class Rows:
    """Stands in for the agent's recorder."""

    def __init__(self) -> None:
        self.actor = Actor(9)
        self.rows: list[tuple[type, dict[str, Any]]] = []

    def row(self, table: type, **fields: Any) -> int:
        self.rows.append((table, fields))
        return len(self.rows) - 1

    def of(self, table: type) -> list[dict[str, Any]]:
        return [fields for kind, fields in self.rows if kind is table]


class Agent:
    """A judge with its reconciler, in a view of ranks 0 and 1."""

    def __init__(self, regime: Regime = S, debts: tuple[DebtInfo, ...] = ()) -> None:
        self.rows = Rows()
        self.reconciler = Reconciler(debts)
        self.judge = Judge(POLICY, AgentRows(self.rows), self.reconciler)  # type: ignore[arg-type]
        self.view = view(0, 1, regime=regime, epoch=1)
        self.install(self.view)

    def install(self, new: View, now: float = NOW) -> None:
        self.judge.install(new, [new], now)

    def report(self, *digests: str) -> Agent:
        for rank, digest in enumerate(digests):
            told_by = Reconciled(Actor(rank), self.view.epoch, digest, [Dot(0, 0, 3)])
            self.reconciler.on_reconciled(told_by)
        return self

    def rounds(self, number: int) -> Agent:
        for rank in (0, 1):
            for step in range(11, 11 + number):
                self.reconciler.on_round(Round(Actor(rank), self.view.epoch, step))
        return self

    def close(self, *debt_ids: str) -> None:
        self.reconciler.on_debt(DebtNote(Actor(0), closed=list(debt_ids)))

    def wants(self, now: float = NOW + INTERVAL) -> tuple[bool, list[str] | None, bool | None]:
        """(walk, debts to close, equal)."""
        wanted, settle = self.judge.wants_walk(now)
        if settle is None:
            return wanted, None, None
        return wanted, [d.debt_id for d in settle.debts], settle.equal


def debt(name: str, relaxed: Regime) -> DebtInfo:
    return DebtInfo(debt_id=name, relaxed=relaxed, new_epoch=1, object=None)


DS, DC = debt("s", S), debt("c", C)
NOTHING = (False, None, None)
WALK = (True, None, None)


# ---- one situation after the other ----------------------------------------------------------------


@pytest.mark.parametrize(("agent", "now", "wanted"), [
    (lambda: Agent(S), 0, NOTHING),
    (lambda: Agent(S).report("a", "a").rounds(CALM), 0, NOTHING),
    (lambda: Agent(C), 0, NOTHING),  # nobody has reported
    (lambda: Agent(C).report("a"), 0, NOTHING),
    (lambda: Agent(C).report("a", "b").rounds(CALM), 0, NOTHING),
    (lambda: Agent(C, (DS,)).report("a", "a"), 0, (False, ["s"], True)),
    (lambda: Agent(C, (DS, DC)).report("a", "a"), 0, (False, ["s"], True)),
    (lambda: Agent(C, (DC,)).report("a", "a").rounds(CALM), 0, NOTHING),  # owed to a fall below
    (lambda: Agent(C).report("a", "a").rounds(CALM - 1), 0, NOTHING),
    (lambda: Agent(C).report("a", "a").rounds(CALM), INTERVAL * 0.99, NOTHING),
    (lambda: Agent(C).report("a", "a").rounds(CALM), INTERVAL, WALK),
    (lambda: Agent(C).report("a", "b").rounds(CALM), QUIET, NOTHING),
    (lambda: Agent(E), QUIET, NOTHING),
    (lambda: Agent(E, (DS, DC)).report("a", "a"), 0, (False, ["c"], True)),
    (lambda: Agent(E).report("a", "a"), QUIET * 0.99, NOTHING),
    (lambda: Agent(E).report("a", "a"), QUIET, WALK),
    (lambda: Agent(E, (DS,)).report("a", "a"), QUIET, WALK),  # settled after the next climb
])  # fmt: skip
def test_without_a_fault(agent, now, wanted):
    assert agent().wants(NOW + now) == wanted


def test_what_was_relaxed_for_a_newcomer_stands_open_until_it_is_level():
    agent = Agent(C, (DS,))
    agent.view = view(0, 1, regime=C, epoch=2, coming=[Actor(5)])
    agent.install(agent.view)
    agent.report("a", "a").rounds(CALM)
    assert agent.wants() == NOTHING
    agent.view = view(0, 1, regime=C, epoch=3)
    agent.install(agent.view)
    assert agent.report("a", "a").wants() == (False, ["s"], True)


@pytest.mark.parametrize("regime", [S, C, E])
@pytest.mark.parametrize(
    "trigger", [death_of(1), Trigger(None, None, [], "rank 0 is stuck")], ids=["death", "stuck"]
)
def test_a_death_or_a_stuck_rank_wants_a_walk_at_once(regime, trigger):
    agent = Agent(regime, (DS, DC)).report("a", "a").rounds(CALM)
    agent.judge.add(trigger)
    assert agent.wants() == WALK


def test_walks_for_a_rank_that_stays_stuck_come_at_ever_longer_pauses():
    """A group that cannot be formed at all failed thousands of times otherwise."""
    agent, now, pauses = Agent(S), NOW, []
    for epoch in range(2, 12):
        agent.judge.add(Trigger(None, None, [], "rank 0 is stuck"))
        waited = 0.0
        while not agent.judge.wants_walk(now + waited)[0]:
            waited += 0.25
        pauses.append(waited)
        now += waited
        agent.install(view(0, 1, epoch=epoch), now)
    assert pauses == [0.0, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 16.0, 16.0, 16.0]
    agent.judge.add(Trigger(None, None, [], "rank 0 is stuck"))
    agent.judge.add(death_of(1))
    assert agent.judge.wants_walk(now)[0], "a death does not wait"
    agent.install(view(0, regime=C, epoch=12, departed=actors(1)), now)
    now += STUCK_NO_MORE_S
    agent.judge.triggers.clear()
    agent.judge.add(Trigger(None, None, [], "rank 0 is stuck"))
    agent.install(view(0, regime=C, epoch=13), now)
    agent.judge.add(Trigger(None, None, [], "rank 0 is stuck"))
    assert agent.judge.wants_walk(now + 0.5)[0], "a view that stood was no failure"


def test_who_leaves_alone_leaves_at_once_with_debts_open():
    agent = Agent(C, (DS,))
    agent.judge.leaving.add(Actor(0))
    assert agent.wants() == WALK


@pytest.mark.parametrize(("digests", "wanted"), [
    ((), NOTHING),
    (("a",), NOTHING),
    (("a", "a"), (False, ["s", "c"], True)),
    (("a", "b"), (False, ["s", "c"], False)),
])  # fmt: skip
def test_before_the_last_view_every_debt_is_closed_one_way_or_the_other(digests, wanted):
    agent = Agent(C, (DS, DC)).report(*digests)
    agent.judge.leaving.update(actors(0, 1))
    assert agent.wants() == wanted
    agent.close("s", "c")
    assert agent.wants() == WALK


def test_who_has_left_already_is_nobody_s_business():
    agent = Agent(S)
    agent.judge.leaving.add(Actor(7))
    assert agent.wants() == NOTHING


# ---- settling -------------------------------------------------------------------------------------


def test_an_order_is_given_again_only_when_it_was_not_carried_out():
    agent = Agent(C, (DS,)).report("a", "a").rounds(CALM)
    assert agent.wants(NOW) == (False, ["s"], True)
    assert agent.wants(NOW + ORDER_AGAIN_S * 0.9) == NOTHING  # and no climb meanwhile
    assert agent.wants(NOW + ORDER_AGAIN_S) == (False, ["s"], True)
    agent.close("s")
    assert agent.wants(NOW + ORDER_AGAIN_S * 3) == WALK


def test_no_climb_out_of_eventual_while_an_order_is_under_way():
    agent = Agent(E, (DC,)).report("a", "a")
    ordered_at = NOW + QUIET - ORDER_AGAIN_S / 4
    assert agent.wants(ordered_at) == (False, ["c"], True)
    assert agent.wants(ordered_at + ORDER_AGAIN_S / 2) == NOTHING
    agent.close("c")
    assert agent.wants(ordered_at + ORDER_AGAIN_S / 2) == WALK


def test_a_late_note_of_a_debt_does_not_open_it_again():
    agent = Agent(C, (DS,)).report("a", "a").rounds(CALM)
    agent.close("s")
    agent.reconciler.on_debt(DebtNote(Actor(0), opened=[DS]))
    assert agent.wants() == WALK


# ---- climbing -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("regime", "fault", "signal", "unit"), [
    (C, FaultEvent.STABLE_SYNC, "calm_rounds", "steps"),
    (E, FaultEvent.RECOVERY_DETECTED, "quiet", "s"),
])  # fmt: skip
def test_a_climb_has_one_trigger_with_a_row_as_evidence(regime, fault, signal, unit):
    agent = Agent(regime).report("a", "a").rounds(CALM)
    for _ in range(3):
        assert agent.wants(NOW + QUIET) == WALK
    (trigger,) = agent.judge.triggers
    assert (trigger.fault, trigger.subject) == (fault, None)
    (health,) = agent.rows.of(Health)
    assert (health["signal"], health["unit"], health["fault"]) == (signal, unit, fault)
    assert health["value"] >= health["threshold"]
    assert trigger.evidence == [EventRef(9, 0, 0)]


def test_the_quiet_is_counted_from_the_newest_view():
    agent = Agent(E).report("a", "a")
    agent.view = view(0, 1, regime=E, epoch=2)
    agent.install(agent.view, NOW + QUIET)
    agent.report("a", "a")
    assert agent.wants(NOW + QUIET * 1.9) == NOTHING
    assert agent.wants(NOW + QUIET * 2) == WALK


@pytest.mark.parametrize(("regime", "fault"), [
    (C, FaultEvent.STABLE_SYNC), (E, FaultEvent.RECOVERY_DETECTED),
])  # fmt: skip
def test_unequal_digests_are_said_once_a_view(regime, fault):
    agent = Agent(regime, (DS,)).report("a", "b")
    for _ in range(3):
        assert agent.wants(NOW + QUIET) == NOTHING
    (decision,) = agent.rows.of(Decisions)
    assert (decision["fault"], decision["changed"]) == (fault, False)
    assert decision["from_regime"] is decision["to_regime"] is regime
    assert "differ" in decision["reason"]
    agent.install(agent.view)
    agent.report("a", "b").wants()
    assert len(agent.rows.of(Decisions)) == 2


@pytest.mark.parametrize("regime", [C, E])
def test_a_view_stands_for_a_while_before_the_next_climb(regime):
    agent = Agent(regime, (DS if regime is C else DC,)).report("a", "a").rounds(CALM)
    assert agent.wants(NOW)[1], "what is owed is settled at once"
    agent.close("s", "c")
    assert agent.wants(NOW + INTERVAL * 0.9) == NOTHING
    assert agent.wants(NOW + max(INTERVAL, QUIET)) == WALK
    agent.install(agent.view, NOW + QUIET)
    agent.judge.add(death_of(1))
    assert agent.wants(NOW + QUIET) == WALK, "a death does not wait"


# ---- what a view answers --------------------------------------------------------------------------


def test_a_view_answers_the_triggers_whose_evidence_it_names():
    agent = Agent(S)
    first, second = death_of(0, seq=1), death_of(1, seq=2)
    for trigger in (first, second, first):
        agent.judge.add(trigger)
    assert agent.judge.triggers == [first, second]
    assert agent.judge.alive() == set()
    agent.install(view(1, regime=C, epoch=2, evidence=first.evidence, departed=actors(0)))
    assert agent.judge.triggers == [second]
    assert agent.judge.deaths
    agent.judge.add(first)  # told late, by an agent that has not heard
    assert agent.judge.triggers == [second]


@pytest.mark.parametrize("fault", [
    None, FaultEvent.STABLE_SYNC, FaultEvent.RECOVERY_DETECTED, FaultEvent.LINK_DELAY_HIGH
])  # fmt: skip
def test_any_view_makes_what_is_no_death_void(fault):
    agent = Agent(C)
    agent.judge.add(told(fault))
    agent.install(view(0, 1, regime=C, epoch=2))
    assert agent.judge.triggers == []


# ---- observe mode ---------------------------------------------------------------------------------


def test_observe_says_once_what_would_have_been_decided():
    agent = Agent(S)
    agent.judge.add(death_of(1))
    agent.judge.add(told(FaultEvent.STABLE_SYNC))
    agent.judge.add(told(None))
    for _ in range(3):
        agent.judge.observe()
    fell, stayed = agent.rows.of(Decisions)
    assert (fell["fault"], fell["to_regime"], fell["changed"]) == (
        FaultEvent.GPU_FAIL_STOP, C, True,
    )  # fmt: skip
    assert fell["evidence"] == death_of(1).evidence
    assert (stayed["to_regime"], stayed["changed"]) == (S, False)
    assert agent.judge.deaths, "nothing was answered"


@pytest.mark.parametrize(("leaving", "dead", "last"), [
    ((), (), False), ((0,), (), False), ((0, 1), (), True), ((0,), (1,), True), ((), (0, 1), False),
])  # fmt: skip
def test_observe_walks_when_everybody_alive_has_finished(leaving, dead, last):
    agent = Agent(S)
    agent.judge.leaving.update(actors(*leaving))
    for rank in dead:
        agent.judge.add(death_of(rank))
    assert agent.judge.wants_last_view() is last


# ---- takeover -------------------------------------------------------------------------------------


def test_an_agent_that_heard_the_same_wants_the_same():
    """The second has never led, and was given what a greeting carries."""
    first = Agent(C, (DS,)).report("a", "a").rounds(CALM)
    second = Agent(C).rounds(CALM)
    assert first.wants() == (False, ["s"], True)
    for report in first.reconciler.reports():
        second.reconciler.on_reconciled(report)
    second.reconciler.on_debt(DebtNote(Actor(8), opened=list(first.reconciler.open.values())))
    assert second.wants() == (False, ["s"], True)
    for agent in (first, second):
        agent.close("s")
        assert agent.wants() == WALK
    assert [t.fault for t in second.judge.triggers] == [t.fault for t in first.judge.triggers]


def test_a_greeting_tells_of_debts_that_were_closed_meanwhile():
    leader = Agent(C, (DS,)).report("a", "a").rounds(CALM)
    leader.close("s")
    back = Agent(C, (DS,)).report("a", "a").rounds(CALM)  # its journal holds the debt
    note = DebtNote(
        Actor(8),
        opened=list(leader.reconciler.open.values()),
        closed=sorted(leader.reconciler.closed),
    )
    back.reconciler.on_debt(note)
    assert back.wants() == WALK


# ---- debts that nobody opened ---------------------------------------------------------------------


def test_nothing_goes_on_before_debts_of_a_lost_opener_are_on_record():
    agent = Agent()
    fall = view(0, 1, 2, epoch=1, regime=C, from_regime=S)
    now_in = view(1, 2, epoch=2, regime=C, departed=actors(0), member_reason="failed")
    agent.judge.install(now_in, [fall, now_in], NOW)
    agent.judge.leaving = set(actors(1, 2))
    order = agent.judge.wants_opened(NOW)
    assert order is not None
    assert (order.actor, order.settle.debts) == (Actor(1), [])
    assert [d.debt_id for d in order.settle.unopened] == ["1/strong"]
    assert agent.judge.wants_opened(NOW) is None, "once is enough for a while"
    assert agent.judge.wants_opened(NOW + ORDER_AGAIN_S) == order
    assert agent.judge.wants_walk(NOW) == (False, None)
    agent.judge.leaving = set(actors(1))
    assert agent.judge.wants_walk(NOW + OPEN_PATIENCE_S) == (True, None), "held up for ever"
    agent.reconciler.on_debt(DebtNote(Actor(1), opened=order.settle.unopened))
    assert agent.judge.wants_opened(NOW + 9) is None
    assert agent.judge.wants_walk(NOW + 9) == (True, None)


@pytest.mark.parametrize("split", [True, False])
def test_a_straggler_in_causal_is_set_apart_where_the_policy_parts(split):
    agent = Agent(C)
    agent.judge.policy = load_policy()
    agent.judge.policy.cohorts = CohortRules(split=split)
    slow = told(FaultEvent.RANK_SKEW_HIGH, subject=1)
    assert agent.judge.consider(slow) is split
    assert len(agent.rows.of(Decisions)) == (not split)
    agent.install(view(0, 1, regime=C, epoch=2, cohorts=[actors(0), actors(1)]))
    assert not agent.judge.consider(told(FaultEvent.RANK_SKEW_HIGH, subject=1, seq=2))


def test_a_straggler_that_stands_when_something_else_moved_the_job_is_set_apart() -> None:
    """The view that answers a newcomer's churn makes it void, and no detector tells of it again."""
    policy = load_policy()
    policy.cohorts = CohortRules(split=True)
    agent = Agent(S)
    agent.judge.policy = policy
    slow = told(FaultEvent.RANK_SKEW_HIGH, subject=1)
    agent.judge.stands([slow])
    agent.install(view(0, 1, regime=C, epoch=2))
    assert agent.judge.wants_walk(NOW + INTERVAL) == (True, None)
    agent.install(view(0, 1, regime=C, epoch=3, evidence=slow.evidence))
    assert slow not in agent.judge.triggers, "it was answered: all stay together"
    gone = told(FaultEvent.RANK_SKEW_HIGH, subject=2, seq=7)
    agent.judge.stands([gone])
    agent.install(view(0, 1, regime=C, epoch=4, departed=actors(2), member_reason="failed"))
    assert agent.judge.triggers == []


def test_who_leaves_is_level_first_where_cohorts_were_made_one_for_it():
    agent = Agent(C)
    agent.view = view(0, 1, regime=C, epoch=1, optim_from=Actor(0))
    agent.install(agent.view)
    agent.judge.leaving.add(Actor(0))
    assert agent.wants() == NOTHING
    assert agent.report("a").wants() == WALK
    agent.reconciler.install(agent.view)
    assert agent.wants(NOW + LEVEL_PATIENCE_S) == WALK


def test_who_keeps_the_pace_again_is_walked_for_only_while_it_is_apart():
    agent, again = Agent(C), told(None, subject=1)
    agent.judge.add(again)
    assert agent.wants() == NOTHING
    agent.install(view(0, 1, regime=C, epoch=2, cohorts=[actors(0), actors(1)]))
    agent.judge.add(again)
    assert agent.wants() == WALK
