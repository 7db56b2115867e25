"""``cascade`` verbs that serve, as processes of their own."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
MAIN = "from dashboard.commands import main; raise SystemExit(main())"
LIMIT_S = 60


class Command:
    """One of them. ``ready`` is the line of JSON that it told, ``base`` its address without a path."""

    def __init__(self, *words: object) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", MAIN, *map(str, words)],
            env=os.environ | {"PYTHONPATH": str(ROOT), "DISPLAY": ""},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise AssertionError(self.process.communicate(timeout=LIMIT_S)[1])
        self.ready = json.loads(line)
        self.url = self.ready["url"]
        self.base = self.url.partition("/dash/")[0]

    def stop(self, number: int = signal.SIGINT) -> tuple[int, str, str]:
        self.process.send_signal(number)
        out, err = self.process.communicate(timeout=LIMIT_S)
        return self.process.returncode, out, err


@contextlib.contextmanager
def started(*words: object) -> Iterator[Command]:
    """It, until the end of the context; killed when it still runs then."""
    command = Command(*words)
    try:
        yield command
    finally:
        if command.process.poll() is None:
            command.process.kill()
        command.process.communicate()


def replayed(trace: object) -> contextlib.AbstractContextManager[Command]:
    """``cascade replay`` of a trace, at a free port."""
    return started("replay", trace, "--port", 0, "--no-open", "--json")
