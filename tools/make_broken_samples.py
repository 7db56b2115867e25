"""Records the samples in which a promise is broken (``make samples``).

    python tools/make_broken_samples.py [NAME ...]

``silent-restore`` is a script of ``examples/``; ``join-no-debt`` is the scenario join-mid-task under an agent
that is wrong on purpose (forgetful_agent.py). Their README lines are in sample_traces/README.md. A run that
was not judged ``violated`` is not kept.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from cascade_runtime.agent.launcher import Launcher
from cascade_runtime.agent.zygote_process import Zygote
from collector.trace.seal import seal_trace
from collector.trace.trace_writer import write_views
from dashboard.demo.injector import Injector
from dashboard.demo.job import job_of, policy_file
from dashboard.demo.scenarios import SCENARIOS

ROOT = Path(__file__).resolve().parent.parent
MAIN = "from dashboard.commands import main; raise SystemExit(main())"
_VIOLATED = 1
"""What ``cascade analyze`` exits with."""

_QUIET_S = 5.0
"""The agent forgets its debts, not its patience: it would wait half a minute, and the sample be longer."""


class Forgetful(Launcher):
    """Runs the wrong agent."""

    agent_module = "tools.forgetful_agent"


def main(names: list[str]) -> int:
    """Record each sample (or those named) in a temporary folder beside its place, then swap it in."""
    if unknown := [name for name in names if name not in SAMPLES]:
        sys.stderr.write(f"no such sample: {', '.join(unknown)}; there are {', '.join(SAMPLES)}\n")
        return 2
    os.environ["CASCADE_HOST_NAME"] = "host-a"
    os.chdir(ROOT)  # where agents find the module
    for name in names or SAMPLES:
        place = ROOT / "sample_traces" / name
        fresh = place.with_name(f".{name}.new")
        shutil.rmtree(fresh, ignore_errors=True)
        if not SAMPLES[name](fresh) or _cascade("analyze", str(fresh)) != _VIOLATED:
            sys.stderr.write(f"{name}: the run was not judged violated; the old one stays\n")
            shutil.rmtree(fresh, ignore_errors=True)
            return 1
        shutil.rmtree(place, ignore_errors=True)
        fresh.rename(place)
    return 0


def silent_restore(into: Path) -> bool:
    """By the script of that name; False when it failed."""
    script = str(ROOT / "examples" / "silent_restore.py")
    return _cascade("run", "--observe", "-n", "4", "--out", str(into), script) == 0


def join_no_debt(into: Path) -> bool:
    """The scenario join-mid-task under an agent that climbs while its debt stands open."""
    scenario = replace(
        SCENARIOS["join-mid-task"],
        name="join-no-debt",
        story=(
            "As join-mid-task, under a host agent that is wrong on purpose: it forgets its debts.",
            "After step 40 a rank is started that never was: NODE_CHURN_HIGH, and the others walk to CAUSAL, "
            "with the newcomer as a cohort of its own. The walk opens a debt.",
            "The newcomer joins and steps by itself; then a walk makes all one cohort.",
            "STABLE_SYNC, back to STRONG, while the debt stands open.",
            "The referee's verdict: violated, L3 at the climb and R3 for a debt that nobody closed.",
        ),
        steps=220,
    )
    with tempfile.TemporaryDirectory(prefix="cascade-policy-") as folder, Zygote() as zygote:
        policy = Path(folder) / "cohorts.toml"
        quiet = f"\n[node_churn]\nquiet_s = {_QUIET_S}\n"
        policy.write_text(policy_file(scenario.policy).read_text() + quiet)
        config = job_of(scenario, num_ranks=4, out=into, policy=str(policy))
        config = config.forking_from(zygote.path)
        with Injector(config, scenario.strikes, lambda text: sys.stderr.write(f"{text}\n")) as done:
            outcome = Forgetful(config).run()
    seal_trace(into)
    write_views(into)
    return outcome.exit_code == 0 and len(done.struck) == 1


SAMPLES: dict[str, Callable[[Path], bool]] = {
    "silent-restore": silent_restore,
    "join-no-debt": join_no_debt,
}


def _cascade(*words: str) -> int:
    return subprocess.run([sys.executable, "-c", MAIN, *words], cwd=ROOT, check=False).returncode


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
