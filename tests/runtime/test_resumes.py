"""A job is saved, killed and resumed in another run: rightly, and in each wrong way (rule M1)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.runtime.jobs import FinishedJob, JobRunner

SCRIPT = Path(__file__).parent / "scripts" / "resumes.py"
RANKS = 3
pytestmark = [pytest.mark.chaos, pytest.mark.timeout(120)]


@pytest.fixture(scope="module")
def saved(zygote: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a job that was killed after two checkpoints."""
    folder = tmp_path_factory.mktemp("saved")
    job = JobRunner(zygote, folder / "first").run(str(folder), "first", script=SCRIPT, ranks=RANKS)
    assert job.outcome.finished == []
    rows = [r for r in job.rows("checkpoints") if r["action"] == "saved"]
    assert len(rows) == 2 * RANKS
    assert len({r["rng_digest"] for r in rows}) == 2 * RANKS
    assert {r["data_position"] for r in rows} == {60, 120}
    return folder


def resume(jobs: JobRunner, saved: Path, mode: str, ranks: int = RANKS) -> FinishedJob:
    job = jobs.run(str(saved), mode, script=SCRIPT, ranks=ranks)
    assert job.outcome.finished == list(range(ranks))
    return job


def found(job: FinishedJob) -> dict[int, str]:
    """The sentences by rank; all are M1's, at loaded rows."""
    job.verdict()
    loads = {(r["rank"], r["seq"]) for r in job.rows("checkpoints") if r["action"] == "loaded"}
    assert {v.code for v in job.report.violations} <= {"M1"}
    assert {(v.rank, v.seq) for v in job.report.violations} <= loads
    return {v.rank: v.sentence for v in job.report.violations}


def test_a_right_resume_is_proved_and_counts_on(jobs: JobRunner, saved: Path) -> None:
    job = resume(jobs, saved, "right")
    assert job.verdict() == "ok", [v.sentence for v in job.report.violations] + [
        (c.code, c.reason) for c in job.report.checks if c.verdict == "unknown"
    ]
    assert {c.code: c.num_checked for c in job.report.checks}["M1"] == RANKS
    (load,) = [r for r in job.rows("checkpoints") if r["action"] == "loaded" and r["rank"] == 0]
    issued = [r["counter"] for r in job.rows("updates") if r["action"] == "issued"]
    assert min(issued) == load["frontier"][0]["counter"] + 1
    versions = [r["version"] for r in job.rows("reads") if r["rank"] == 0]
    assert min(versions) == 10
    assert len({(saved / f"right-{rank}.txt").read_text() for rank in range(RANKS)}) == 1


def test_from_an_older_frontier(jobs: JobRunner, saved: Path) -> None:
    told = found(resume(jobs, saved, "older"))
    assert sorted(told) == [0, 1, 2]
    assert "loaded checkpoint step-5 although run " in told[1]
    assert "had saved the newer checkpoint step-10 before." in told[1]


def test_with_the_random_state_of_another_rank(jobs: JobRunner, saved: Path) -> None:
    """Entries of one name are saved once, so all ranks but one get another one's."""
    told = found(resume(jobs, saved, "rng"))
    assert len(told) == RANKS - 1
    (whose,) = {0, 1, 2} - set(told)
    for rank, sentence in told.items():
        assert sentence.startswith(f"rank {rank} resumed from checkpoint step-10 with ")
        assert f"the random state of rank {whose}." in sentence


def test_without_the_data_position(jobs: JobRunner, saved: Path) -> None:
    told = found(resume(jobs, saved, "position"))
    assert sorted(told) == [0, 1, 2]
    assert told[2] == "rank 2 resumed from checkpoint step-10 at data position 0, not 120."


def test_fewer_ranks_that_leave_a_shard_to_nobody(jobs: JobRunner, saved: Path) -> None:
    told = found(resume(jobs, saved, "right", ranks=RANKS - 1))
    assert told == {
        0: "rank 0 resumed from checkpoint step-10 while nobody goes on with data shard part-2."
    }


def test_fewer_ranks_that_share_all_of_it(jobs: JobRunner, saved: Path) -> None:
    job = resume(jobs, saved, "shares", ranks=RANKS - 1)
    assert job.verdict() == "ok", [v.sentence for v in job.report.violations]


def test_one_rank_alone_that_says_so_moves_no_counter(jobs: JobRunner, saved: Path) -> None:
    """It would stand elsewhere than the others, who could never agree with it."""
    job = resume(jobs, saved, "alone")
    assert found(job) == {}
    (load,) = [r for r in job.rows("checkpoints") if r["action"] == "loaded"]
    assert (load["rank"], load["frontier"]) == (0, None)
    issued = [r["counter"] for r in job.rows("updates") if r["action"] == "issued"]
    assert min(issued) == 1
    assert {
        min(r["version"] for r in job.rows("reads") if r["rank"] == rank) for rank in range(RANKS)
    } == {0}
    told = {c.code: c.reason for c in job.report.checks if c.verdict == "unknown"}
    assert "content was not recorded" in told["M1"]
