"""Some of the random schedules of ``random_delays``, and what its judge finds wrong."""

from __future__ import annotations

import itertools
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import nn

from cascade_runtime.vocabulary.identity import Actor, Clock, Dot
from tests.runtime import delays_job
from tests.runtime.delays import Delayed, draw
from tests.runtime.delays_played import other_bytes, play, unlike, unpaid
from tests.runtime.jobs import JobRunner

SEED = 1


@pytest.mark.long
@pytest.mark.chaos
@pytest.mark.timeout(150)
@pytest.mark.parametrize("number", [2, 3, 13, 14])
def test_random_delays(jobs: JobRunner, number: int) -> None:
    """Numbers that had gone wrong once: see docs/decisions/0030."""
    schedule = draw(SEED, number)
    wrong = play(jobs, schedule).wrong
    assert wrong == [], f"seed {SEED}, number {number}: {schedule}"


@pytest.mark.chaos
@pytest.mark.timeout(150)
@pytest.mark.parametrize("where", ["data", "forward"])
def test_the_others_go_on_while_a_straggler_is_asleep(jobs: JobRunner, where: str) -> None:
    """For 3.6 s in its own code, before a step or in it: the walk does not wait for that."""
    slow, number = 2, 20
    plan = [[slow, number, number, 300.0, where]]
    played = play(jobs, Delayed(4, 2, plan, 12.0, [], [], frozenset(), frozenset()))
    assert played.wrong == []
    assert played.parted
    steps = played.job.rows("steps")
    asleep = [s["mono_ns"] for s in steps if s["rank"] == slow and s["step"] in (19, 20, 21)]
    gaps = [(b - a, a) for a, b in itertools.pairwise(sorted(asleep))]
    slept_ns, from_ns = max(gaps)
    assert slept_ns > 3e9
    for rank in (0, 1, 3):
        apart = [
            s["mono_ns"]
            for s in steps
            if s["rank"] == rank and s["phase"] == "end" and s["regime"] == "CAUSAL"
        ]
        assert min(apart) < from_ns + 0.6 * slept_ns
        assert sum(at < from_ns + slept_ns for at in apart) > 3


def test_a_number_is_always_the_same_schedule() -> None:
    texts = [str(draw(5, n)) for n in range(40)]
    assert texts == [str(draw(5, n)) for n in range(40)]
    assert len(set(texts)) == 40
    assert {draw(5, n).ranks for n in range(40)} == {3, 4, 5, 6}
    assert any(len({who for who, *_ in draw(5, n).plan}) == 2 for n in range(40))


def parting(deltas: list[list[float]], folded: list[float]) -> dict[str, Any]:
    return {
        "at": [[0, 0, 9]],
        "authors": [0, 1],
        "base": torch.tensor([1.0, 2.0]),
        "deltas": [torch.tensor(d) for d in deltas],
        "weight": 0.5,
        "folded": torch.tensor(folded),
    }


def test_a_delta_that_was_lost_or_folded_twice_is_found() -> None:
    mine, theirs = [[2.0, 0.0], [0.0, 4.0]], [[8.0, 8.0]]
    right = [1.0 + 1.0 + 4.0, 2.0 + 2.0 + 4.0]
    for folded, found in [(right, []), ([6.0, 4.0], [1]), ([10.0, 12.0], [1])]:
        notes = {0: [parting(mine, right)], 1: [parting(theirs, folded)]}
        wrong = other_bytes(notes)
        assert [f"rank {r} became other bytes" in w for r, w in zip(found, wrong, strict=True)] == [
            True for _ in found
        ]
    assert other_bytes({0: [parting(mine, [0.0, 0.0])]}) == [], "the other author was lost"


class Job:
    """One rank's loop, of cohorts of one and without a runtime: what ``Notes`` looks at, set by hand."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.model = nn.Linear(1, 1, bias=False)
        nn.init.ones_(self.model.weight)
        self.member = SimpleNamespace(
            is_apart=False,
            last_dots=[Dot(0, 0, 1)],
            view=SimpleNamespace(cohorts=[[Actor(0)], [Actor(1)]]),
            weight=0.5,
        )
        self.apart = SimpleNamespace(sums=None)
        session = SimpleNamespace(member=self.member, stepper=SimpleNamespace(_apart=self.apart))
        monkeypatch.setattr(delays_job, "attached", lambda: session)
        self.notes = delays_job.Notes(self.model, 0)

    def part(self, at: int) -> None:
        """A view with two cohorts is committed; the base is kept when the next forward begins."""
        self.member.is_apart, self.apart.sums = True, None
        self.member._parted_at = Clock([Dot(0, 0, at)])

    def begin(self) -> None:
        """A forward: the base is kept, where cohorts are apart."""
        if self.member.is_apart and self.apart.sums is None:
            base = delays_job.flat(self.model).clone()
            self.apart.sums = SimpleNamespace(_regions=[SimpleNamespace(base=base)])

    def end(self, by: float) -> None:
        """The optimizer's step, and after it what the weight of the cohort makes of it."""
        if not self.member.is_apart:
            self.apart.sums = None
        self.notes.before()
        with torch.no_grad():
            self.model.weight.add_(by)
            self.notes.after()
            if self.apart.sums is not None:
                self.model.weight.sub_(by / 2)


def test_a_step_that_was_decided_before_a_parting_is_no_delta(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A view may be committed between a step's decision and the optimizer: the base to come has it."""
    job = Job(monkeypatch)
    for at in (10, 20):  # the second parting's is not the first one's either
        job.begin()
        job.part(at)
        job.end(8.0)
        for by in (1.0, 2.0):
            job.begin()
            job.end(by)
        job.member.is_apart = False
        job.begin()
        job.end(4.0)
    first, second = job.notes.partings
    assert [p["at"] for p in (first, second)] == [[[0, 0, 10]], [[0, 0, 20]]]
    assert [p["base"].tolist() for p in (first, second)] == [[9.0], [22.5]]
    assert [[d.item() for d in p["deltas"]] for p in (first, second)] == [[1.0, 2.0], [1.0, 2.0]]
    other = {**first, "deltas": []}, {**second, "deltas": []}
    assert other_bytes({0: job.notes.partings, 1: list(other)}) == []


def test_members_that_ended_after_the_same_step_must_be_equal() -> None:
    states = {r: {"w": torch.tensor([v])} for r, v in [(0, 1.0), (1, 1.0), (2, 3.0)]}
    assert unlike(states, {0: 9, 1: 9, 2: 10}) == []
    assert "rank 2 differ from rank 0's" in unlike(states, {0: 9, 1: 9, 2: 9})[0]
    assert "ended after steps" in unlike(states, {0: 9, 1: 9, 2: 11})[0]


def test_debts_that_nobody_paid_are_found() -> None:
    def row(action: str, **fields: Any) -> dict[str, Any]:
        nothing = dict.fromkeys(("resolution", "frontier", "object"))
        return {"action": action, "debt_id": "1/strong", **nothing, **fields}

    opened = row("opened")
    paid = row("settled", resolution="applied", frontier=[])
    assert unpaid([opened, paid]) == []
    assert unpaid([opened]) == ["debt 1/strong was never closed"]
    assert "opened 2 times" in unpaid([opened, opened, paid])[0]
    assert "without a resolution" in unpaid([opened, row("settled")])[0]
    assert "written off" in unpaid([opened, row("written_off")])[0]
    assert unpaid([row("opened"), row("written_off", object="data/2")]) == []
