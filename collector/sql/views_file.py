"""``DATA/views.duckdb``: the views over all runs, for any DuckDB client of 1.4 or newer."""

from __future__ import annotations

import hashlib
import threading
from contextlib import suppress
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

_MARK = "cascade_views_made_of"

_lock = threading.Lock()
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
        duckdb.Error: a Parquet file of a run cannot be read.
    """
    data = data.resolve()
    for _ in range(TRIES - 1):
        with suppress(duckdb.Error):
            return _write(data)
    return _write(data)


def _write(data: Path) -> bool:
    file = data / VIEWS_FILE
    with _lock:
        runs = runs_folder(data)
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
        left.unlink(missing_ok=True)  # of a collector that was killed
    fresh = file.with_name(f".{file.name}-{uuid4().hex}")
    try:
        with duckdb.connect() as db:
            db.execute(
                f"ATTACH {quoted(str(fresh))} AS fresh (STORAGE_VERSION {quoted(STORAGE_VERSION)})"
            )
            db.execute("USE fresh")
            for statement in statements:
                db.execute(statement)
            db.execute("USE memory")
            db.execute("DETACH fresh")  # checkpoints: all of it is in the one file then
        fresh.replace(file)
    finally:
        for left in (fresh, fresh.with_name(f"{fresh.name}.wal")):
            with suppress(OSError):
                left.unlink()
