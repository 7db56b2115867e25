"""Finds the child processes that a test left behind."""

from __future__ import annotations

import os
import time
from pathlib import Path


def children() -> set[int]:
    """Process ids of our children that run statements, zombies too."""
    found = set()
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        try:
            stat = (folder / "stat").read_text()
            line = (folder / "cmdline").read_bytes()
        except OSError:
            continue
        state, parent = stat.rpartition(")")[2].split()[:2]
        if int(parent) == os.getpid() and (state == "Z" or b"collector.sql.child" in line):
            found.add(int(folder.name))
    return found


def wait_until(holds, seconds: float = 20.0) -> None:
    """Until ``holds()``; an assertion fails when it never does."""
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, "it never came to be"
        time.sleep(0.01)
