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
    policy: str = "default",
) -> JobConfig:
    """The scenario's job, with its trace folder made; its trace tells what is going to happen.

    Args:
        scenario: which.
        num_ranks: at least ``scenario.needs_ranks``.
        num_hosts: agents, as if each were on a host of its own.
        out: where the trace goes.
        policy: by name, or the path of a TOML file.

    Raises:
        BadUsage: as ``make_config``.
    """
    script = [str(Path(train.__file__)), "--steps", str(scenario.steps)]
    script += ["--pause-ms", str(scenario.pause_ms)]
    if scenario.late is not None:
        script += scenario.late.arguments()
    return make_config(
        script,
        num_ranks=num_ranks,
        num_hosts=num_hosts,
        policy=policy,
        trace_dir=out,
        name=scenario.name,
        respawn=scenario.respawn,
    ).telling(list(scenario.story))
