"""Shared state between real processes: a planner and workers without torch, on two hosts."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import cascade_runtime
from cascade_runtime import job as public
from cascade_runtime.vocabulary.errors import BadUsage
from tests.runtime.jobs import FinishedJob, JobRunner

SCRIPT = Path(__file__).parent / "scripts" / "plans.py"
ROUNDS = 6
ALL = list(range(1, ROUNDS + 1))
chaos = [pytest.mark.chaos, pytest.mark.timeout(90)]


def play(jobs: JobRunner, *how: str, rounds: int = ROUNDS, wait: str = "", **options: Any) -> Any:
    """The job, and what each rank saved."""
    job = jobs.run(
        str(rounds), *how, script=SCRIPT, ranks=4, hosts=2, env={"PLANS": wait}, **options
    )
    said = {int(p.stem[4:]): json.loads(p.read_text()) for p in job.saved.glob("rank*.json")}
    return job, said


def assert_ok(job: FinishedJob) -> None:
    assert job.verdict() == "ok", [v.sentence for v in job.report.violations] + [
        (c.code, c.reason) for c in job.report.checks if c.verdict == "unknown"
    ]


class TestStates:
    pytestmark = chaos

    def test_enforced_nobody_acts_on_a_plan_that_it_knows_to_be_replaced(
        self, jobs: JobRunner
    ) -> None:
        """Plans come late at one worker, another holds on to the old one: both act on the new one."""
        job, said = play(jobs, "bare:1", "keeps:2", "late:3", "asks:3")
        assert job.outcome.finished == [0, 1, 2, 3]
        assert {r: said[r]["acted"] for r in (1, 2, 3)} == {1: ALL, 2: ALL, 3: ALL}
        assert said[1]["torch"] is False
        waits = [text for text in said[3]["told"] if "is held back until update 0:" in text]
        assert waits, said[3]["told"]
        assert "version 2 has arrived and is held back until update 0:3, its cause" in waits[0]
        assert_ok(job)
        assert {(r.group_id, r.regime) for r in job.report.regimes} == {
            ("state/plan", "CAUSAL"),
            ("state/work", "CAUSAL"),
            ("world", "STRONG"),
        }
        acts = [r for r in job.rows("reads") if r["use"] == "act"]
        assert len(acts) == 3 * ROUNDS
        assert {c.code: c.num_checked for c in job.report.checks}["T1"] == 3 * ROUNDS

    def test_observed_they_do_and_the_referee_names_each_act(self, jobs: JobRunner) -> None:
        job, said = play(jobs, "keeps:2", "late:3", mode="observe")
        assert job.outcome.exit_code == 0
        assert said[1]["acted"] == ALL
        assert said[2]["acted"] == [1, *ALL[:-1]]
        assert job.verdict() == "violated"
        acts: dict[int, list[int]] = {}
        for row in sorted(job.rows("reads"), key=lambda r: r["seq"]):
            if row["use"] == "act":
                acts.setdefault(row["rank"], []).append(row["seq"])
        wrong = {
            (rank, seq)
            for rank in (1, 2, 3)
            for seq, number, should in zip(acts[rank], said[rank]["acted"], ALL, strict=True)
            if number != should
        }
        assert {rank for rank, _ in wrong} == {2, 3}
        found = {(v.rank, v.seq): v for v in job.report.violations if v.code == "T1"}
        assert set(found) == wrong
        first = found[(2, acts[2][1])]
        assert "rank 2 acted on plan/route at update 0:1" in first.sentence
        assert "the newer update 0:3 (version 2) happened before" in first.sentence
        assert first.group_id == "state/plan"

    def test_what_comes_twice_and_in_the_wrong_order_harms_nobody(self, jobs: JobRunner) -> None:
        job, said = play(jobs, "twice:2", "twice:3")
        assert {r: said[r]["acted"] for r in (1, 2, 3)} == {1: ALL, 2: ALL, 3: ALL}
        assert_ok(job)

    @pytest.mark.parametrize("whose", [0, 3])
    def test_puts_survive_the_agent(self, jobs: JobRunner, whose: int) -> None:
        """It is killed just before a put; started again, it has everything from its ranks."""
        job, said = play(jobs, f"orphan:{whose}", rounds=20)
        assert job.outcome.finished == [0, 1, 2, 3]
        assert {r: len(said[r]["acted"]) for r in (1, 2, 3)} == {1: 20, 2: 20, 3: 20}
        assert_ok(job)
        agent = 4 + whose // 2
        assert {r["incarnation"] for r in job.rows("actors") if r["rank"] == agent} == {0, 1}

    def test_a_worker_that_comes_back_knows_what_was_put(self, jobs: JobRunner) -> None:
        job, said = play(jobs, "dies:1", rounds=30, respawn=1, wait="--wait")
        assert job.outcome.finished == [0, 1, 2, 3]
        assert said[2]["acted"] == list(range(1, 31))
        assert_ok(job)
        back = [r for r in job.rows("updates") if r["rank"] == 1 and r["incarnation"] == 1]
        assert [r for r in back if r["object"] == "plan/route" and r["action"] == "applied"]
        moves = [(t.from_regime, t.to_regime, t.fault) for t in job.report.transitions]
        assert moves[0] == ("STRONG", "CAUSAL", "GPU_FAIL_STOP")

    def test_the_planner_that_comes_back_puts_on_top_of_what_it_had_put(
        self, jobs: JobRunner
    ) -> None:
        """It knows its own earlier plans before its first put, whose version goes on from them."""
        job, said = play(jobs, "dies:0", rounds=10, respawn=1)
        assert job.outcome.finished == [0, 1, 2, 3]
        assert {r: said[r]["acted"] for r in (1, 2, 3)} == dict.fromkeys((1, 2, 3), range_to(10))
        assert said[0]["put"] == range_to(10)[4:]
        assert_ok(job)


def range_to(last: int) -> list[int]:
    return list(range(1, last + 1))


def test_outside_a_job_it_says_how_to_start_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CASCADE_RUN_DIR", raising=False)
    with pytest.raises(BadUsage, match="cascade run -n N"):
        cascade_runtime.State("plan")


def test_a_process_with_a_state_does_not_train(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(public._state, "finishers", [lambda: None])
    with pytest.raises(BadUsage, match="opened a State"):
        public.attach(None, None)


WATCHED = """
import sys
from cascade_runtime.torch_import import when_torch_is_imported
called = []
when_torch_is_imported(lambda: called.append("torch" in sys.modules))
import importlib.util
import json
for _ in range(2):  # others look whether it is there, without importing it
    spec = importlib.util.find_spec("torch")
    assert spec is not None and spec.origin.endswith("__init__.py")
assert importlib.util.find_spec("torch_that_is_not_there") is None
assert called == []
import torch
assert "torch_import" not in type(torch.__loader__).__module__
assert called == [True] and torch.zeros(1).item() == 0, called
import torch
assert called == [True]
when_torch_is_imported(lambda: called.append("at once"))
assert called == [True, "at once"]
assert not any("torch_import" in type(f).__module__ for f in sys.meta_path)
"""


def test_torch_is_watched_for_and_not_imported() -> None:
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}
    done = subprocess.run(
        [sys.executable, "-c", WATCHED], capture_output=True, text=True, env=environment, timeout=80
    )
    assert done.returncode == 0, done.stderr
