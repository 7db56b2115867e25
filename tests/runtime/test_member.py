"""One member's consistency state, with everything around it played by the test."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from cascade_runtime.agent.control_log import comm_id_of
from cascade_runtime.agent.protocol import (
    Acked,
    Ballot,
    DebtInfo,
    DebtNote,
    Leave,
    Proposed,
    Reconciled,
    Round,
    Settle,
    View,
)
from cascade_runtime.progress import WAITING
from cascade_runtime.rank.member import Member
from cascade_runtime.vocabulary.fault import FaultEvent
from cascade_runtime.vocabulary.identity import Actor, Dot, EventRef
from cascade_runtime.vocabulary.regime import Regime
from tests.agent.facts import actors, view

S, C, E = Regime.STRONG, Regime.CAUSAL, Regime.EVENTUAL
NAMES = ["params/0", "params/1", "buffers", "optim"]
K = len(NAMES)
DEATH = FaultEvent.GPU_FAIL_STOP


class Recorder:
    """Keeps rows as (table, fields)."""

    def __init__(self) -> None:
        self.rows: list[tuple[str, dict[str, Any]]] = []
        self.view: tuple[int, Regime] | None = None
        self.step = 0

    def set_view(self, epoch: int, regime: Regime) -> None:
        self.view = (epoch, regime)

    def set_step(self, step: int) -> None:
        self.step = step

    def row(self, table: type, **fields: Any) -> int:
        self.rows.append((str(table.__struct_config__.tag), fields))
        return len(self.rows) - 1

    def steps(self, phase: str) -> None:
        self.rows.append(("steps", {"phase": phase, "step": self.step}))

    def reads(self, names, use, dots, version, frontier=None) -> None:
        assert use == "forward"
        for name, dot in zip(names, dots, strict=True):
            told = {"object": name, "dot": dot, "version": version, "frontier": frontier}
            self.rows.append(("reads", told))

    def updates(self, action, names, dots, version, deps, sizes) -> None:
        for name, dot, size in zip(names, dots, sizes, strict=True):
            told = {"action": action, "object": name, "dot": dot, "version": version}
            self.rows.append(("updates", told | {"deps": deps, "num_bytes": size}))

    def of(self, table: str, **wanted: Any) -> list[dict[str, Any]]:
        return [
            fields
            for name, fields in self.rows
            if name == table and all(fields.get(k) == v for k, v in wanted.items())
        ]

    def take(self, table: str, **wanted: Any) -> list[dict[str, Any]]:
        found = self.of(table, **wanted)
        self.rows.clear()
        return found


class Link:
    """Keeps what was sent."""

    def __init__(self) -> None:
        self.sent: list[Any] = []
        self.epoch = -1

    def send(self, message: Any) -> None:
        self.sent.append(message)

    def of(self, kind: type) -> list[Any]:
        return [m for m in self.sent if isinstance(m, kind)]


class Objects:
    """Names and digests that follow ``value``."""

    names = NAMES
    readable = NAMES[:-1]

    def __init__(self) -> None:
        self.value = "x"

    def num_bytes(self, index: int) -> int:
        return 100 + index

    def digest(self, index: int) -> str:
        return f"{NAMES[index]}={self.value}"


class Word:
    """The progress word."""

    def __init__(self) -> None:
        self.told: list[tuple[int, int, int]] = []
        self.claimed = 0
        self.fenced = False
        self.fence_at_claim = -1

    def write(self, decided: int, issued: int, phase: int) -> None:
        self.told.append((decided, issued, phase))

    def claim(self, step: int) -> None:
        self.claimed = step
        if step == self.fence_at_claim:
            self.fenced = True


class Ring:
    """The step ring: no step is timed here."""


class Fake:
    """A member and what stands around it."""

    def __init__(self, rank: int = 0, members: tuple[int, ...] = (0, 1, 2), regime=S) -> None:
        self.recorder, self.link, self.word = Recorder(), Link(), Word()
        first = view(*members, regime=regime)
        self.member = Member(
            Actor(rank), first, Objects(), self.recorder, self.link, self.word, Ring()  # type: ignore[arg-type]
        )  # fmt: skip

    def step(self, issue: bool = True) -> None:
        self.member.begin_step()
        if issue:
            self.member.issue()
        self.member.decide()
        self.member.end_step()

    def walk(self, *members: int, regime: Regime, **fields: Any) -> View:
        """Commit the next view, as the agents would plan it."""
        before = self.member.view
        gone = [m for m in before.members if m.rank not in members]
        told = {"epoch": before.epoch + 1, "from_regime": before.regime, "departed": gone}
        told |= {"member_reason": "failed" if gone else "", "cut_step": self.member.decided}
        new = view(*members, regime=regime, **{**told, **fields})
        self.member.commit(new)
        return new


def dots(author: int, first: int, number: int = K) -> list[Dot]:
    return [Dot(author, 0, c) for c in range(first, first + number)]


def updates_of(rows: list[dict[str, Any]]) -> list[tuple[str, Dot, int | None]]:
    return [(r["object"], r["dot"], r["version"]) for r in rows]


# ---- a step in STRONG -----------------------------------------------------------------------------


def test_the_rows_of_two_steps_of_the_author():
    fake = Fake()
    fake.step()
    first = list(fake.recorder.rows)
    assert [name for name, _ in first] == (
        ["steps", *["reads"] * 3, *["updates"] * 8, "digests", "steps"]
    )
    assert [r["dot"] for r in fake.recorder.of("reads")] == [None] * 3
    assert {r["version"] for r in fake.recorder.of("reads")} == {0}
    assert updates_of(fake.recorder.of("updates", action="issued")) == [
        (name, dot, 1) for name, dot in zip(NAMES, dots(0, 1), strict=True)
    ]
    assert updates_of(fake.recorder.of("updates", action="applied")) == [
        (name, dot, 1) for name, dot in zip(NAMES, dots(0, 1), strict=True)
    ]
    assert {tuple(r["deps"]) for r in fake.recorder.of("updates")} == {()}
    assert [r["num_bytes"] for r in fake.recorder.of("updates", action="issued")] == [
        100, 101, 102, 103
    ]  # fmt: skip
    fake.recorder.rows.clear()
    fake.step()
    reads = fake.recorder.of("reads")
    assert [(r["object"], r["dot"], r["version"]) for r in reads] == [
        (name, dot, 1) for name, dot in zip(NAMES[:3], dots(0, 1), strict=False)
    ]
    assert [r["dot"] for r in fake.recorder.of("updates", action="issued")] == dots(0, 1 + K)
    assert [r["step"] for r in fake.recorder.of("steps")] == [2, 2]
    assert fake.member.frontier.dots() == [Dot(0, 0, 2 * K)]
    assert fake.link.sent == []


def test_who_is_not_the_author_applies_and_issues_nothing():
    fake = Fake(rank=1)
    fake.step()
    assert fake.recorder.of("updates", action="issued") == []
    assert [r["dot"] for r in fake.recorder.of("updates", action="applied")] == dots(0, 1)
    assert fake.member.issued == 0


def test_issued_once_a_step_and_told_before_its_rows():
    fake = Fake()
    fake.member.begin_step()
    for _ in range(3):
        fake.member.issue()
    assert len(fake.recorder.of("updates", action="issued")) == K
    assert fake.word.told[-1][:2] == (0, K)
    fake.member.decide()
    fake.member.issue()
    assert len(fake.recorder.of("updates", action="issued")) == 2 * K


def test_one_object_s_digest_a_step_in_rotation():
    fake = Fake()
    for _ in range(K + 1):
        fake.step()
    rows = fake.recorder.of("digests")
    assert [(r["object"], r["version"]) for r in rows] == [
        *zip(NAMES, range(1, K + 1), strict=True),
        (NAMES[0], K + 1),
    ]
    assert all(r["frontier"] is None and r["digest"] == f"{r['object']}=x" for r in rows)


def test_progress_and_facts():
    fake = Fake()
    fake.step()
    fake.member.tell_progress(WAITING)
    assert fake.word.told[-1] == (1, K, WAITING)
    fake.member.leaving = True
    facts = fake.member.facts(launched_all=True)
    assert (facts.decided, facts.issued, facts.frontier) == (1, K, [Dot(0, 0, K)])
    assert (facts.launched_all, facts.leaving, facts.dead) == (True, True, False)


# ---- below STRONG ---------------------------------------------------------------------------------


def test_below_strong_frontiers_take_the_place_of_versions():
    fake = Fake()
    fake.step()
    fake.walk(0, 1, regime=C)
    fake.recorder.rows.clear()
    fake.step()
    assert [(r["dot"], r["version"]) for r in fake.recorder.of("reads")] == [(None, None)] * 3
    assert {tuple(r["frontier"]) for r in fake.recorder.of("reads")} == {(Dot(0, 0, K),)}
    assert {r["version"] for r in fake.recorder.of("updates")} == {None}
    assert fake.recorder.of("digests") == [], "the user's loop may still write to the parameters"
    fake.member.begin_step()
    assert [r["frontier"] for r in fake.recorder.of("digests")] == [[Dot(0, 0, 2 * K)]] * K
    assert fake.member.version == 2


def test_deps_are_the_other_origins_folded_since_the_last_issue():
    fake = Fake(rank=1, members=(0, 1, 2))
    fake.step(issue=False)
    fake.walk(1, 2, regime=C)  # rank 0 died; rank 1 is the author now
    fake.recorder.rows.clear()
    fake.step()
    assert {tuple(r["deps"]) for r in fake.recorder.of("updates", action="issued")} == {
        (Dot(0, 0, K),)
    }
    fake.recorder.rows.clear()
    fake.step()
    assert {tuple(r["deps"]) for r in fake.recorder.of("updates", action="issued")} == {()}
    assert [r["dot"] for r in fake.recorder.of("updates", action="issued")] == dots(1, 1 + K)


@pytest.mark.parametrize("rank", [1, 2])
def test_applied_rows_repeat_the_deps_of_the_step(rank):
    fake = Fake(rank=rank, members=(0, 1, 2))
    fake.step(issue=False)
    fake.walk(1, 2, regime=C)
    fake.recorder.rows.clear()
    for deps in [(Dot(0, 0, K),)], [()]:
        fake.step()
        assert {tuple(r["deps"]) for r in fake.recorder.of("updates", action="applied")} == set(
            deps
        )
        fake.recorder.rows.clear()


def test_a_step_that_a_walk_voided_is_issued_again_with_its_causes():
    fake = Fake(rank=1, members=(0, 1, 2))
    fake.step(issue=False)
    fake.walk(1, 2, regime=C)
    fake.member.begin_step()
    fake.member.issue()
    fake.walk(1, 2, regime=C, voided=dots(1, 1))
    fake.recorder.rows.clear()
    fake.member.issue()
    issued = fake.recorder.of("updates", action="issued")
    assert [r["dot"] for r in issued] == dots(1, 1 + K)
    assert {tuple(r["deps"]) for r in issued} == {(Dot(0, 0, K),)}


def test_in_causal_every_step_is_told_and_digests_once_an_epoch():
    fake = Fake()
    fake.walk(0, 1, regime=C)
    fake.step()
    fake.step()
    assert fake.link.of(Round) == [Round(Actor(0), 1, 1), Round(Actor(0), 1, 2)]
    (told,) = fake.link.of(Reconciled)
    assert (told.epoch, told.frontier) == (1, [Dot(0, 0, K)])
    assert told.digest == " ".join(f"{name}=x" for name in NAMES)
    fake.walk(0, 1, regime=C)
    fake.step()  # one member halted in it, another before it: all tell when it is made
    assert [r.epoch for r in fake.link.of(Reconciled)] == [1]
    fake.step()
    assert [r.epoch for r in fake.link.of(Reconciled)] == [1, 2]


def test_in_eventual_buffers_are_left_out():
    fake = Fake()
    fake.walk(0, 1, regime=E)
    fake.member.reconcile()
    (told,) = fake.link.of(Reconciled)
    assert told.digest == " ".join(f"{name}=x" for name in NAMES if name != "buffers")
    fake.step()
    assert fake.link.of(Round) == []


@pytest.mark.parametrize("step_open", [True, False])
def test_digests_at_a_cut_once_and_without_buffers_inside_a_step(step_open):
    fake = Fake()
    fake.step()
    fake.recorder.rows.clear()
    for _ in range(2):
        fake.member.digest_cut(step_open)
    told = [r["object"] for r in fake.recorder.of("digests")]
    able = [n for n in NAMES if not (step_open and n == "buffers")]
    assert told == [n for n in able if n != NAMES[0]], "that one's is on record at this version"
    fake.step()
    fake.recorder.rows.clear()
    fake.member.digest_cut(step_open)
    assert [r["object"] for r in fake.recorder.of("digests")] == [n for n in able if n != NAMES[1]]


# ---- the walk's rows ------------------------------------------------------------------------------


def proposal(fake: Fake, number: int, **fields: Any) -> Proposed:
    told = {"epoch": fake.member.view.epoch + 1, "from_regime": S, "fault": DEATH}
    told |= {"evidence": [EventRef(9, 0, 3)], "reason": "rank 2 died"}
    return Proposed(view(0, 1, regime=C, **{**told, **fields}), Ballot(number, 0))


def test_one_acknowledged_row_a_proposal_and_an_answer_each_time():
    fake = Fake()
    first = proposal(fake, 1)
    for number in (1, 1, 2):
        fake.member.acknowledge(Proposed(first.view, Ballot(number, 0)))
    (row,) = fake.recorder.of("transitions")
    assert row["phase"] == "acknowledged"
    for name in ("fault", "reason", "members", "cohorts", "proposer", "evidence", "from_regime"):
        assert row[name] == getattr(first.view, name)
    assert (row["to_regime"], row["new_epoch"]) == (C, 1)
    assert fake.recorder.view == (0, S)
    assert fake.link.sent == [Acked(1, Ballot(n, 0)) for n in (1, 1, 2)]
    fake.member.acknowledge(proposal(fake, 3, reason="another"))
    assert len(fake.recorder.of("transitions")) == 2


@pytest.mark.parametrize("epoch", [0, 2])
def test_proposals_of_other_epochs_are_not_acknowledged(epoch):
    fake = Fake()
    fake.member.acknowledge(proposal(fake, 1, epoch=epoch))
    assert (fake.recorder.rows, fake.link.sent) == ([], [])


def test_a_commit_writes_under_the_new_epoch_and_tells_who_asked():
    fake = Fake()
    told = []
    fake.member.on_transition.append(told.append)
    new = fake.walk(0, 1, regime=C, fault=DEATH)
    assert fake.recorder.view == (1, C)
    assert fake.link.epoch == 1
    (row,) = fake.recorder.of("transitions")
    assert (row["phase"], row["new_epoch"], row["fault"]) == ("committed", 1, DEATH)
    (members,) = fake.recorder.of("membership")
    assert (members["members"], members["departed"]) == (actors(0, 1), actors(2))
    assert members["reason"] == "failed"
    assert told == [new]
    fake.recorder.rows.clear()
    fake.walk(0, 1, regime=C)
    assert fake.recorder.of("membership") == []


def test_who_is_not_in_the_view_opens_no_debts_and_folds_nothing():
    fake = Fake(rank=0)
    fake.walk(1, 2, regime=C, member_reason="finished")
    assert fake.recorder.of("debt") == []
    assert fake.link.sent == []


def test_groups_name_what_they_replace():
    fake = Fake(rank=1)
    fake.member.group_row(0)
    fake.walk(1, 2, regime=C)
    fake.member.group_row(1)
    first, second = fake.recorder.of("groups")
    assert (first["label"], first["members"], first["replaces"]) == (
        "cohort/0/0", actors(0, 1, 2), None,
    )  # fmt: skip
    assert first["comm_id"] == comm_id_of(actors(0, 1, 2), 0)
    assert (second["label"], second["replaces"]) == ("cohort/1/0", first["comm_id"])
    assert second["comm_id"] != first["comm_id"]


def test_a_cohort_of_several_has_its_own_author():
    fake = Fake(rank=3, members=(0, 1, 2, 3))
    fake.walk(0, 1, 2, 3, regime=C, cohorts=[actors(0, 1), actors(2, 3)])
    assert (fake.member.cohort, fake.member.author) == (actors(2, 3), Actor(2))
    fake.member.group_row(1)
    assert fake.recorder.of("groups")[0]["label"] == "cohort/1/1"
    assert fake.member.open_dots() == dots(2, 1)


# ---- voided dots, other authors, rolling forward --------------------------------------------------


def test_a_living_author_goes_on_after_its_voided_dots():
    fake = Fake()
    fake.step()
    fake.member.begin_step()
    fake.member.issue()
    void = dots(0, 1 + K)
    fake.walk(0, 1, regime=C, voided=void, in_flight=void)
    discarded = fake.recorder.of("updates", action="discarded")
    assert [(r["object"], r["dot"]) for r in discarded] == list(zip(NAMES, void, strict=True))
    fake.recorder.rows.clear()
    fake.member.issue()
    assert [r["dot"] for r in fake.recorder.of("updates", action="issued")] == dots(0, 1 + 2 * K)


def test_dots_of_a_dead_author_are_discarded_and_not_covered():
    fake = Fake(rank=1)
    fake.step(issue=False)
    fake.walk(1, 2, regime=C, voided=dots(0, 1 + K))
    assert fake.member.frontier.dots() == [Dot(0, 0, K)]
    discarded = fake.recorder.of("updates", action="discarded")
    assert [r["dot"] for r in discarded] == dots(0, 1 + K)
    fake.member.issue()
    assert fake.member.open_dots() == dots(1, 1)


def test_who_is_rolled_forward_applies_the_dots_of_the_view_that_decided():
    """The author died when others had decided its step: this member takes the same dots, later."""
    fake = Fake(rank=2)
    fake.step(issue=False)
    fake.member.begin_step()
    fake.walk(1, 2, regime=C, cut_step=2, source=Actor(1), behind=actors(2))
    fake.walk(1, 2, regime=C, cut_step=2, source=Actor(1), behind=actors(2))
    fake.recorder.rows.clear()
    fake.member.decide(rolled=True)
    assert [r["dot"] for r in fake.recorder.of("updates", action="applied")] == dots(0, 1 + K)
    assert (fake.member.decided, fake.member.frontier.dots()) == (2, [Dot(0, 0, 2 * K)])


# ---- climbing -------------------------------------------------------------------------------------


@pytest.mark.parametrize("rank", [0, 1])
def test_the_climb_s_fold_is_an_update_of_its_own(rank):
    fake = Fake(rank=rank)
    fake.step()
    fake.walk(0, 1, regime=C)
    fake.step()
    fake.recorder.rows.clear()
    fake.walk(0, 1, regime=S, fault=FaultEvent.STABLE_SYNC)
    fold = [(name, dot, 3) for name, dot in zip(NAMES, dots(0, 1 + 2 * K), strict=True)]
    issued = updates_of(fake.recorder.of("updates", action="issued"))
    assert issued == (fold if rank == 0 else [])
    assert updates_of(fake.recorder.of("updates", action="applied")) == fold
    order = [name for name, _ in fake.recorder.rows]
    assert order.index("transitions") < order.index("updates")
    assert fake.member.decided == 2
    fake.recorder.rows.clear()
    fake.step()
    reads = fake.recorder.of("reads")
    assert [(r["dot"], r["version"]) for r in reads] == [(d, 3) for _, d, _ in fold[:3]]
    applied = fake.recorder.of("updates", action="applied")
    assert {r["version"] for r in applied} == {4}
    assert [r["dot"] for r in applied] == dots(0, 1 + 3 * K)


@pytest.mark.parametrize(("before", "after"), [(C, C), (C, E), (E, C), (S, S), (S, C), (S, E)])
def test_only_a_climb_to_strong_folds(before, after):
    fake = Fake(regime=before)
    fake.walk(0, 1, regime=after)
    assert fake.recorder.of("updates") == []
    assert fake.member.version == 0


# ---- debts ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("before", "after", "relaxed"), [
    (S, C, [S]), (C, E, [C]), (S, E, [S, C]), (S, S, []), (C, C, []), (C, S, []), (E, C, []),
    (E, E, []),
])  # fmt: skip
def test_what_a_walk_gives_up_becomes_debt(before, after, relaxed):
    fake = Fake(regime=before)
    fake.step()
    flight = dots(0, 1 + K)
    fake.walk(0, 1, 2, regime=after, in_flight=flight)
    rows = fake.recorder.of("debt")
    assert [(r["action"], r["relaxed"], r["new_epoch"]) for r in rows] == [
        ("opened", r, 1) for r in relaxed
    ]
    assert all(r["object"] is None and r["in_flight"] == flight for r in rows)
    assert all(r["clock"] == [Dot(0, 0, K)] for r in rows)
    ids = [r["debt_id"] for r in rows]
    assert len(set(ids)) == len(ids)
    assert sorted(fake.member.open_debts) == sorted(ids)
    notes = fake.link.of(DebtNote)
    assert [d.debt_id for note in notes for d in note.opened] == ids


def test_only_the_lowest_member_opens():
    for rank, number in ((1, 2), (2, 0)):
        fake = Fake(rank=rank)
        fake.walk(1, 2, regime=C)  # rank 0 died
        assert len(fake.recorder.of("debt")) == number


@pytest.mark.parametrize(("reason", "regime", "objects"), [
    ("failed", C, ["data/2"]), ("finished", C, []), ("failed", S, []),
])  # fmt: skip
def test_a_dead_member_s_unread_data_is_debt(reason, regime, objects):
    fake = Fake()
    fake.walk(0, 1, regime=regime, member_reason=reason)
    debts = [r["object"] for r in fake.recorder.of("debt") if r["object"]]
    assert debts == objects
    assert [r["object"] for r in fake.recorder.of("objects")] == objects


def opened(fake: Fake) -> list[DebtInfo]:
    return list(fake.member.open_debts.values())


@pytest.mark.parametrize(("voided", "resolution"), [(True, "discarded"), (False, "applied")])
def test_equal_members_settle_with_a_fate_for_what_was_in_flight(voided, resolution):
    fake = Fake()
    fake.step()
    flight = dots(0, 1 + K)
    fake.walk(0, 1, 2, regime=C, in_flight=flight, voided=flight if voided else [])
    fake.step()
    frontier = fake.member.frontier.dots()
    fake.recorder.rows.clear()
    fake.link.sent.clear()
    fake.member.settle(Settle(opened(fake), equal=True))
    (row,) = fake.recorder.of("debt")
    assert (row["action"], row["resolution"], row["resolved"]) == ("settled", resolution, flight)
    assert (row["frontier"], row["drift_l2"], row["drift_max"]) == (frontier, 0.0, 0.0)
    assert fake.member.open_debts == {}
    assert fake.link.sent == [DebtNote(Actor(0), closed=[row["debt_id"]])]


def test_unequal_members_write_off():
    fake = Fake()
    fake.walk(0, 1, 2, regime=C)
    fake.member.settle(Settle(opened(fake), equal=False))
    assert [r["action"] for r in fake.recorder.of("debt")] == ["opened", "written_off"]
    assert fake.recorder.of("debt")[1].get("resolution") is None


def test_data_is_written_off_whoever_is_equal():
    fake = Fake()
    fake.walk(0, 1, regime=C)
    fake.member.settle(Settle(opened(fake), equal=True))
    closed = {r["object"]: r for r in fake.recorder.of("debt") if r["action"] != "opened"}
    assert closed["data/2"]["action"] == "written_off"
    assert closed["data/2"]["resolution"] == "discarded"
    assert closed[None]["action"] == "settled"


def test_an_order_that_comes_twice_is_answered_twice_and_written_once():
    fake = Fake()
    fake.walk(0, 1, 2, regime=C)
    order = Settle(opened(fake), equal=True)
    fake.link.sent.clear()
    for _ in range(2):
        fake.member.settle(order)
    assert len(fake.recorder.of("debt", action="settled")) == 1
    assert fake.link.sent == [DebtNote(Actor(0), closed=["1/strong"])] * 2


def test_the_next_lowest_settles_what_a_dead_opener_opened():
    fake = Fake(rank=1)
    debt = DebtInfo(debt_id="1/strong", relaxed=S, new_epoch=1, object=None)
    fake.walk(1, 2, regime=C, epoch=2)
    fake.recorder.rows.clear()
    fake.member.settle(Settle([debt], equal=True))
    (row,) = fake.recorder.of("debt")
    assert (row["action"], row["debt_id"]) == ("settled", "1/strong")


def test_what_a_lost_opener_left_unopened_is_opened_on_order():
    fake = Fake(rank=1)
    owed = [
        DebtInfo(debt_id="1/strong", relaxed=S, new_epoch=1, object=None),
        DebtInfo(debt_id="1/data/0", relaxed=S, new_epoch=1, object="data/0"),
    ]
    fake.walk(1, 2, regime=S, epoch=2)
    fake.recorder.rows.clear()
    fake.link.sent.clear()
    for _ in range(2):
        fake.member.settle(Settle([], equal=False, unopened=owed))
    rows = fake.recorder.of("debt")
    assert [(r["action"], r["debt_id"], r["new_epoch"]) for r in rows] == [
        ("opened", "1/strong", 1), ("opened", "1/data/0", 1),
    ]  # fmt: skip
    assert [r["object"] for r in fake.recorder.of("objects")] == ["data/0"]
    assert fake.link.sent == [DebtNote(Actor(1), opened=owed)] * 2
    assert opened(fake) == owed


# ---- an agent that was away -----------------------------------------------------------------------


def test_what_an_absent_agent_may_have_missed_is_told_again():
    fake = Fake()
    fake.member.tell_again()
    assert fake.link.sent == []
    fake.walk(0, 1, 2, regime=C)
    (debt,) = opened(fake)
    fake.step()
    fake.member.begin_step()
    (report,) = fake.link.of(Reconciled)
    fake.link.sent.clear()
    fake.member.tell_again()
    assert fake.link.sent == [DebtNote(Actor(0), opened=[debt], closed=[]), report]
    fake.member.settle(Settle([debt], equal=True))
    fake.member.leaving = True
    fake.link.sent.clear()
    fake.member.tell_again()
    assert fake.link.sent == [
        DebtNote(Actor(0), opened=[], closed=["1/strong"]),
        report,
        Leave(Actor(0), 1),
    ]
    fake.walk(0, 1, 2, regime=C)
    fake.link.sent.clear()
    fake.member.tell_again()
    assert fake.link.of(Reconciled) == []  # of an epoch that is over


# ---- any history ----------------------------------------------------------------------------------


class Histories(RuleBasedStateMachine):
    """Rank 1 through any sequence of steps, deaths, re-cuts, falls, climbs and voided steps."""

    @initialize()
    def begin(self) -> None:
        self.fake = Fake(rank=1, members=(0, 1, 2, 3))
        self.in_step = False

    @property
    def member(self) -> Member:
        return self.fake.member

    @rule()
    def forward(self) -> None:
        if not self.in_step:
            self.in_step = True
            self.member.begin_step()

    @rule()
    def issue(self) -> None:
        if self.in_step:
            self.member.issue()

    @rule()
    def decide(self) -> None:
        if self.in_step:
            self.member.issue()
            self.member.decide()
            self.member.end_step()
            self.in_step = False

    @rule(regime=st.sampled_from(Regime), death=st.booleans())
    def walk(self, regime: Regime, death: bool) -> None:
        before = self.member.view
        members = [m.rank for m in before.members]
        author = self.member.author
        open_dots: list[Dot] = []
        if self.member.issued > self.member.frontier.upto(author) and author == self.member.actor:
            open_dots = self.member.open_dots()
        gone = [r for r in members if r != 1][:1] if death and len(members) > 2 else []
        if gone:
            regime = min(before.regime, C)
        elif regime.level > before.regime.level + 1:
            regime = before.regime
        void = open_dots if regime > before.regime else []
        left = [r for r in members if r not in gone]
        self.fake.walk(*left, regime=regime, voided=void, in_flight=open_dots)

    @invariant()
    def own_dots_have_no_hole_and_one_fate(self) -> None:
        rows = self.fake.recorder.of("updates")
        mine = [r for r in rows if r["dot"].actor == self.member.actor]
        issued = [r["dot"].counter for r in mine if r["action"] == "issued"]
        assert issued == list(range(1, len(issued) + 1))
        fates = [r["dot"].counter for r in mine if r["action"] != "issued"]
        assert len(set(fates)) == len(fates)
        assert set(fates) <= set(issued)
        assert len(issued) - len(fates) in (0, K)  # of the open step, if it was issued

    @invariant()
    def each_dot_is_one_object_s(self) -> None:
        for row in self.fake.recorder.of("updates"):
            assert row["object"] == NAMES[(row["dot"].counter - 1) % K]

    @invariant()
    def versions_grow_by_one(self) -> None:
        applied = self.fake.recorder.of("updates", action="applied", object="optim")
        assert self.member.version == len(applied)
        for number, row in enumerate(applied, start=1):
            assert row["version"] in (None, number)

    @invariant()
    def facts_travel(self) -> None:
        facts = self.member.facts(launched_all=False)
        assert msgspec.msgpack.decode(msgspec.msgpack.encode(facts), type=type(facts)) == facts


TestHistories = Histories.TestCase
TestHistories.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)


# ---- the fence ------------------------------------------------------------------------------------


class Left(BaseException):
    """The process has ended."""


def fenced(fake: Fake) -> Fake:
    def leave() -> None:
        raise Left

    fake.member.on_fenced = leave
    return fake


def test_a_step_is_claimed_before_it_is_decided():
    fake = Fake()
    fake.step()
    assert fake.word.claimed == 1
    fake.step()
    assert (fake.word.claimed, fake.member.decided) == (2, 2)


def test_a_fence_that_is_up_at_the_claim_stops_the_decision():
    fake = fenced(Fake(rank=1))
    fake.step()
    fake.word.fence_at_claim = 2  # between the claim and the look
    fake.recorder.rows.clear()
    with pytest.raises(Left):
        fake.member.decide()
    assert (fake.word.claimed, fake.member.decided, fake.recorder.rows) == (2, 1, [])


def test_an_author_writes_the_word_then_looks_then_issues():
    fake = fenced(Fake())
    fake.word.fenced = True
    with pytest.raises(Left):
        fake.member.issue()
    assert fake.word.told[-1][1] == K, "the agent must find what may have been issued"
    assert fake.recorder.rows == []


@pytest.mark.parametrize(
    "act",
    [
        lambda m: m.acknowledge(Proposed(view(0, 1, epoch=1), Ballot(1, 0))),
        lambda m: m.commit(view(0, 1, epoch=1)),
        lambda m: m.decide(rolled=True),
    ],
    ids=["acknowledge", "commit", "decide"],
)
def test_behind_the_fence_nothing_of_a_later_epoch_is_written(act):
    fake = fenced(Fake())
    fake.word.fenced = True
    with pytest.raises(Left):
        act(fake.member)
    assert (fake.recorder.rows, fake.link.sent, fake.member.view.epoch) == ([], [], 0)
