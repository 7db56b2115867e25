"""Starts the analysis of live runs beside a collector, and starts it again when it ends."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

_RETRY_S = 5.0


class LiveAnalysis:
    """The analysis process of one data folder, for the life of this context.

    Args:
        data: the collector's data folder.
    """

    def __init__(self, data: Path) -> None:
        self._data = data
        self._stopping = threading.Event()
        self._process: subprocess.Popen[bytes] | None = None
        self._thread = threading.Thread(target=self._keep, name="cascade-analysis", daemon=True)

    def __enter__(self) -> LiveAnalysis:
        """Start it."""
        self._start()
        self._thread.start()
        return self

    def __exit__(self, *ignored: object) -> None:
        """Stop it; results are replaced as a whole, so it may be stopped at any moment."""
        self._stopping.set()
        process = self._process
        if process is not None and process.poll() is None:
            process.terminate()
        self._thread.join()

    def _start(self) -> None:
        command = [sys.executable, "-m", "dashboard.live", str(self._data), str(os.getpid())]
        self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL)

    def _keep(self) -> None:
        while not self._stopping.is_set():
            assert self._process is not None
            self._process.wait()
            if not self._stopping.wait(_RETRY_S):
                self._start()
