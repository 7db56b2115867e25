"""The temporary folders of jobs and zygotes; what killed ones left is removed at the next start."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from cascade_runtime.vocabulary.errors import BadUsage

CONFIG = "job.json"
ZYGOTE = "zygote.sock"
_PREFIX = "cascade-run-"
SHORT_PLACE = "/tmp"  # noqa: S108  # folders of mode 0700 with names that nobody can know before

SOCKET_PATH_BYTES = 107
"""The longest path that a socket can have: sun_path of unix(7), without its closing zero."""

LONGEST_NAME = "join-2147483647-9999.sock"
"""Of the sockets in such a folder."""


def make_run_folder() -> Path:
    """A new folder among the temporary ones, or in /tmp where their path is too long for a socket.

    Folders that nobody holds any longer are removed.

    Raises:
        BadUsage: no temporary folder can be made.
    """
    places = _places()
    for left in _run_folders(places):
        with suppress(OSError):
            # Without one of these it is being made, and nobody holds it as yet.
            if (left / CONFIG).exists() or (left / ZYGOTE).exists():
                _remove_if_free(left)
    where = next((place for place in places if _is_short(place)), SHORT_PLACE)
    try:
        return Path(tempfile.mkdtemp(prefix=_PREFIX, dir=where))
    except OSError as error:
        raise BadUsage(
            f"no folder can be made for the job's sockets: {error.strerror}",
            where=where,
            hint="set TMPDIR to a folder with a short path that you may write to",
        ) from error


def _places() -> list[str]:
    """Where run folders may lie."""
    return list(dict.fromkeys((tempfile.gettempdir(), SHORT_PLACE)))


def _is_short(place: str) -> bool:
    path = Path(place) / f"{_PREFIX}{'x' * 8}" / LONGEST_NAME
    return len(os.fsencode(path)) <= SOCKET_PATH_BYTES


def _run_folders(places: list[str]) -> list[Path]:
    return sorted(found for place in places for found in Path(place).glob(f"{_PREFIX}*"))


def own_run_folders() -> Iterator[Path]:
    """This user's folders of jobs that run, or were killed and not cleared away yet."""
    for folder in _run_folders(_places()):
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
