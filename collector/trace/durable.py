"""Files that are either there and whole, or not there: temp name, fsync, rename."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO
from uuid import uuid4

from cascade_runtime.vocabulary.errors import BadUsage

_HALF = ".tmp"


def publish(final: Path, write: Callable[[BinaryIO], object]) -> None:
    """Write a file under a hidden name, make it durable, then give it its name.

    Args:
        final: the file's name; what stood there is replaced.
        write: writes the content into the open file.
    """
    hidden = final.with_name(f".{uuid4().hex}{_HALF}")
    try:
        with hidden.open("wb") as out:
            write(out)
            out.flush()
            os.fsync(out.fileno())
        hidden.replace(final)
    except (Exception, KeyboardInterrupt):
        hidden.unlink(missing_ok=True)
        raise
    sync_folder(final.parent)


def remove_leftovers(folder: Path) -> None:
    """Remove what a killed writer left half written in a folder; nobody may be writing there now."""
    for half in folder.glob(f".*{_HALF}"):
        half.unlink()


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def alone_in(folder: Path, doing: str) -> Iterator[None]:
    """Hold a folder against other processes that also ask for it; nothing is written into it.

    Raises:
        BadUsage: another process holds it.
    """
    handle = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise BadUsage(
                f"another process is {doing} this trace", where=str(folder), hint="wait for it"
            ) from error
        yield
    finally:
        os.close(handle)
