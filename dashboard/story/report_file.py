"""``results/report.json`` of a run's folder, read again only when it has changed."""

from __future__ import annotations

import threading
from pathlib import Path

import msgspec

from cascade_runtime.vocabulary.report import Report


class ReportFile:
    """The report that lies in a run's folder.

    Args:
        root: the run's folder.
    """

    def __init__(self, root: Path) -> None:
        self._file = root / "results" / "report.json"
        self._reading = threading.Lock()
        self._stamp: tuple[int, int] | None = None
        self._report: Report | None = None

    def stamp(self) -> tuple[int, int]:
        """(inode, mtime in ns); zeros when there is no report."""
        try:
            stat = self._file.stat()
        except OSError:
            return 0, 0
        return stat.st_ino, stat.st_mtime_ns

    def read(self) -> Report | None:
        """The report; None when there is none that this release understands.

        It is replaced as a whole and, for a moment, not there: the one read before stands then.
        """
        stamp = self.stamp()
        with self._reading:
            if stamp == (0, 0) or stamp == self._stamp:
                return self._report
            try:
                report = msgspec.json.decode(self._file.read_bytes(), type=Report)
            except FileNotFoundError:
                return self._report
            except (OSError, msgspec.MsgspecError, RecursionError):
                report = None
            self._report, self._stamp = report, stamp
            return report
