"""Unpacks a ``.cascade.zip`` into a folder without trusting it."""

from __future__ import annotations

import shutil
import stat
import struct
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from cascade_runtime.vocabulary.errors import BadTrace

_CHUNK = 1 << 20
_PLAIN_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_DAMAGED = (
    *(zipfile.BadZipFile, zlib.error, EOFError, OSError),
    *(NotImplementedError, RuntimeError, ValueError, struct.error),
)
"""What zipfile raises on bytes that are no zip or a damaged one."""

_TOP_LEVEL = ("trace.json", "views.sql")
_FOLDERS = {"events": ".parquet", "results": ".parquet", "spool": ".seg"}


@dataclass(frozen=True)
class ZipLimits:
    """How large a zip may become when it is unpacked.

    Attributes:
        total_bytes: of all files together.
        ratio: unpacked to packed, of all files together; asked only above ``ratio_from_bytes``,
            because a spool segment that was hardly begun is mostly zeros.
        ratio_from_bytes: see ``ratio``.
        num_files: entries of the zip.
    """

    total_bytes: int = 32 << 30
    ratio: int = 100
    ratio_from_bytes: int = 1 << 30
    num_files: int = 200_000


def extract_trace(file: Path, into: Path, limits: ZipLimits) -> Path:
    """Unpack the parts of a trace from ``file``; anything else in it is left out.

    The trace may lie at the top of the zip or in one folder of it.

    Returns:
        The folder that holds trace.json.

    Raises:
        BadTrace: no zip, a damaged one, without a trace, too large, or with an entry that is a link,
            encrypted, or leads out of the folder.
    """
    where = str(file)
    try:
        with zipfile.ZipFile(file) as opened:
            members = _checked(opened, limits, where)
            _check_space(members, into, where)
            for member, target in _wanted(members, where):
                limits = _unpack(opened, member, into / target, limits, where)
    except _DAMAGED as error:
        raise BadTrace(
            f"this zip cannot be unpacked: {error}",
            where=where,
            hint="a trace is a folder or one .cascade.zip of it; fetch or copy the file again",
        ) from error
    return into


def _checked(opened: zipfile.ZipFile, limits: ZipLimits, where: str) -> list[zipfile.ZipInfo]:
    members = [member for member in opened.infolist() if not member.is_dir()]
    if len(members) > limits.num_files:
        raise BadTrace(f"this zip has {len(members)} files, more than a trace may", where=where)
    seen: set[str] = set()
    for member in members:
        name = f"{where}!{member.filename}"
        path = PurePosixPath(member.filename)
        if path.is_absolute() or ".." in path.parts or "\\" in member.filename:
            raise BadTrace("this entry leads out of the trace; nothing was unpacked", where=name)
        if stat.S_ISLNK(member.external_attr >> 16):
            raise BadTrace("this entry is a link; nothing was unpacked", where=name)
        if member.flag_bits & 1:
            raise BadTrace("this entry is encrypted", where=name, hint="unpack it yourself first")
        if member.compress_type not in _PLAIN_METHODS:
            raise BadTrace("this entry is packed in a way that is not read here", where=name)
        if str(path) in seen:
            raise BadTrace("this zip holds two files of this name", where=name)
        seen.add(str(path))
    packed = sum(member.compress_size for member in members)
    _check_size(sum(member.file_size for member in members), packed, limits, where)
    return members


def _check_size(size: int, packed: int, limits: ZipLimits, where: str) -> None:
    too_dense = size > limits.ratio_from_bytes and size > limits.ratio * max(packed, 1)
    if size > limits.total_bytes or too_dense:
        raise BadTrace(
            f"this zip would unpack to {size} bytes, more than is safe",
            where=where,
            hint="unpack it yourself, where there is room, and give the folder",
        )


def _check_space(members: list[zipfile.ZipInfo], into: Path, where: str) -> None:
    size, free = sum(member.file_size for member in members), shutil.disk_usage(into).free
    if size > free:
        raise BadTrace(
            f"unpacking it needs {size} bytes and {free} are free",
            where=where,
            hint="set TMPDIR to a place with more room",
        )


def _wanted(members: list[zipfile.ZipInfo], where: str) -> Iterator[tuple[zipfile.ZipInfo, str]]:
    """The members that make up the trace, with the path that each has in it."""
    paths = {PurePosixPath(member.filename): member for member in members}
    tops = [path.parent for path in paths if path.name == "trace.json" and len(path.parts) <= 2]
    if len(tops) != 1:
        what = "there is no trace.json in this zip" if not tops else "this zip holds several traces"
        raise BadTrace(what, where=where, hint="zip one trace folder")
    for path, member in paths.items():
        if path.is_relative_to(tops[0]):
            inner = path.relative_to(tops[0])
            if _belongs(inner):
                yield member, str(inner)


def _belongs(path: PurePosixPath) -> bool:
    if len(path.parts) == 1:
        return path.name in _TOP_LEVEL
    suffix = _FOLDERS.get(path.parts[0])
    return len(path.parts) == 3 and suffix is not None and path.suffix == suffix


def _unpack(
    opened: zipfile.ZipFile, member: zipfile.ZipInfo, target: Path, limits: ZipLimits, where: str
) -> ZipLimits:
    """Write one file; returns the limits less what it took. The size is counted, not believed."""
    target.parent.mkdir(parents=True, exist_ok=True)
    size = 0
    with opened.open(member) as source, target.open("xb") as out:
        while chunk := source.read(_CHUNK):
            size += len(chunk)
            if size > member.file_size or size > limits.total_bytes:
                raise BadTrace("this zip unpacks to more than it says", where=where)
            out.write(chunk)
    return ZipLimits(
        limits.total_bytes - size, limits.ratio, limits.ratio_from_bytes, limits.num_files
    )
