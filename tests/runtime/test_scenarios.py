"""The demo's scenarios, played: what is done is done, and the job takes the walks that were told.

Those that wait for half a minute of quiet are played by a policy that asks for two seconds; as they are,
`make samples` plays them, and keeps none that took other walks.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from analyzer import analyze
from cascade_runtime.agent.launcher import Launcher
from collector.trace.trace_folder import open_trace
from dashboard.demo.faults import KillAgent
from dashboard.demo.injector import Injector
from dashboard.demo.job import job_of, run_before
from dashboard.demo.scenario import Scenario, moves_of
from dashboard.demo.scenarios import SCENARIOS
from tests.runtime.policies import policy_with

NEVER_MS = 100_000.0
BUSY_MACHINE = {
    ("link_delay", "min_ms"): NEVER_MS,
    ("rank_skew", "min_ms"): NEVER_MS,
    ("rank_skew", "stall_min_ms"): NEVER_MS,
}
"""A machine that tests share delays reductions and ranks by itself; that is not what is told."""

SOON_QUIET = {("node_churn", "quiet_s"): 2.0}
pytestmark = [pytest.mark.chaos, pytest.mark.timeout(120)]


def play(
    scenario: Scenario, zygote: Path, folder: Path, limits: dict[tuple[str, str], float]
) -> list[str]:
    """What was otherwise than its scenario says."""
    policy = policy_with(limits, folder / "policy.toml")
    left = folder / "left" if scenario.before else None
    if left is not None:
        earlier = run_before(scenario, num_ranks=4, folder=left)
        assert Launcher(earlier.forking_from(zygote)).run().finished == []
    config = job_of(scenario, num_ranks=4, out=folder / "trace", policy=str(policy), folder=left)
    # The survivors' climb comes before the return, as it does on an idle machine.
    config = msgspec.structs.replace(config, zygote=str(zygote), respawn_delay_s=2.0)
    with Injector(config, scenario.strikes, lambda text: None) as injector:
        outcome = Launcher(config).run()
    with open_trace(folder / "trace") as source:
        report = analyze(source).report
        assert source.meta.story == list(scenario.story)
    wrong = []
    if len(injector.struck) != len(scenario.strikes):
        wrong.append(f"struck: {injector.struck}")
    lost = {s.rank for s in scenario.strikes if not isinstance(s, KillAgent)}
    if outcome.finished != [r for r in range(4) if r not in lost or scenario.respawn]:
        wrong.append(f"finished: {outcome.finished}")
    if report.verdict != scenario.expected:
        wrong += [report.verdict, *(v.sentence for v in report.violations[:5])]
        wrong += [f"{c.code}: {c.reason}" for c in report.checks if c.verdict == "unknown"]
    if moves_of(report) != scenario.path:
        wrong.append(f"walks: {[tuple(move) for move in moves_of(report)]}")
    return wrong


@pytest.mark.parametrize("name", ["kill-rank0", "freeze", "agent-dies"])
def test_a_short_one(zygote: Path, tmp_path: Path, name: str) -> None:
    assert play(SCENARIOS[name], zygote, tmp_path, BUSY_MACHINE) == []


def test_a_late_rank(zygote: Path, tmp_path: Path) -> None:
    """One walk down, one climb: no flapping."""
    limits = {("link_delay", "min_ms"): NEVER_MS}
    assert play(SCENARIOS["straggler"], zygote, tmp_path, limits) == []


@pytest.mark.parametrize("name", ["rejoin", "two-dead"])
def test_one_that_waits_for_quiet(zygote: Path, tmp_path: Path, name: str) -> None:
    short = replace(SCENARIOS[name], steps=260, pause_ms=25.0)
    assert play(short, zygote, tmp_path, BUSY_MACHINE | SOON_QUIET) == []


@pytest.mark.parametrize(
    ("name", "code", "ranks"), [("stale-plan", "T1", [2]), ("resume-wrong", "M1", [0, 1, 2, 3])]
)
def test_one_in_which_something_wrong_is_done(
    zygote: Path, tmp_path: Path, name: str, code: str, ranks: list[int]
) -> None:
    """It is found, once for each that did it, and nothing else is."""
    assert play(SCENARIOS[name], zygote, tmp_path, BUSY_MACHINE) == []
    with open_trace(tmp_path / "trace") as source:
        report = analyze(source).report
    assert sorted((v.code, v.rank) for v in report.violations) == [(code, r) for r in ranks]


def test_enforced_the_stale_plan_is_not_acted_on(zygote: Path, tmp_path: Path) -> None:
    enforced = replace(SCENARIOS["stale-plan"], mode="enforce", expected="ok")
    assert play(enforced, zygote, tmp_path, BUSY_MACHINE) == []
