"""A straggler steps by itself, the others go on, and it comes back: real processes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from cascade_runtime.rank.channel import BOUND
from cascade_runtime.vocabulary.identity import Actor
from dashboard.demo.faults import Kill
from tests.runtime import cohorts_job
from tests.runtime.causal_reference import Replay
from tests.runtime.jobs import FinishedJob, JobRunner
from tests.runtime.policies import splitting_policy

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(120)]


def run(jobs: JobRunner, folder: Path, *arguments: str, **options: Any) -> FinishedJob:
    """With a policy that has cohorts and less patience than the default."""
    policy = splitting_policy(folder / "policy.toml")
    saved = folder / "job1" / "saved"
    return jobs.run(
        *arguments, "--save", str(saved),
        script=cohorts_job.__file__, policy=str(policy), **options,
    )  # fmt: skip


def committed(job: FinishedJob, rank: int) -> list[dict[str, Any]]:
    return [t for t in job.rows("transitions") if t["phase"] == "committed" and t["rank"] == rank]


def assert_all_equal(job: FinishedJob) -> None:
    states = list(job.parameters().values())
    assert len(states) > 1
    for state in states[1:]:
        assert all(torch.equal(state[name], value) for name, value in states[0].items())


def assert_sound(job: FinishedJob) -> None:
    assert job.verdict() == "ok", [v.sentence for v in job.report.violations] + [
        (c.code, c.reason) for c in job.report.checks if c.verdict == "unknown"
    ]


def steps_of(job: FinishedJob, rank: int) -> list[tuple[float, int, int]]:
    """(s, number, cohorts) of each step."""
    return [tuple(s) for s in json.loads((job.saved / f"notes{rank}.json").read_text())]


def rate(steps: list[tuple[float, int, int]]) -> float:
    return (len(steps) - 1) / (steps[-1][0] - steps[0][0])


@pytest.mark.parametrize(("slow", "more"), [(2, ()), (0, ()), (3, ("--adamw",))])
def test_a_straggler_steps_by_itself_and_comes_back(
    jobs: JobRunner, tmp_path: Path, slow: int, more: tuple[str, ...]
) -> None:
    job = run(jobs, tmp_path, "--slow", str(slow), "--goal", "120", *more)
    assert job.outcome.exit_code == 0
    apart, together, climbed = committed(job, rank=1)[:3]
    others = [r for r in range(4) if r != slow]
    assert sorted([a["rank"] for a in c] for c in apart["cohorts"]) == sorted([[slow], others])
    assert (apart["to_regime"], apart["fault"]) == ("CAUSAL", "RANK_SKEW_HIGH")
    assert [a["rank"] for a in together["cohorts"][0]] == [0, 1, 2, 3]
    assert (together["to_regime"], together["fault"]) == ("CAUSAL", None)
    assert climbed["to_regime"] == "STRONG"
    assert_all_equal(job)
    assert_bytes_are_those_of_the_definition(job, slow)
    assert_the_bound_was_kept(job, slow)
    debts = [(d["action"], d["relaxed"]) for d in job.rows("debt")]
    assert debts == [("opened", "STRONG"), ("settled", "STRONG")]
    assert job.rows("debt")[1]["drift_l2"] is not None
    assert_sound(job)


def assert_bytes_are_those_of_the_definition(job: FinishedJob, slow: int) -> None:
    """Base and deltas, added up in canonical order by numpy, are what all held when they met."""
    notes = {int(p.stem[5:]): torch.load(p) for p in job.saved.glob("notes*.deltas")}
    bases = [n["base"] for n in notes.values()]
    assert all(torch.equal(a, b) for base in bases for a, b in zip(base, bases[0], strict=True))
    replay, counts = Replay([b.numpy() for b in bases[0]]), {}
    for rank, told in notes.items():
        if told["deltas"]:
            weight = np.float32(0.25 if rank == slow else 0.75)
            for delta in told["deltas"]:
                replay.add(Actor(rank), [d.numpy() * weight for d in delta])
            counts[Actor(rank)] = len(told["deltas"])
    assert len(counts) == 2
    for told in notes.values():
        for value, expected in zip(told["folded"], replay.fold(counts), strict=True):
            assert value.numpy().tobytes() == expected.tobytes()


def assert_the_bound_was_kept(job: FinishedJob, slow: int) -> None:
    """When an author issued its n-th update apart, each other cohort had folded its n - BOUND-th."""
    parted = min(t["wall_ns"] for t in committed(job, slow) if len(t["cohorts"]) > 1)
    met = min(t["wall_ns"] for t in committed(job, slow) if t["wall_ns"] > parted)
    rows = [
        u
        for u in job.rows("updates")
        if u["object"] == "params/0" and parted < u["wall_ns"] < met and u["regime"] == "CAUSAL"
    ]
    authors = {u["rank"] for u in rows if u["action"] == "issued"}
    assert len(authors) == 2
    for author in authors:
        issued = sorted(
            u["wall_ns"] for u in rows if u["action"] == "issued" and u["rank"] == author
        )
        others = {slow} - {author} or set(range(4)) - {author}
        for other in others:
            folded = sorted(
                u["wall_ns"]
                for u in rows
                if u["action"] == "applied" and u["rank"] == other and u["origin_rank"] == author
            )
            for number, when in enumerate(issued, start=1):
                assert sum(f < when for f in folded) >= number - BOUND


def test_the_others_go_on_at_their_own_pace(jobs: JobRunner, tmp_path: Path) -> None:
    job = run(jobs, tmp_path, "--goal", "150", "--alone", "12", "--step-ms", "40")
    fast = steps_of(job, 1)
    apart = [s for s in fast if s[2] > 1]
    before = [s for s in fast if s[1] <= 16 and s[2] == 1]
    slow = [s for s in steps_of(job, 2) if s[2] > 1][:12]
    during = [s for s in apart if s[0] <= slow[-1][0]]
    assert rate(during) > 2 * rate(before)
    assert job.outcome.exit_code == 0


@pytest.mark.parametrize(("victim", "step"), [(2, 19), (0, 26), (1, 26)])
def test_a_rank_dies_while_cohorts_are_apart(
    jobs: JobRunner, tmp_path: Path, victim: int, step: int
) -> None:
    """The straggler, the others' author, and one of them that is no author."""
    job = run(
        jobs, tmp_path, "--goal", "70", "--alone", "1000", "--times", "4",
        kills=(Kill(victim, step),),
    )  # fmt: skip
    survivors = [r for r in range(4) if r != victim]
    assert job.struck
    assert job.outcome.finished == survivors
    walks = committed(job, rank=3)
    assert len(walks[0]["cohorts"]) == 2
    death = next(w for w in walks if w["fault"] == "GPU_FAIL_STOP")
    assert (death["from_regime"], death["to_regime"]) == ("CAUSAL", "EVENTUAL")
    assert [a["rank"] for a in death["cohorts"][0]] == survivors
    assert_sound(job)


def test_who_is_done_first_leaves_its_updates(jobs: JobRunner, tmp_path: Path) -> None:
    """The goal is reached while cohorts are apart: all step together first."""
    job = run(jobs, tmp_path, "--goal", "40", "--alone", "1000")
    assert job.outcome.finished == [0, 1, 2, 3]
    walks = committed(job, rank=2)
    assert [len(w["cohorts"]) for w in walks[:2]] == [2, 1]
    assert "leave" in walks[1]["reason"]
    assert_sound(job)


def test_without_the_switch_all_stay_together(jobs: JobRunner, tmp_path: Path) -> None:
    job = jobs.run(
        "--goal", "40", "--save", str(tmp_path / "job1" / "saved"), script=cohorts_job.__file__
    )
    assert job.outcome.exit_code == 0
    assert all(len(t["cohorts"]) < 2 for t in job.rows("transitions"))
    assert_all_equal(job)
