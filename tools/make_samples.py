"""Records ``sample_traces/`` anew from real runs: ``make samples``, or some with ``NAME=rejoin``.

    python tools/make_samples.py [NAME ...] [--into FOLDER]

Every sample is one scenario of ``cascade demo``; its README line is in sample_traces/README.md. A run that
gave another verdict, or took other walks, than its scenario says is not kept: the old sample stays. The
whole list takes about four minutes on an idle machine, and needs one: on a busy one steps take so long
that a rank may be late by itself.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import msgspec

from cascade_runtime.vocabulary.report import Report
from dashboard.demo.scenario import Scenario, moves_of
from dashboard.demo.scenarios import SCENARIOS

ROOT = Path(__file__).resolve().parent.parent
RECORDED = ROOT / "sample_traces"
MAIN = "from dashboard.commands import main; raise SystemExit(main())"
MAX_BYTES = 1_000_000
"""A larger sample is told: every installation carries all of them."""


def main() -> int:
    """Record each in a temporary folder beside its place, then swap it in; 1 when one was not kept."""
    parser = argparse.ArgumentParser(description="record sample traces from real runs")
    parser.add_argument("names", nargs="*", metavar="NAME", help="scenarios (all)")
    parser.add_argument("--into", type=Path, default=RECORDED, metavar="FOLDER")
    arguments = parser.parse_args()
    if unknown := set(arguments.names) - set(SCENARIOS):
        parser.error(f"no such scenario: {', '.join(sorted(unknown))}")
    arguments.into.mkdir(parents=True, exist_ok=True)
    os.environ["CASCADE_HOST_NAME"] = "host-a"
    names = arguments.names or sorted(SCENARIOS)
    kept = [_record(SCENARIOS[name], arguments.into) for name in names]
    return int(not all(kept))


def _record(scenario: Scenario, into: Path) -> bool:
    fresh = into / f".{scenario.name}.new"
    shutil.rmtree(fresh, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix="cascade-samples-") as data:
        command = [sys.executable, "-c", MAIN, "demo", "--headless", "--scenario", scenario.name]
        command += ["--out", str(fresh), "--data", data]
        code = subprocess.run(command, cwd=ROOT, check=False).returncode
    if problem := _problem(scenario, fresh, code):
        sys.stderr.write(f"{scenario.name}: {problem}; the old one stays\n")
        shutil.rmtree(fresh, ignore_errors=True)
        return False
    # Whoever opens a sample makes them: those of an older rule book would be believed.
    shutil.rmtree(fresh / "results")
    size = sum(path.stat().st_size for path in fresh.rglob("*") if path.is_file())
    large = f", more than {MAX_BYTES:,}" if size > MAX_BYTES else ""
    sys.stderr.write(f"{scenario.name}: recorded, {size:,} bytes{large}\n")
    shutil.rmtree(into / scenario.name, ignore_errors=True)
    fresh.rename(into / scenario.name)
    return True


def _problem(scenario: Scenario, trace: Path, code: int) -> str:
    if code != 0:
        return "the run did not give its expected verdict"
    report = msgspec.json.decode((trace / "results" / "report.json").read_bytes(), type=Report)
    if (took := moves_of(report)) != scenario.path:
        return f"the run took other walks than its scenario says: {[tuple(m) for m in took]}"
    return ""


if __name__ == "__main__":
    raise SystemExit(main())
