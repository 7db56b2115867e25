"""Puts a file on disk whole or not at all."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from cascade_runtime.vocabulary.errors import BadUsage


def checked_target(path: Path, *, force: bool) -> None:
    """Refuse what cannot be written, before long work is done for it.

    Raises:
        BadUsage: the file is there and ``force`` is not given, or its folder cannot be written to.
    """
    where, folder = str(path), path.absolute().parent
    if path.is_dir():
        raise BadUsage("this is a folder", where=where, hint="name a file: -o report.html")
    if path.exists() and not force:
        raise _there(path)
    if not folder.is_dir():
        raise BadUsage("there is no such folder", where=str(path.parent), hint="make it first")
    if not os.access(folder, os.W_OK):
        raise _cannot(path, "its folder is not writable")


def written(path: Path, text: bytes, *, force: bool) -> None:
    """Write the file beside its place, then move it there.

    Raises:
        BadUsage: as checked_target, or the disk is full.
    """
    beside = path.absolute().parent / f".{path.name[:80]}.{os.urandom(6).hex()}"
    try:
        with beside.open("xb") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        if force:
            beside.replace(path)
        else:
            _put_new(beside, path)
    except OSError as error:
        raise _cannot(path, error.strerror or str(error)) from error
    finally:
        with contextlib.suppress(OSError):
            beside.unlink()


def _put_new(beside: Path, path: Path) -> None:
    """Fails where somebody else's file came in between."""
    try:
        path.hardlink_to(beside)
    except FileExistsError:
        raise _there(path) from None
    except OSError:  # a file system without links
        if path.exists():
            raise _there(path) from None
        beside.replace(path)


def _there(path: Path) -> BadUsage:
    hint = "--force replaces it, -o names another"
    return BadUsage("there is a file of that name already", where=str(path), hint=hint)


def _cannot(path: Path, why: str) -> BadUsage:
    hint = "-o names another place"
    return BadUsage(f"the report cannot be written: {why}", where=str(path), hint=hint)
