"""The temporary folders of jobs and zygotes; what killed ones left is removed at the next start."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

CONFIG = "job.json"
ZYGOTE = "zygote.sock"
_PREFIX = "cascade-run-"


def make_run_folder() -> Path:
    """A new folder among the temporary ones; its path is short, since a socket's ends at 107 bytes.

    Folders that nobody holds any longer are removed.

    Raises:
        OSError: no temporary folder can be made.
    """
    for left in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        with suppress(OSError):
            # Without one of these it is being made, and nobody holds it as yet.
            if (left / CONFIG).exists() or (left / ZYGOTE).exists():
                _remove_if_free(left)
    return Path(tempfile.mkdtemp(prefix=_PREFIX))


def own_run_folders() -> Iterator[Path]:
    """This user's folders of jobs that run, or were killed and not cleared away yet."""
    for folder in sorted(Path(tempfile.gettempdir()).glob(f"{_PREFIX}*")):
        with suppress(OSError):
            if folder.lstat().st_uid == os.getuid() and (folder / CONFIG).exists():
                yield folder


@contextmanager
def held(folder: Path) -> Iterator[None]:
    """Keep the folder while this context lasts; several processes may.

    Raises:
        OSError: it is not there.
    """
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(handle, fcntl.LOCK_SH)
        yield
    finally:
        os.close(handle)


def _remove_if_free(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        if os.fstat(handle).st_uid == os.getuid():
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)  # OSError: somebody holds it
            shutil.rmtree(folder, ignore_errors=True)
    finally:
        os.close(handle)
