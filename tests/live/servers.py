"""Real collectors in processes of their own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import msgspec

MAIN = "from dashboard.commands import main; raise SystemExit(main())"


def command(*words: str) -> list[str]:
    """The ``cascade`` command as a process of this interpreter."""
    return [sys.executable, "-c", MAIN, *words]


class Server:
    """``cascade serve`` on one data folder; may be killed and started again on its port."""

    def __init__(self, data: Path, *options: str) -> None:
        self.data = data
        self._options = options
        self._port = "0"
        self._process: subprocess.Popen[bytes] | None = None
        self.url = ""
        self.start()

    def start(self) -> None:
        words = ["serve", "--json", "--data", str(self.data), "--port", self._port, *self._options]
        self.data.mkdir(parents=True, exist_ok=True)
        with (self.data.parent / f"{self.data.name}.log").open("ab") as log:
            self._process = subprocess.Popen(command(*words), stdout=subprocess.PIPE, stderr=log)
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, (self.data.parent / f"{self.data.name}.log").read_text()
        self.url = msgspec.json.decode(line)["url"]
        self._port = self.url.rsplit(":", 1)[1]

    def kill(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()

    def stop(self) -> int:
        assert self._process is not None
        if self._process.poll() is None:
            self._process.terminate()
        status = self._process.wait(timeout=30)
        if self._process.stdout is not None:
            self._process.stdout.close()
        return status

    def get(self, path: str) -> Any:
        answer = httpx.get(self.url + path, timeout=10)
        answer.raise_for_status()
        return answer.json()

    def folder(self, run_id: str) -> Path:
        return self.data / "runs" / run_id


def cascade(*words: str, timeout: float = 100) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(*words),
        capture_output=True,
        text=True,
        check=False,
        timeout=timeout,
        env={**os.environ, "NO_COLOR": "1"},
    )
