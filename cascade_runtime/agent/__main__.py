"""``python -m cascade_runtime.agent CONFIG INDEX``: one host agent (the launcher starts it)."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from cascade_runtime.agent.config import read_config
from cascade_runtime.agent.host import HostAgent


def main() -> int:
    """Serve until the job is over."""
    config = read_config(Path(sys.argv[1]))
    agent = HostAgent(config, int(sys.argv[2]))
    return asyncio.run(agent.run())


if __name__ == "__main__":
    raise SystemExit(main())
