"""The reconciler: pure bookkeeping that any agent can take over."""

from __future__ import annotations

import msgspec
import pytest

from cascade_runtime.agent import reconcile
from cascade_runtime.agent.protocol import DebtInfo, DebtNote, Reconciled, Round
from cascade_runtime.agent.reconcile import Reconciler, owed_by
from cascade_runtime.vocabulary.identity import Actor, Dot
from cascade_runtime.vocabulary.regime import Regime
from tests.agent.facts import view

S, C, E = Regime.STRONG, Regime.CAUSAL, Regime.EVENTUAL


def debt(name: str, relaxed: Regime) -> DebtInfo:
    return DebtInfo(debt_id=name, relaxed=relaxed, new_epoch=1, object=None)


def report(rank: int, digest: str = "a", counter: int = 3, epoch: int = 1) -> Reconciled:
    return Reconciled(Actor(rank), epoch, digest, [Dot(0, 0, counter)])


def rounds(reconciler: Reconciler, rank: int, *steps: int, epoch: int = 1) -> None:
    for step in steps:
        reconciler.on_round(Round(Actor(rank), epoch, step))


@pytest.fixture
def reconciler():
    fresh = Reconciler([debt("s", S), debt("c", C)])
    fresh.install(view(0, 1, regime=C, epoch=1))
    return fresh


@pytest.mark.parametrize(("regime", "due"), [(S, []), (C, ["s"]), (E, ["c"])])
def test_due_is_what_the_next_climb_needs(reconciler, regime, due):
    reconciler.install(view(0, 1, regime=regime, epoch=2))
    assert [d.debt_id for d in reconciler.due()] == due
    assert [d.debt_id for d in reconciler.due(everything=True)] == ["s", "c"]


def test_notes_open_and_close(reconciler):
    reconciler.on_debt(DebtNote(Actor(0), opened=[debt("t", S)], closed=["s", "unknown"]))
    assert list(reconciler.open) == ["c", "t"]


@pytest.mark.parametrize(("reports", "equal"), [
    ([], None),
    ([report(0)], None),
    ([report(0), report(1)], True),
    ([report(0), report(1, digest="b")], False),
    ([report(0), report(1, counter=4)], False),
    ([report(0), report(1, epoch=0)], None),
    ([report(0), report(1), report(2, digest="b")], True),  # 2 is no member
    ([report(0), report(1, digest="b"), report(1)], True),  # the newest counts
])  # fmt: skip
def test_equal(reconciler, reports, equal):
    for told in reports:
        reconciler.on_reconciled(told)
    assert reconciler.equal() is equal


def test_a_new_epoch_asks_everybody_again(reconciler):
    for rank in (0, 1):
        reconciler.on_reconciled(report(rank))
        rounds(reconciler, rank, 4, 5)
    assert (reconciler.equal(), reconciler.calm_rounds()) == (True, 2)
    reconciler.install(view(0, 1, regime=C, epoch=2))
    assert (reconciler.equal(), reconciler.calm_rounds()) == (None, 0)


def test_without_members_nothing_is_equal_or_calm(reconciler):
    reconciler.install(view(regime=C, epoch=2))
    assert (reconciler.equal(), reconciler.calm_rounds()) == (None, 0)


@pytest.mark.parametrize(("first", "second", "calm"), [
    ([], [], 0),
    ([4, 5, 6], [], 0),
    ([4, 5, 6], [4, 5], 2),
    ([4, 5, 6], [6], 1),
    ([4, 5], [6, 7], 0),
    ([4, 5, 6, 7, 8], [5, 6, 7, 8], 4),
])  # fmt: skip
def test_calm_rounds_are_those_that_all_decided(reconciler, first, second, calm):
    rounds(reconciler, 0, *first)
    rounds(reconciler, 1, *second)
    rounds(reconciler, 1, 1, 2, 3, epoch=0)
    assert reconciler.calm_rounds() == calm


def test_an_agent_that_hears_the_same_can_take_over(reconciler):
    other = Reconciler()
    other.on_debt(DebtNote(Actor(0), opened=[debt("s", S), debt("c", C)]))
    other.install(view(0, 1, regime=C, epoch=1))
    for keeper in (reconciler, other):
        for rank in (0, 1):
            keeper.on_reconciled(report(rank))
            rounds(keeper, rank, 4, 5, 6)
    assert (other.due(), other.equal(), other.calm_rounds()) == (
        reconciler.due(), reconciler.equal(), reconciler.calm_rounds()
    )  # fmt: skip


# ---- debts that nobody opened -----------------------------------------------------------------------

FALL = view(0, 1, 2, epoch=1, regime=C, from_regime=S)
LOST = view(1, 2, epoch=2, regime=E, from_regime=C, departed=[Actor(0)], member_reason="stopped")


def test_a_fall_owes_every_guarantee_and_the_data_of_who_was_lost():
    steep = view(1, epoch=4, regime=E, from_regime=S, departed=[Actor(0)], member_reason="failed")
    assert [(d.debt_id, d.relaxed) for d in owed_by(steep)] == [
        ("4/strong", S), ("4/causal", C), ("4/data/0", S),
    ]  # fmt: skip
    assert owed_by(view(1, epoch=4, regime=S, from_regime=C)) == []
    left = view(1, epoch=4, regime=C, from_regime=S, departed=[Actor(0)], member_reason="finished")
    assert [d.debt_id for d in owed_by(left)] == ["4/strong"]


def test_the_opener_is_waited_for_while_it_is_a_member():
    assert Reconciler().unopened([FALL]) is None


def test_where_the_opener_was_lost_as_it_should_have_opened_another_member_does():
    reconciler = Reconciler()
    opener, debts = reconciler.unopened([FALL, LOST])
    assert (opener, [d.debt_id for d in debts]) == (Actor(1), ["1/strong"])
    reconciler.on_debt(DebtNote(Actor(1), opened=debts))
    assert reconciler.unopened([FALL, LOST]) is None  # of the second fall the opener lives
    reconciler.on_debt(DebtNote(Actor(1), closed=["1/strong"]))
    assert reconciler.unopened([FALL, LOST]) is None
    assert Reconciler(closed=["1/strong"]).unopened([FALL, LOST]) is None


def test_only_a_member_of_the_fall_s_view_opens():
    came = view(0, 1, 2, epoch=3, regime=E, members=[Actor(0, 1), Actor(1), Actor(2)])
    assert Reconciler().unopened([FALL, LOST, came])[0] == Actor(1)
    nobody = view(epoch=3, regime=E, members=[Actor(0, 1)])
    assert Reconciler().unopened([FALL, LOST, nobody]) is None


def test_views_whose_debts_were_told_are_looked_at_once(monkeypatch):
    """The leading agent asks fifty times a second, in jobs of any number of walks."""
    looked_at = []
    monkeypatch.setattr(reconcile, "owed_by", lambda v: looked_at.append(v.epoch) or owed_by(v))
    reconciler = Reconciler()
    log = [FALL, *(view(0, 1, 2, epoch=n) for n in range(2, 300))]
    assert reconciler.unopened(log) is None
    reconciler.on_debt(DebtNote(Actor(0), opened=owed_by(FALL)))
    assert reconciler.unopened(log) is None
    looked_at.clear()
    log.append(msgspec.structs.replace(LOST, epoch=300))
    assert reconciler.unopened(log) is None  # its opener lives
    assert looked_at == [300]
    log.append(view(2, epoch=301, regime=E))
    assert reconciler.unopened(log)[0] == Actor(2)
    assert looked_at == [300, 300]
