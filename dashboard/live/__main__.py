"""``python -m dashboard.live DATA PARENT_PID``: judges the runs of a collector while they grow.

A process of its own, at a low priority: rules are Python and would hold up the doorway's answers.
It reads the runs' folders as anybody may, and what it finds is stored there as result tables.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
from pathlib import Path

from dashboard.live.watched_runs import WatchedRuns

_LOOK_EVERY_S = 1.0
_NICE = 10

_OOM_SCORE = "500"
"""Of 1000: when memory runs out this ends before the collector, which starts it again."""


def main(data: Path, parent: int) -> int:
    """Judge until the parent is gone."""
    os.nice(_NICE)
    with contextlib.suppress(OSError):  # no such file but on Linux
        Path("/proc/self/oom_score_adj").write_text(_OOM_SCORE)
    runs = WatchedRuns(data, _say, lambda: os.getppid() == parent)
    while os.getppid() == parent:
        runs.look()
        time.sleep(_LOOK_EVERY_S)
    return 0


def _say(text: str) -> None:
    with contextlib.suppress(OSError):
        sys.stderr.write(f"cascade analysis: {text}\n")
        sys.stderr.flush()


if __name__ == "__main__":
    raise SystemExit(main(Path(sys.argv[1]), int(sys.argv[2])))
