"""What a rank's process tells of itself before anything else."""

from __future__ import annotations

import os

from cascade_runtime.agent.config import JobConfig
from cascade_runtime.agent.control_log import control_comm_id
from cascade_runtime.recorder import Recorder
from cascade_runtime.vocabulary.events import Actors, Groups
from cascade_runtime.vocabulary.identity import Actor


def first_rows(recorder: Recorder, config: JobConfig, agent: int) -> None:
    """Who it is, and the communicator that ranks and agents talk on.

    Args:
        recorder: its own.
        config: the job's.
        agent: the index of its host's agent.
    """
    recorder.row(
        Actors,
        name=f"rank {recorder.actor.rank}",
        kind="rank",
        host=config.host_name(agent),
        pid=os.getpid(),
    )
    everybody = range(config.num_ranks + config.num_hosts)
    recorder.row(
        Groups,
        comm_id=control_comm_id(config.run_id),
        members=[Actor(r) for r in everybody],
        ordinal=0,
        label="control",
    )
