"""The sample with a broken promise: who is named, by what witness, and that the example does it again."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from analyzer import analyze
from cascade_runtime.vocabulary.report import Report
from collector.trace.samples import resolve_trace
from collector.trace.trace_folder import open_trace
from dashboard.commands import main
from tests.serving import MAIN, ROOT

SCRIPT = ROOT / "examples" / "silent_restore.py"


def judged(trace: Path) -> Report:
    with open_trace(trace) as source:
        return analyze(source).report


def convicts(report: Report, rank: int, step: int) -> None:
    """The rank is named from the step on in which it went back, and nobody else."""
    assert report.verdict == "violated"
    assert {v.code for v in report.violations} == {"G1"}
    assert {v.rank for v in report.violations} == {rank}
    assert report.violations[0].sentence.startswith(f"rank {rank} differs from ")
    versions = [int(v.sentence.split("at version ")[1].split()[0]) for v in report.violations]
    assert step <= min(versions) <= step + 4  # digests go round the objects, one a step
    assert versions == sorted(versions)


def test_the_sample_is_convicted(capsys: pytest.CaptureFixture[str]) -> None:
    report = judged(resolve_trace("silent-restore"))
    convicts(report, rank=2, step=25)
    assert all(len(v.witness) >= 2 for v in report.violations)
    assert main(["analyze", "silent-restore"]) == 1
    assert "VIOLATED" in capsys.readouterr().out
    sql = "SELECT count(*) AS n, min(rank) AS low, max(rank) AS high FROM violation_list"
    assert main(["sql", "silent-restore", sql, "--format", "csv"]) == 0
    assert capsys.readouterr().out.split() == ["n,low,high", f"{len(report.violations)},2,2"]


@pytest.mark.chaos
@pytest.mark.timeout(600)
@pytest.mark.parametrize(("bad_rank", "verdict"), [(1, "violated"), (-1, "ok")])
def test_the_example_breaks_the_promise_only_when_it_goes_back(
    tmp_path: Path, bad_rank: int, verdict: str
) -> None:
    words = ["run", "--observe", "-n", "3", "--out", tmp_path / "trace", SCRIPT, "--steps", "20"]
    words += ["--bad-rank", bad_rank, "--bad-step", "13"]
    done = subprocess.run(
        [sys.executable, "-c", MAIN, *map(str, words)],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=500,
    )
    assert done.returncode == 0, done.stderr
    report = judged(tmp_path / "trace")
    if verdict == "violated":
        convicts(report, rank=bad_rank, step=13)
    else:
        assert (report.verdict, report.violations) == ("ok", [])
