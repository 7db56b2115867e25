"""The job that a scenario is played with."""

from __future__ import annotations

from pathlib import Path

from cascade_runtime.agent.config import JobConfig
from cascade_runtime.agent.launcher import make_config
from dashboard.demo import train
from dashboard.demo.scenarios import Scenario


def job_of(
    scenario: Scenario,
    *,
    num_ranks: int,
    num_hosts: int = 1,
    out: Path,
    policy: str | None = None,
) -> JobConfig:
    """The scenario's job, with its trace folder made; its trace tells what is going to happen.

    Args:
        scenario: which.
        num_ranks: at least ``scenario.needs_ranks``.
        num_hosts: agents, as if each were on a host of its own.
        out: where the trace goes.
        policy: by name, or the path of a TOML file; the scenario's own where none is given.

    Raises:
        BadUsage: as ``make_config``.
    """
    script = [str(Path(train.__file__)), "--steps", str(scenario.steps)]
    script += ["--pause-ms", str(scenario.pause_ms)]
    for how in (scenario.late, scenario.cold):
        script += how.arguments() if how is not None else []
    return make_config(
        script,
        num_ranks=num_ranks,
        num_hosts=num_hosts,
        policy=policy or str(policy_file(scenario.policy)),
        trace_dir=out,
        name=scenario.name,
        respawn=scenario.respawn,
    ).telling(list(scenario.story))


def policy_file(name: str) -> Path:
    """A scenario's policy: a file of ``policies/`` beside this one, or the name of a packaged one."""
    own = Path(__file__).with_name("policies") / f"{name}.toml"
    return own if own.exists() else Path(name)
