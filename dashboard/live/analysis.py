"""Starts the analysis of live runs beside a collector, and starts it again when it ends."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import threading
from pathlib import Path

_RETRY_S = 5.0
_STOP_S = 2.0
"""How long the process may take to end when it was asked to."""

_log = logging.getLogger(__name__)


class LiveAnalysis:
    """The analysis process of one data folder, for the life of this context.

    Args:
        data: the collector's data folder.
    """

    def __init__(self, data: Path) -> None:
        self._data = data
        self._starting = threading.Lock()
        """Held from asking whether to stop until the process is known to who stops it."""
        self._stopping = threading.Event()
        self._process: subprocess.Popen[bytes] | None = None
        self._thread = threading.Thread(target=self._keep, name="cascade-analysis", daemon=True)

    def __enter__(self) -> LiveAnalysis:
        """Start it."""
        self._thread.start()
        return self

    def __exit__(self, *ignored: object) -> None:
        """Stop it; results are replaced as a whole, so it may be stopped at any moment."""
        with self._starting:  # no process comes after this
            self._stopping.set()
        if self._process is not None:
            self._process.terminate()  # does nothing to one that has ended
            self._thread.join(_STOP_S)
            if self._thread.is_alive():
                self._process.kill()
        self._thread.join(_STOP_S)

    def _start(self) -> subprocess.Popen[bytes] | None:
        """The new process; None when it is time to stop, or when there can be none now."""
        command = [sys.executable, "-m", "dashboard.live", str(self._data), str(os.getpid())]
        with self._starting:
            if self._stopping.is_set():
                return None
            try:
                # A session of its own: Ctrl-C ends the collector, and that ends this.
                self._process = subprocess.Popen(
                    command, stdin=subprocess.DEVNULL, start_new_session=True
                )
            except OSError as error:
                _log.error("the analysis of runs does not start: %s", error)
                return None
            return self._process

    def _keep(self) -> None:
        while not self._stopping.is_set():
            process = self._start()
            if process is not None:
                process.wait()
            self._stopping.wait(_RETRY_S)
