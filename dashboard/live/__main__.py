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

from cascade_runtime.vocabulary.errors import CascadeError
from collector.data_folder import runs_folder
from collector.sql.views_file import write_views_file
from dashboard.live.run_watch import RunWatch

_LOOK_EVERY_S = 1.0
_NICE = 10


def main(data: Path, parent: int) -> int:
    """Judge until the parent is gone."""
    os.nice(_NICE)
    watches: dict[Path, RunWatch] = {}
    told: dict[Path, str] = {}
    while os.getppid() == parent:
        for root in _roots(data):
            watch = watches.setdefault(root, RunWatch(root))
            if watch.due_s(time.monotonic()) == 0:
                _judge(data, watch, told)
        for root in [root for root in watches if not root.exists()]:
            del watches[root]
        time.sleep(_LOOK_EVERY_S)
    return 0


def _judge(data: Path, watch: RunWatch, told: dict[Path, str]) -> None:
    try:
        if not watch.judge():
            return
        write_views_file(data)  # a result table may have got its first file
        if told.get(watch.root) != watch.verdict:
            told[watch.root] = str(watch.verdict)
            _say(f"run {watch.root.name}: {watch.verdict}")
    except (CascadeError, OSError) as error:
        text = f"run {watch.root.name} cannot be judged: {error}"
        if told.get(watch.root) != text:
            told[watch.root] = text
            _say(text)


def _roots(data: Path) -> list[Path]:
    try:
        folders = sorted(runs_folder(data).iterdir())
    except OSError:
        return []
    return [folder for folder in folders if folder.is_dir() and not folder.name.startswith(".")]


def _say(text: str) -> None:
    with contextlib.suppress(OSError):
        sys.stderr.write(f"cascade analysis: {text}\n")
        sys.stderr.flush()


if __name__ == "__main__":
    raise SystemExit(main(Path(sys.argv[1]), int(sys.argv[2])))
