"""``DATA/views.duckdb``: the views over all runs, for any DuckDB client of 1.4 or newer."""

from __future__ import annotations

import fcntl
import hashlib
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from uuid import uuid4

import duckdb

from collector.data_folder import VIEWS_FILE, runs_folder
from collector.schema.views import quoted
from collector.sql.data_views import data_views, present_tables

STORAGE_VERSION = "v1.4.0"
"""The form of the file: the newest that DuckDB 1.4 reads (v1.5.0 it does not)."""

TRIES = 3
"""Files may go while views are made: a tail is sealed, a run is dropped."""

HELD_S = 5.0
"""How long another writer is waited for; one takes a fraction of a second."""

_LOOK_AGAIN_S = 0.01
_MARK = "cascade_views_made_of"

_known: dict[Path, tuple[str, tuple[int, int]]] = {}
"""What this process wrote or found: fingerprint, and (inode, mtime) of the file."""


def write_views_file(data: Path) -> bool:
    """Write ``views.duckdb`` where it is not what the folder needs now; cheap when it is.

    The views name files by absolute globs, so that new segments and new runs are seen without it.
    It must be written again when a table gets its first file or loses its last one, and after the
    folder was moved or the schema has grown. A client that has it open keeps what it opened.

    Args:
        data: the data folder; ``runs/`` may be missing.

    Returns:
        Whether the file was written.

    Raises:
        OSError: the folder cannot be written.
        TimeoutError: another process has been writing it for 5 s (one that was stopped, say).
        duckdb.Error: a Parquet file of a run cannot be read.
    """
    data = data.resolve()
    for _ in range(TRIES - 1):
        with suppress(duckdb.Error):
            return _write(data)
    return _write(data)


def _write(data: Path) -> bool:
    file = data / VIEWS_FILE
    runs = runs_folder(data)
    with _one_writer(runs):
        views = data_views(str(runs), present_tables(runs))
        statements = [view.sql for view in views.values()]
        statements += [
            f"COMMENT ON VIEW {view.name} IS {quoted(view.doc)}" for view in views.values()
        ]
        fingerprint = hashlib.sha256("\0".join([STORAGE_VERSION, *statements]).encode()).hexdigest()
        if _made_of(file) == fingerprint:
            return False
        statements.append(f"CREATE MACRO {_MARK}() AS {quoted(fingerprint)}")
        _publish(file, statements)
        _remember(file, fingerprint)
    return True


@contextmanager
def _one_writer(runs: Path) -> Iterator[None]:
    """Hold the folder of runs against other writers, threads and processes alike.

    The data folder itself is locked by its collector for as long as it runs.
    """
    runs.mkdir(parents=True, exist_ok=True)
    handle = os.open(runs, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    until = time.monotonic() + HELD_S
    try:
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() >= until:
                    what = f"another process has been writing {VIEWS_FILE} for {HELD_S:g} s"
                    raise TimeoutError(what) from None
            time.sleep(_LOOK_AGAIN_S)
        yield
    finally:
        os.close(handle)


def _made_of(file: Path) -> str | None:
    """The fingerprint of the file that is there; None when there is none that can be read."""
    known = _known.get(file)
    if known is not None and known[1] == _identity(file):
        return known[0]
    try:
        with duckdb.connect(str(file), read_only=True) as db:
            ((made_of,),) = db.execute(f"SELECT {_MARK}()").fetchall()
    except duckdb.Error:
        return None
    _remember(file, str(made_of))
    return str(made_of)


def _remember(file: Path, fingerprint: str) -> None:
    identity = _identity(file)
    if identity is not None:
        _known[file] = (fingerprint, identity)


def _identity(file: Path) -> tuple[int, int] | None:
    try:
        stat = file.stat()
    except OSError:
        return None
    return stat.st_ino, stat.st_mtime_ns


def _publish(file: Path, statements: list[str]) -> None:
    for left in file.parent.glob(f".{file.name}-*"):
        left.unlink(missing_ok=True)  # of a writer that was killed: it held the lock
    fresh = file.with_name(f".{file.name}-{uuid4().hex}")
    try:
        with duckdb.connect() as db:
            db.execute(
                f"ATTACH {quoted(str(fresh))} AS fresh (STORAGE_VERSION {quoted(STORAGE_VERSION)})"
            )
            db.execute("USE fresh")
            db.execute("BEGIN")  # or each of the seventy is written and synced by itself
            for statement in statements:
                db.execute(statement)
            db.execute("COMMIT")
            db.execute("USE memory")
            db.execute("DETACH fresh")  # checkpoints: all of it is in the one file then
        fresh.replace(file)
    finally:
        for left in (fresh, fresh.with_name(f"{fresh.name}.wal")):
            with suppress(OSError):
                left.unlink()
