"""The Parquet files of one run: segments that never change, a tail, the open collectives.

Every file says which commit it reaches: a segment in its name, tail and open file in their metadata.
So after a crash at any point it is known, table by table, which journaled batches are in files
already. A tail becomes a segment by one rename: a reader sees the one or the other.
"""

from __future__ import annotations

import re
import shutil
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple
from uuid import uuid4

import pyarrow as pa

from cascade_runtime.vocabulary.codec import pack
from cascade_runtime.vocabulary.errors import BadTrace
from cascade_runtime.vocabulary.events import CollectiveDone
from cascade_runtime.vocabulary.schema import EVENT_TABLES
from cascade_runtime.vocabulary.spool_format import RECORD, pack_header
from collector.schema.arrow import arrow_schema
from collector.trace.durable import publish, remove_leftovers, sync_folder
from collector.trace.parquet_files import in_order, read_file, read_notes, write_parquet

TAIL = "tail.parquet"
OPEN = "open.parquet"
MERGING = ".merge-"
"""How a folder begins that is to take the place of a table's, or did (merge.py)."""

_COMMIT = "cascade.commit"
_SEGMENT = re.compile(r"(\d{12})-[0-9a-f]{32}\.parquet")


class TableFiles(NamedTuple):
    """What lies in one table's folder.

    Attributes:
        segments: file names; of ours they begin with the commit that they reach.
        tail: the rows of the tail, None when there is none.
        commit: the files hold every row of the table up to this commit; 0 when nothing says so.
    """

    segments: list[str]
    tail: pa.Table | None
    commit: int


class RunFiles:
    """Writes and finds the files of one run's events.

    Args:
        root: the run's trace folder.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.can_swap = True
        """False once it is known that the file system cannot swap folders."""
        self._unsynced: set[Path] = set()

    def folder(self, table: str) -> Path:
        """Where a table's files lie."""
        return self.root / "events" / table

    # ---- writing ---------------------------------------------------------------------------------

    def write_tail(self, table: str, chunks: Sequence[pa.Table], commit: int) -> None:
        """Put the newest rows of a table into its tail, in place of the old one."""
        self._write_soon_gone(self.folder(table) / TAIL, pa.concat_tables(chunks), commit)

    def write_segment(
        self, table: str, chunks: Sequence[pa.Table], commit: int, sealed: Callable[[str], None]
    ) -> None:
        """Make the newest rows of a table a segment, in reading order.

        Args:
            table: an event table.
            chunks: its rows.
            commit: the commit that they reach.
            sealed: told the file's name as soon as it is there, whatever fails after that: were the
                rows written again, they would be there twice.
        """
        folder = self.folder(table)
        self._write(folder / TAIL, in_order(pa.concat_tables(chunks)), commit)
        name = name_of_segment(commit)
        self._unsynced.add(folder)
        try:
            (folder / TAIL).rename(folder / name)
        finally:
            if (folder / name).exists():  # some file systems rename and then report a failure
                sealed(name)
        self.sync()

    def sync(self) -> None:
        """Make the names of new segments durable."""
        for folder in list(self._unsynced):
            sync_folder(folder)
            self._unsynced.discard(folder)

    def write_open(self, rows: pa.Table, commit: int) -> None:
        """Put the open collectives into their file, in place of the old ones."""
        file = self.folder("collectives") / OPEN
        if rows.num_rows or file.exists():
            self._write_soon_gone(file, rows, commit)

    def write_orphans(self, orphans: Sequence[CollectiveDone]) -> None:
        """Keep completions whose row never came where readers join them: in the trace's spool."""
        by_actor: dict[str, list[CollectiveDone]] = {}
        for done in orphans:
            by_actor.setdefault(f"{done.rank}-{done.incarnation}", []).append(done)
        for actor, mine in by_actor.items():
            folder = self.root / "spool" / actor
            folder.mkdir(parents=True, exist_ok=True)
            number = max((int(f.stem) for f in folder.glob("[0-9]*.seg")), default=-1) + 1
            payloads = b"".join(_framed(pack(done)) for done in mine)
            data = pack_header(mine[0].seq) + payloads
            publish(folder / f"{number}.seg", lambda out, data=data: out.write(data))  # type: ignore[misc]

    def _write(self, file: Path, rows: pa.Table, commit: int) -> None:
        write_parquet(file, rows, {_COMMIT: _checked_number(commit)})

    def _write_soon_gone(self, file: Path, rows: pa.Table, commit: int) -> None:
        """A file that another one replaces in a moment."""
        write_parquet(file, rows, {_COMMIT: _checked_number(commit)}, compression="lz4")

    # ---- finding ---------------------------------------------------------------------------------

    def clean(self) -> None:
        """Remove what a killed collector left half written."""
        for folder in (self.root, *self.root.glob("events/*"), *self.root.glob("spool/*")):
            remove_leftovers(folder)
        for beside in self.root.glob(f"{MERGING}*"):
            shutil.rmtree(beside, ignore_errors=True)

    def segments(self, table: str) -> list[str]:
        """File names of a table's segments; of ours in the order of their commits."""
        names = sorted(f.name for f in self.folder(table).glob("*.parquet"))
        return [name for name in names if name not in (TAIL, OPEN)]

    def find(self, table: str) -> TableFiles:
        """The files of one table.

        Raises:
            BadTrace: the tail cannot be read.
        """
        folder = self.folder(table)
        segments = self.segments(table)
        commits = [n for name in segments if (n := commit_of_segment(name)) is not None]
        if not (folder / TAIL).exists():
            return TableFiles(segments, None, max(commits, default=0))
        commits.append(_commit_of(folder / TAIL))
        return TableFiles(segments, self._read(folder / TAIL, table), max(commits))

    def find_all(self) -> dict[str, TableFiles]:
        """The files of every table that has some."""
        found = {name: self.find(name) for name in EVENT_TABLES if self.folder(name).is_dir()}
        return {name: files for name, files in found.items() if files.segments or files.tail}

    def find_open(self) -> tuple[pa.Table, int]:
        """The open collectives, and the commit that they reach."""
        file = self.folder("collectives") / OPEN
        if not file.exists():
            return arrow_schema("collectives").empty_table(), 0
        return self._read(file, "collectives"), _commit_of(file)

    def read_segment(self, table: str, name: str, columns: Sequence[str]) -> pa.Table:
        """Some columns of a segment."""
        file = self.folder(table) / name
        return read_file(file, str(file), table, columns)

    def _read(self, file: Path, table: str) -> pa.Table:
        return read_file(file, str(file), table, arrow_schema(table).names)


def name_of_segment(commit: int) -> str:
    """A new name for a segment that reaches this commit."""
    return f"{commit:012d}-{uuid4().hex}.parquet"


def commit_of_segment(name: str) -> int | None:
    """The commit that a segment reaches; None when another program wrote it."""
    found = _SEGMENT.fullmatch(name)
    return int(found[1]) if found else None


def check_note(file: Path) -> None:
    """Make sure that a tail or the file of open collectives says which commit it reaches.

    Raises:
        BadTrace: it does not; its notes are damaged.
    """
    if file.name in (TAIL, OPEN):
        _commit_of(file)


def _checked_number(number: int) -> str:
    """A number with a checksum: Parquet has none for a file's notes, and a wrong commit loses rows."""
    return f"{number} {zlib.crc32(str(number).encode()):08x}"


def _commit_of(file: Path) -> int:
    try:
        text = read_notes(file).get(_COMMIT)
    except (OSError, ValueError, pa.ArrowException) as error:
        raise BadTrace(f"this file cannot be read as Parquet: {error}", where=str(file)) from error
    number = (text or "").partition(" ")[0]
    if not number.isdecimal() or text != _checked_number(int(number)):
        raise BadTrace("this file does not say up to which commit it reaches", where=str(file))
    return int(number)


def _framed(payload: bytes) -> bytes:
    return RECORD.pack(len(payload), zlib.crc32(payload)) + payload
