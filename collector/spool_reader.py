"""Reads the spool folders of a trace into a doorway, and says what could not be read.

The layout is the vocabulary's (spool_format, docs/spool.md). Nothing is written.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import msgspec

from cascade_runtime.vocabulary import codec
from cascade_runtime.vocabulary.events import CollectiveDone, Event
from cascade_runtime.vocabulary.identity import Actor
from cascade_runtime.vocabulary.ports import SourceNote
from cascade_runtime.vocabulary.schema import EVENT_TABLES
from cascade_runtime.vocabulary.spool_format import (
    ACTOR_DIR,
    HEADER,
    MAGIC,
    SEGMENT_FILE,
    BadSegment,
    Torn,
    read_header,
    read_records,
)
from collector.doorway import Doorway
from collector.losses import HIGHEST_SEQ, Loss, Moment
from collector.schema.words import breaks_words
from collector.trace.inside import Inside

_LEADING_SEQ = 4
"""Place of ``seq`` in a wire record: [table, run_id, rank, incarnation, seq, ...]."""

_KNOWN = frozenset(EVENT_TABLES) | {"collective_done"}


class SpoolFolder:
    """One actor's folder in a spool.

    Args:
        actor: whose.
        path: the folder.
        inside: the trace it lies in; files that leave the trace are not read.
    """

    def __init__(self, actor: Actor, path: Path, inside: Inside) -> None:
        self.actor = actor
        self.path = path
        self._inside = inside
        self.losses: list[Loss] = []
        self.notes: list[SourceNote] = []
        self.newer = False
        """True when something in here was written by a newer release, which may read it."""
        self.runs: set[str] = set()
        """The run_ids of its records."""
        self.damaged: list[Path] = []
        """Segments with bytes that could not be read; someone may want to look at them."""
        self._skipped: Counter[str] = Counter()
        self._next_seq = 0
        self._last: Event | None = None
        self._tear: Loss | None = None

    def segments(self) -> list[Path]:
        """The segment files in the order in which they were written."""
        numbered = [
            (int(match[1]), file)
            for file in self._inside.files(self.path)
            if (match := SEGMENT_FILE.fullmatch(file.name))
        ]
        return [file for _, file in sorted(numbered)]

    def read_into(self, door: Doorway) -> None:
        """Give every record of the folder to ``door``; afterwards losses and notes are complete."""
        for file in self.segments():
            self._read_segment(file, door)
        if self._tear is not None:
            self.losses.append(self._tear)
        door.actor_ends()
        for what, times in self._skipped.items():
            self._note(self.path, f"records skipped: {times} {what}")

    def _read_segment(self, file: Path, door: Doorway) -> None:
        try:
            data = file.read_bytes()
        except OSError as error:
            self._torn(file, f"this segment cannot be read: {error.strerror}")
            return
        if not any(data[: HEADER.size]) and not data.strip(b"\0"):
            return  # made, but nothing was written into it yet
        try:
            first_seq = min(read_header(data), HIGHEST_SEQ)
        except BadSegment as error:
            if data.startswith(MAGIC) and len(data) >= HEADER.size:
                self.newer = True
            else:
                self.damaged.append(file)
            self._torn(file, f"this segment cannot be read: {error}")
            return
        self._close_tear(first_seq, door)
        self._next_seq = max(self._next_seq, first_seq)
        for item in read_records(data):
            if isinstance(item, Torn):
                self.damaged.append(file)
                self._torn(file, f"at byte {item.offset} {item.why}; what followed in it is lost")
            else:
                self._record(file, item, door)

    def _record(self, file: Path, payload: memoryview, door: Doorway) -> None:
        try:
            record = codec.unpack(payload)
            wrong = None if isinstance(record, CollectiveDone) else breaks_words(record)
        except msgspec.MsgspecError as error:
            self._unreadable(file, payload, str(error))
            return
        if wrong is not None:
            self._unreadable(file, payload, wrong)
            return
        door.take(record)
        self.runs.add(record.run_id)
        if not isinstance(record, CollectiveDone):
            self._next_seq = max(self._next_seq, record.seq + 1)
            self._last = record

    def _unreadable(self, file: Path, payload: memoryview, error: str) -> None:
        """A whole record (its checksum holds) that is none of ours: skip it, account for its seq."""
        fields = _loose_fields(payload)
        table = str(fields[0]) if fields else "?"
        seq = fields[_LEADING_SEQ] if len(fields) > _LEADING_SEQ else None
        reason = "corrupt"
        if table in _KNOWN or not fields:
            self._skipped[f"of {table} that break the schema: {error}"] += 1
            if file not in self.damaged:
                self.damaged.append(file)
        else:
            self.newer, reason = True, "not_supplied"
            self._skipped[f"of the table {table}, which this release does not know"] += 1
        if type(seq) is int and seq >= 0 and table != "collective_done":
            self.losses.append(Loss(self.actor, seq, seq, (table,), reason, self._moment()))
            self._next_seq = max(self._next_seq, seq + 1)

    def _torn(self, file: Path, what: str) -> None:
        self._note(file, what)
        if self._tear is None:
            self._tear = Loss(self.actor, self._next_seq, None, None, "corrupt", self._moment())

    def _close_tear(self, first_seq: int, door: Doorway) -> None:
        """The next segment's header says where the lost stretch ends."""
        if self._tear is None:
            return
        door.completions_lost(self.actor)
        if first_seq > self._tear.first_seq:
            self.losses.append(self._tear._replace(last_seq=first_seq - 1))
        self._tear = None

    def _moment(self) -> Moment | None:
        last = self._last
        return Moment(last.run_id, last.group_id, last.wall_ns, last.mono_ns) if last else None

    def _note(self, file: Path, what: str) -> None:
        note = SourceNote(where=self._inside.name(file), what=what)
        if note not in self.notes:
            self.notes.append(note)


def spool_folders(spool: Path, inside: Inside) -> list[SpoolFolder]:
    """The actors' folders of a spool, in actor order; other names are left alone."""
    found = [
        SpoolFolder(Actor(int(match[1]), int(match[2])), folder, inside)
        for folder in inside.folders(spool)
        if (match := ACTOR_DIR.fullmatch(folder.name))
    ]
    return sorted(found, key=lambda folder: folder.actor)


def _loose_fields(payload: memoryview) -> list[Any]:
    """The fields of a record, unchecked; empty when the payload is no MessagePack array."""
    try:
        fields = msgspec.msgpack.decode(payload)
    except msgspec.MsgspecError:
        return []
    return fields if isinstance(fields, list) else []
