"""The article's case: a rank joins mid-task below STRONG as a cohort of its own. Real processes."""

from __future__ import annotations

import statistics
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from cascade_runtime.agent.add_rank import add_rank
from tests.runtime import cohorts_job
from tests.runtime import faults as do
from tests.runtime.faults import Faults, Running, Strike
from tests.runtime.jobs import FinishedJob, JobRunner
from tests.runtime.policies import policy_with
from tests.runtime.test_cohorts import assert_all_equal, assert_sound

NEW, AT = 4, 12
COLD_STEPS, COLD_MS = 6, 250.0
NEVER_MS = 100_000.0
SOON = {
    ("node_churn", "quiet_s"): 1.0,
    ("pace", "steps"): 8,
    ("pace", "dwell_s"): 0.3,
    # A machine that tests share delays reductions by itself.
    ("link_delay", "min_ms"): NEVER_MS,
    ("pace", "min_ms"): 60.0,
}
pytestmark = [pytest.mark.chaos, pytest.mark.timeout(120)]


def policy(folder: Path, **more: float) -> str:
    path = policy_with(SOON, folder / "policy.toml")
    path.write_text(path.read_text().replace("split = false", "split = true "))
    return str(path)


def ask(job: Running) -> None:
    add_rank(job.config, NEW)


def views(job: FinishedJob, rank: int = 0) -> list[dict[str, Any]]:
    """As one member committed them."""
    rows = [t for t in job.rows("transitions") if t["phase"] == "committed" and t["rank"] == rank]
    return sorted(rows, key=lambda t: t["new_epoch"])


def cohorts(view: dict[str, Any]) -> list[list[int]]:
    return sorted([a["rank"] for a in cohort] for cohort in view["cohorts"])


def steps_ms(job: FinishedJob, rank: int, begin_ns: int, end_ns: int) -> list[float]:
    """How long its steps took that began and ended then."""
    rows = [s for s in job.rows("steps") if s["rank"] == rank and s["phase"] == "end"]
    at = sorted(s["mono_ns"] for s in rows if begin_ns <= s["mono_ns"] <= end_ns)
    return [(b - a) / 1e6 for a, b in pairwise(at)]


def test_the_others_never_wait_for_who_joins(jobs: JobRunner, tmp_path: Path) -> None:
    job = jobs.run(
        "--steps", "110", "--pause-ms", "50",
        "--cold-steps", str(COLD_STEPS), "--cold-ms", str(COLD_MS),
        ranks=3, policy=policy(tmp_path), faults=Faults([Strike(do.after_step(0, AT), ask)]),
    )  # fmt: skip
    assert job.outcome.finished == [0, 1, 2, NEW]
    fell, came, met, climbed = views(job)[:4]
    assert (fell["from_regime"], fell["to_regime"], fell["fault"]) == (
        "STRONG", "CAUSAL", "NODE_CHURN_HIGH",
    )  # fmt: skip
    assert [a["rank"] for a in fell["members"]] == [0, 1, 2]
    assert cohorts(fell) == cohorts(came) == [[0, 1, 2], [NEW]]
    assert [a["rank"] for a in came["members"]] == [0, 1, 2, NEW]
    assert cohorts(met) == [[0, 1, 2, NEW]]
    assert (climbed["from_regime"], climbed["to_regime"]) == ("CAUSAL", "STRONG")
    # Its own rows say so from the fall on.
    own = [g for g in job.rows("groups") if g["rank"] == NEW]
    labels = [g["label"] for g in own if [m["rank"] for m in g["members"]] == [NEW]]
    assert labels == [f"cohort/{fell['new_epoch']}/1", f"cohort/{came['new_epoch']}/1"]
    assert {g["regime"] for g in own if g["label"] in labels} == {"CAUSAL"}
    # The debt of the downgrade stands until it is level.
    opened, settled = job.rows("debt")
    assert (opened["action"], settled["action"]) == ("opened", "settled")
    assert settled["mono_ns"] > met["mono_ns"]
    assert_nobody_waited(job, fell["mono_ns"], met["mono_ns"])
    assert_all_equal(job)
    assert_sound(job)


def assert_nobody_waited(job: FinishedJob, begin_ns: int, end_ns: int) -> None:
    """Of ten others' steps not one is as slow as the newcomer's (`benchmarks join_mid_task`: 10 %)."""
    slow = sorted(steps_ms(job, NEW, begin_ns, end_ns))[-COLD_STEPS + 1 :]
    assert min(slow) > COLD_MS
    for rank in (0, 1, 2):
        before = statistics.median(steps_ms(job, rank, 0, begin_ns)[2:])
        during = steps_ms(job, rank, begin_ns, end_ns)
        assert len(during) >= 2 * COLD_STEPS
        assert statistics.median(during) < before + COLD_MS / 5


def test_who_joins_while_a_straggler_is_apart_waits_for_it_and_says_so(
    jobs: JobRunner, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    home = tmp_path / "job1" / "saved"
    job = jobs.run(
        "--goal", "200", "--alone", "14", "--save", str(home),
        script=cohorts_job.__file__, ranks=3, policy=policy(tmp_path),
        faults=Faults([Strike(lambda job: job.num_views() > 1, ask)]),
    )  # fmt: skip
    assert job.outcome.finished == [0, 1, 2, NEW]
    why = "rank 4 waits to join: rank 2 steps by itself, and nobody joins before all step together"
    assert why in capfd.readouterr().err
    told = [d for d in job.rows("decisions") if d["reason"] == why]
    assert [(d["fault"], d["changed"]) for d in told] == [("NODE_CHURN_HIGH", False)]
    apart, met, came = views(job)[:3]
    assert cohorts(apart) == [[0, 1], [2]]
    assert [a["rank"] for a in met["members"]] == [0, 1, 2]
    assert cohorts(met) == [[0, 1, 2], [NEW]], "on its way, and on record as such"
    assert [a["rank"] for a in came["members"]] == [0, 1, 2, NEW]
    assert_all_equal(job)
    assert_sound(job)


def test_it_dies_while_it_steps_by_itself(jobs: JobRunner, tmp_path: Path) -> None:
    strikes = [
        Strike(do.after_step(0, AT), ask),
        Strike(lambda job: job.has_joined(NEW, 0) and job.decided(NEW) > AT + 4, do.kill(NEW)),
    ]
    job = jobs.run(
        "--steps", "90", "--pause-ms", "30", "--cold-steps", "1000", "--cold-ms", "100",
        ranks=3, policy=policy(tmp_path), faults=Faults(strikes),
    )  # fmt: skip
    assert job.outcome.finished == [0, 1, 2]
    death = next(v for v in views(job) if v["fault"] == "GPU_FAIL_STOP")
    assert cohorts(death) == [[0, 1, 2]]
    assert_all_equal(job)
    assert_sound(job)
