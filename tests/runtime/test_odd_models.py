"""Models and loops out of the ordinary: each works, with plain DDP's very bytes, or is refused.

Where one works, a rank is killed in the middle of a backward besides, and the others end equal.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from tests.runtime.jobs import FinishedJob, JobRunner

ODD = Path(__file__).parent / "scripts" / "odd.py"

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(60)]


def run(jobs: JobRunner, case: str, *arguments: str, mode: str = "enforce") -> FinishedJob:
    words = ("--case", case, "--steps", "22", *arguments)
    return jobs.run(*words, script=ODD, env={"OMP_NUM_THREADS": "1"}, ranks=3, mode=mode)


def differing(a: dict[str, Any], b: dict[str, Any], names: list[str] | None = None) -> list[str]:
    return [name for name in names or a if not torch.equal(a[name], b[name])]


def assert_ok(job: FinishedJob) -> None:
    assert job.verdict() == "ok", [v.sentence for v in job.report.violations]


@pytest.mark.parametrize(
    "case", ["OddTensors", "OwnBuffers", "Unused", "UnusedViews", "Accumulate", "Static", "Closure"]
)
def test_it_trains_as_plain_ddp_does_and_outlives_a_rank(jobs: JobRunner, case: str) -> None:
    job = run(jobs, case, "--plain", "6", "--die", "2:9")
    assert job.outcome.exit_code == 0
    assert job.outcome.finished == [0, 1]
    saved = job.parameters()
    parameters = saved[0]["parameters"]
    # Plain DDP makes buffers equal when the next forward begins, so rank 0's are the ones to have.
    assert not differing(saved[0]["held"], saved[0]["plain"])
    assert not differing(saved[1]["held"], saved[1]["plain"], parameters)
    own = parameters if case == "OwnBuffers" else None
    assert not differing(saved[0]["held"], saved[1]["held"], own)
    assert not differing(saved[0]["last"], saved[1]["last"], own)
    assert differing(saved[0]["held"], saved[0]["last"]), "it went on after the death"
    if case == "OwnBuffers":
        assert differing(saved[0]["last"], saved[1]["last"]), "and nobody overwrote them"
        assert differing(saved[1]["held"], saved[0]["plain"])
        assert not differing(saved[1]["held"], saved[1]["plain"])
    assert_ok(job)


@pytest.mark.parametrize("case", ["OddTensors", "UnusedViews"])
def test_observed_it_trains_as_plain_ddp_does(jobs: JobRunner, case: str) -> None:
    job = run(jobs, case, "--plain", "6", mode="observe")
    assert job.outcome.finished == [0, 1, 2]
    for saved in job.parameters().values():
        assert not differing(saved["held"], saved["plain"])
    assert_ok(job)


def test_layers_are_frozen_and_thawed_while_it_trains(jobs: JobRunner) -> None:
    job = run(jobs, "Frozen", "--plain", "7", "--die", "2:9")
    assert job.outcome.finished == [0, 1]
    saved = job.parameters()
    for rank in (0, 1):
        # Not to the byte: plain DDP knows unused parameters only, and so has other buckets.
        for name in saved[rank]["parameters"]:
            torch.testing.assert_close(saved[rank]["held"][name], saved[rank]["plain"][name])
    assert not differing(saved[0]["last"], saved[1]["last"])
    assert_ok(job)


def test_a_forward_that_fails_on_one_rank_costs_a_batch_or_the_rank(
    jobs: JobRunner, capfd: pytest.CaptureFixture[str]
) -> None:
    job = run(jobs, "Raises")
    assert job.outcome.exit_code == 0
    assert job.outcome.finished == [0, 2]
    saved = job.parameters()
    assert not differing(saved[0]["last"], saved[2]["last"])
    assert "shapes cannot be multiplied" in capfd.readouterr().err
    assert_ok(job)


def test_a_parameter_that_one_rank_replaces_costs_that_rank(
    jobs: JobRunner, capfd: pytest.CaptureFixture[str]
) -> None:
    job = run(jobs, "ReplacedHere")
    assert job.outcome.exit_code == 0
    assert job.outcome.finished == [0, 2]
    assert "rank 1: step 5: the model's parameters are not those" in capfd.readouterr().err
    assert_ok(job)


def test_ranks_with_fewer_batches_leave_and_the_others_go_on(jobs: JobRunner) -> None:
    job = run(jobs, "Uneven")
    assert job.outcome.exit_code == 0
    assert job.outcome.finished == [0, 1, 2]
    decided = {
        rank: max(r["step"] for r in job.rows("steps") if r["rank"] == rank and r["phase"] == "end")
        for rank in (0, 1, 2)
    }
    assert decided == {0: 22, 1: 20, 2: 18}
    assert_ok(job)


@pytest.mark.parametrize(
    ("case", "sentence", "hint"),
    [
        ("NoGradient", "some parameters got no gradient", "find_unused_parameters=True"),
        ("Leftover", "accumulated under no_sync and never reduced", "outside of no_sync"),
        (
            "Replaced",
            "3.weight, 3.bias changed, and would not be reduced",
            "start a new job",
        ),
        ("FrozenHere", "gradient buckets differ", "freeze or thaw the same ones"),
        ("StaticUnused", "gradient buckets differ", "run the same layers in the same order"),
        ("SyncBatchNorm", "SyncBatchNorm layers run collectives of their own", "use BatchNorm"),
        ("BuiltinHook", "has a communication hook already", "leave the hook out"),
        ("HookAfter", "its one communication hook is cascade's", "leave the hook out"),
        ("Joins", "the training loop is in join()", "leave join() out"),
    ],
)
def test_what_cannot_be_held_is_refused_in_a_sentence(
    jobs: JobRunner, capfd: pytest.CaptureFixture[str], case: str, sentence: str, hint: str
) -> None:
    job = run(jobs, case)
    told = capfd.readouterr().err
    assert job.outcome.exit_code == 2
    assert job.outcome.finished == []
    assert told.count(sentence) == 1, told
    assert hint in told
    assert "Traceback" not in told
