"""Connects a process that opens its first State to its host agent."""

from __future__ import annotations

import os
from pathlib import Path

from cascade_runtime.agent.config import read_config
from cascade_runtime.agent.control_log import ControlLog
from cascade_runtime.progress import ProgressWord
from cascade_runtime.rank.first_rows import first_rows
from cascade_runtime.rank.link import AgentLink
from cascade_runtime.recorder import Recorder
from cascade_runtime.state.session import StateSession
from cascade_runtime.vocabulary.errors import BadUsage
from cascade_runtime.vocabulary.identity import Actor


def open_session() -> StateSession:
    """This process's session, once the job's first view is there.

    Raises:
        BadUsage: not under ``cascade run``, or the other ranks do not come.
    """
    run_dir = os.environ.get("CASCADE_RUN_DIR")
    if run_dir is None:
        raise BadUsage(
            "this process was not started by cascade run, so it has no host agent",
            where="State",
            hint="start the job with: cascade run -n N script.py",
        )
    config = read_config(Path(run_dir) / "job.json")
    actor = Actor(int(os.environ["RANK"]), int(os.environ.get("CASCADE_INCARNATION", "0")))
    agent = int(os.environ["CASCADE_AGENT"])
    recorder = Recorder(Path(config.trace_dir) / "spool", config.run_id, actor)
    first_rows(recorder, config, agent)
    link = AgentLink(config.socket_path(agent), actor, ControlLog(recorder))
    session = StateSession(config, recorder, link, ProgressWord(config.progress_path(actor)))
    session.begin()
    return session
