"""The working folder of children: empty but for a link to the runs."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path

from collector.sql.messages import RUNS

_PREFIX = "cascade-sql-"


class Place:
    """A folder of its own among the temporary ones, locked while it is in use.

    Folders that a killed collector left behind are removed: nobody holds their lock.

    Args:
        runs: the folder of runs.

    Raises:
        OSError: no temporary folder can be made.
    """

    def __init__(self, runs: Path) -> None:
        _remove_leftovers(Path(tempfile.gettempdir()))
        self.path = Path(tempfile.mkdtemp(prefix=_PREFIX))
        self._lock = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        # The link comes after the lock: a folder without it is being made, or was left as it was.
        (self.path / RUNS).symlink_to(runs)

    def close(self) -> None:
        """Remove it."""
        shutil.rmtree(self.path, ignore_errors=True)
        with suppress(OSError):
            os.close(self._lock)


def _remove_leftovers(folder: Path) -> None:
    for left in folder.glob(f"{_PREFIX}*"):
        with suppress(OSError):
            if (left / RUNS).is_symlink() and left.lstat().st_uid == os.getuid():
                _remove_if_free(left)


def _remove_if_free(folder: Path) -> None:
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)  # OSError: it is in use
        shutil.rmtree(folder, ignore_errors=True)
    finally:
        os.close(opened)
