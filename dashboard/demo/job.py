"""The job that a scenario is played with."""

from __future__ import annotations

from pathlib import Path

from cascade_runtime.agent.config import JobConfig
from cascade_runtime.agent.launcher import make_config
from dashboard.demo.scenario import Scenario


def job_of(
    scenario: Scenario,
    *,
    num_ranks: int,
    num_hosts: int = 1,
    out: Path,
    policy: str | None = None,
    folder: Path | None = None,
) -> JobConfig:
    """The scenario's job, with its trace folder made; its trace tells what is going to happen.

    Args:
        scenario: which.
        num_ranks: at least ``scenario.needs_ranks``.
        num_hosts: agents, as if each were on a host of its own.
        out: where the trace goes.
        policy: by name, or the path of a TOML file; the scenario's own where none is given.
        folder: what the run before has left, where the scenario has one.

    Raises:
        BadUsage: as ``make_config``.
    """
    script = [_script(scenario), "--steps", str(scenario.steps)]
    script += ["--pause-ms", str(scenario.pause_ms), *scenario.arguments]
    for how in (scenario.late, scenario.cold):
        script += how.arguments() if how is not None else []
    return make_config(
        [*script, *_folder(folder)],
        num_ranks=num_ranks,
        num_hosts=num_hosts,
        mode=scenario.mode,
        policy=policy or str(policy_file(scenario.policy)),
        trace_dir=out,
        name=scenario.name,
        respawn=scenario.respawn,
    ).telling(list(scenario.story))


def run_before(scenario: Scenario, *, num_ranks: int, folder: Path) -> JobConfig:
    """The run before the scenario's own; it leaves things in ``folder``, its trace among them."""
    return make_config(
        [_script(scenario), *scenario.before, *_folder(folder)],
        num_ranks=num_ranks,
        trace_dir=folder / "trace",
        name=f"{scenario.name}-before",
    )


def _script(scenario: Scenario) -> str:
    return str(Path(__file__).with_name(f"{scenario.script}.py"))


def _folder(folder: Path | None) -> list[str]:
    return [] if folder is None else ["--folder", str(folder)]


def policy_file(name: str) -> Path:
    """A scenario's policy: a file of ``policies/`` beside this one, or the name of a packaged one."""
    own = Path(__file__).with_name("policies") / f"{name}.toml"
    return own if own.exists() else Path(name)
