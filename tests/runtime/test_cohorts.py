"""A straggler steps by itself, the others go on, and it comes back: real processes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.runtime import cohorts_job
from tests.runtime.jobs import FinishedJob, JobRunner
from tests.runtime.test_scenarios import DEFAULT

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(120)]


def parting_policy(path: Path) -> Path:
    """The default policy with cohorts, and less patience."""
    text = DEFAULT.read_text()
    for before, after in (
        ("split = false", "split = true"),
        ("steps = 20 ", "steps = 8 "),
        ("dwell_s = 1.0 ", "dwell_s = 0.3 "),
        ("clears_after = 20 ", "clears_after = 5 "),
        ("min_ms = 20.0                  # ... and above this\n", "min_ms = 100000.0\n"),
    ):
        assert before in text
        text = text.replace(before, after)
    path.write_text(text)
    return path


def run(jobs: JobRunner, folder: Path, *arguments: str, **options: object) -> FinishedJob:
    policy = str(parting_policy(folder / "policy.toml"))
    return jobs.run(
        *arguments, "--save", str(folder / "job1" / "saved"),
        script=cohorts_job.__file__, policy=policy, **options,
    )  # fmt: skip


@pytest.mark.parametrize("slow", [2, 0])
def test_a_straggler_steps_by_itself_and_comes_back(
    jobs: JobRunner, tmp_path: Path, slow: int
) -> None:
    job = run(jobs, tmp_path, "--slow", str(slow), "--goal", "160")
    assert job.outcome.exit_code == 0
    walks = [(t["to_regime"], len(t["cohorts"])) for t in job.rows("transitions")
             if t["phase"] == "committed" and t["rank"] == 1]  # fmt: skip
    assert walks == [("CAUSAL", 2), ("CAUSAL", 1), ("STRONG", 1)]
