"""The demo's collector: a process of its own, started again where it was when it dies."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import msgspec

from cascade_runtime.vocabulary.errors import BadUsage

LOG = "collector.log"
"""What the collector says, in its data folder: the demo's own lines stay readable."""

_MAX_STARTS = 10


class _Ready(msgspec.Struct):
    url: str
    pid: int


class DemoCollector:
    """``cascade serve`` for the life of this context.

    Args:
        data: its data folder.
        say: tells the person what happens.
    """

    def __init__(self, data: Path, say: Callable[[str], None]) -> None:
        self.data = data
        self.url = ""
        self._say = say
        self._stopping = threading.Event()
        self._process: subprocess.Popen[bytes] | None = None
        self._thread = threading.Thread(target=self._keep, name="demo-collector", daemon=True)

    def __enter__(self) -> DemoCollector:
        """Start it and wait until it answers.

        Raises:
            BadUsage: it does not start; what it said is on stderr.
        """
        self.data.mkdir(parents=True, exist_ok=True)
        ready = self._start("0")
        if ready is None:
            raise BadUsage(
                f"the collector does not start: {self._last_words()}",
                where=str(self.data),
                hint="give another folder with --data",
            )
        self.url = ready.url
        self._say(f"the collector is at {ready.url} (pid {ready.pid}), its data in {self.data}")
        self._thread.start()
        return self

    def __exit__(self, *ignored: object) -> None:
        """Stop it: everything that it took is in the runs' folders then."""
        self._stopping.set()
        if self._process is not None and self._process.poll() is None:
            self._process.terminate()
        if self._thread.is_alive():
            self._thread.join()

    def _start(self, port: str) -> _Ready | None:
        command = [sys.executable, "-c", _MAIN, "serve", "--json"]
        command += ["--data", str(self.data), "--port", port, "--log-format", "text"]
        with (self.data / LOG).open("ab") as log:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                start_new_session=True,
            )
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            self._process.wait()
            return None
        return msgspec.json.decode(line, type=_Ready)

    def _last_words(self) -> str:
        lines = (self.data / LOG).read_text(errors="replace").splitlines()
        return lines[-1] if lines else "it said nothing"

    def _keep(self) -> None:
        """Start it again when it ends; it finds its data and its senders where they were."""
        port = self.url.rsplit(":", 1)[1]
        for _ in range(_MAX_STARTS):
            assert self._process is not None
            status = self._process.wait()
            if self._stopping.is_set():
                return
            self._say(f"the collector ended with status {status}; starting it again")
            ready = self._start(port)
            if ready is not None:
                self._say(f"the collector is back at {ready.url} (pid {ready.pid})")


_MAIN = "from dashboard.commands import main; raise SystemExit(main())"
