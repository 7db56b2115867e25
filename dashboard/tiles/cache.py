"""What was built of saved traces, kept for the next opening: found, checked, made room for.

It lies in ``$CASCADE_CACHE/tiles``, else in ``cascade/tiles`` of the user's cache folder, never in
the trace. What is not whole, not ours or of another release is ignored.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.metadata
import logging
import os
import shutil
import stat
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from dashboard.tiles.cache_files import HEAD, Unusable, num_bytes, read_content, write_content
from dashboard.tiles.content import Content

MAX_BYTES = 4 << 30
"""Of all that is kept; beyond that, what was not used for longest goes."""

_FORMAT = 2
_NEW = "new-"
_OLD_S = 24 * 3600.0
"""A folder that was begun so long ago is nobody's any more."""

_READ_BY_TILES = ("events", "spool", "results")

_log = logging.getLogger(__name__)


class Place(NamedTuple):
    """Where the content of one trace lies: the folder of all, and the name in it."""

    folder: Path
    name: str


def place_of(trace: Path, folder: Path | None = None) -> Place | None:
    """The place of a trace as its files are now; None when nothing can be kept.

    Args:
        trace: its folder or zip.
        folder: of all that is kept; the user's own when not given.
    """
    try:
        folder = _ours(_default() if folder is None else folder)
        return Place(folder, _name(trace))
    except (OSError, RuntimeError) as error:  # no home, no right to write there
        _log.debug("tiles are not kept: %s", error)
        return None


def story_folder(trace: Path, folder: Path | None = None) -> Path | None:
    """A folder for what else is kept of a trace as its files are now; None when nothing can be.

    Room is made in it, and it goes, as with tiles.
    """
    place = place_of(trace, folder)
    if place is None:
        return None
    made = place.folder / f"{place.name}-story"
    try:
        made.mkdir(mode=0o700, exist_ok=True)
        (made / HEAD).touch()
    except OSError as error:
        _log.debug("nothing is kept: %s", error)
        return None
    return made


def load(place: Place) -> Content | None:
    """What is kept there, mapped from its files; None when there is nothing that can be used."""
    root = place.folder / place.name
    try:
        content = read_content(root)
        os.utime(root / HEAD)
    except FileNotFoundError:
        return None
    except (OSError, Unusable) as error:
        _log.info("what was kept of a trace is not used: %s", error)
        return None
    return content


def save(place: Place, content: Content) -> bool:
    """Keep it, whole or not at all; False when there is no room."""
    size = num_bytes(content)
    if size > MAX_BYTES:
        return False
    made: Path | None = None
    try:
        if shutil.disk_usage(place.folder).free < 2 * size:
            return False
        made = Path(tempfile.mkdtemp(prefix=_NEW, dir=place.folder))  # 0700
        write_content(made, content)
        root = place.folder / place.name
        with contextlib.suppress(FileNotFoundError):
            shutil.rmtree(root)
        made.rename(root)
    except OSError as error:
        _log.info("tiles are not kept: %s", error)
        if made is not None:
            shutil.rmtree(made, ignore_errors=True)
        return False
    _make_room(place)
    return True


def _make_room(place: Place) -> None:
    """Remove what was not used for longest until the rest is small enough."""
    found = []
    for root in place.folder.iterdir():
        with contextlib.suppress(OSError):
            if root.name.startswith(_NEW):
                if time.time() - root.stat().st_mtime > _OLD_S:
                    shutil.rmtree(root, ignore_errors=True)
                continue
            size = sum(file.stat().st_size for file in root.iterdir())
            found.append(((root / HEAD).stat().st_mtime_ns, size, root))
    total = sum(size for _, size, _ in found)
    for _, size, root in sorted(found):
        if total <= MAX_BYTES:
            break
        if root.name not in (place.name, f"{place.name}-story"):
            shutil.rmtree(root, ignore_errors=True)
            total -= size


def _default() -> Path:
    own = os.environ.get("CASCADE_CACHE")
    if own:
        return Path(own) / "tiles"
    user = os.environ.get("XDG_CACHE_HOME")
    return (Path(user) if user else Path.home() / ".cache") / "cascade" / "tiles"


def _ours(folder: Path) -> Path:
    """The folder, made when it is not there.

    Raises:
        OSError: it is another user's, or others may write to it.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
        raise PermissionError(f"{folder} is not a folder of this user")
    if found.st_mode & 0o077:
        folder.chmod(0o700)
    return folder


def _name(trace: Path) -> str:
    """A name that changes with the trace's files and with the release."""
    digest = hashlib.sha256(f"{_FORMAT} {importlib.metadata.version('cascade-timelines')}".encode())
    files = [trace]
    if trace.is_dir():
        files = [trace / "trace.json"]
        for kind in _READ_BY_TILES:
            files += sorted(file for file in (trace / kind).rglob("*") if file.is_file())
    for file in files:
        found = file.stat()
        name = file.relative_to(trace) if trace.is_dir() else trace.resolve()
        digest.update(
            f"{name!s}\0{found.st_size}\0{found.st_mtime_ns}\n".encode("utf-8", "replace")
        )
    return digest.hexdigest()[:40]
