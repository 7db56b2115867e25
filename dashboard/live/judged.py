"""``results/judged.json``: of what files and by which release a run was judged."""

from __future__ import annotations

import hashlib
import importlib.metadata
from contextlib import suppress
from functools import cache
from pathlib import Path

import msgspec

import analyzer
from collector.trace.durable import publish

_MARK = "judged.json"

LIVE_S = 3600.0
"""A run that did not end and brought nothing for so long is not waited for any more."""

Signature = frozenset[tuple[str, int, int]]
"""(path, inode, mtime) of the files that an analysis reads."""


class _Judged(msgspec.Struct):
    version: str
    files: str


def has_mark(root: Path) -> bool:
    """Whether an analysis of a whole run was the last one; of which rows, ``was_judged`` tells."""
    return (root / "results" / _MARK).exists()


def signature_of(root: Path) -> Signature:
    """What an analysis of this folder would read now; ``root`` is resolved."""
    files = [root / "trace.json", *root.glob("events/*/*.parquet"), *root.glob("spool/*/*.seg")]
    # A file without a stamp was sealed or dropped meanwhile.
    return frozenset((str(file), *stamp) for file in files if (stamp := stamp_of(file)) is not None)


def stamp_of(file: Path) -> tuple[int, int] | None:
    """Inode and mtime (ns); None when it is not there."""
    try:
        stat = file.stat()
    except OSError:
        return None
    return stat.st_ino, stat.st_mtime_ns


def was_judged(root: Path, signature: Signature) -> bool:
    """Whether the report that is there is this release's, of exactly these files.

    Another release may have other rules, so its reports are made anew.
    """
    results = root / "results"
    try:
        mark = msgspec.json.decode((results / _MARK).read_bytes(), type=_Judged)
    except (OSError, msgspec.MsgspecError):
        return False
    return mark == _mark(root, signature) and (results / "report.json").exists()


def mark_judged(root: Path, signature: Signature) -> None:
    """Note it beside the report, which another analysis replaces together with this.

    That it cannot be written is no failure: the run is judged once more then.
    """
    mark = msgspec.json.encode(_mark(root, signature))
    with suppress(OSError):
        publish(root / "results" / _MARK, lambda out: out.write(mark))


def _mark(root: Path, signature: Signature) -> _Judged:
    files = sorted((str(Path(path).relative_to(root)), *rest) for path, *rest in signature)
    digest = hashlib.sha256(msgspec.json.encode(files)).hexdigest()
    return _Judged(version=_release(), files=digest)


@cache
def _release() -> str:
    try:
        return importlib.metadata.version(analyzer.__dist__)
    except importlib.metadata.PackageNotFoundError:  # run from its sources
        return "unknown"
