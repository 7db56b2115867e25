"""``python -m cascade_runtime.agent CONFIG INDEX LAUNCHER_PID``: one host agent (the launcher starts it)."""

from __future__ import annotations

import asyncio
import ctypes
import gc
import os
import signal
import sys
from pathlib import Path

from cascade_runtime.agent.config import read_config
from cascade_runtime.agent.host import HostAgent, say_why
from cascade_runtime.agent.journal import JournalLost
from cascade_runtime.agent.run_folder import held

_PR_SET_PDEATHSIG = 1


def main() -> int:
    """Serve until the job is over."""
    _end_with_launcher(int(sys.argv[3]))
    # What was imported stays: a collection of it would hold up the loop for 25 ms at any moment.
    gc.collect()
    gc.freeze()
    config = read_config(Path(sys.argv[1]))
    with held(Path(config.run_dir)):
        try:
            agent = HostAgent(config, int(sys.argv[2]))
            return asyncio.run(agent.run())
        except JournalLost as error:
            return say_why(error)


def _end_with_launcher(launcher: int) -> None:
    """SIGTERM when the launcher dies: nobody would be left to stop the job."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    if os.getppid() != launcher:  # it was gone before we could ask
        os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    raise SystemExit(main())
