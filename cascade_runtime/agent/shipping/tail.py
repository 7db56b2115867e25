"""Reads one actor's segments while they are written, from the oldest one left.

A record counts once its length is there and its checksum holds. In a segment that is still written
to, anything else is simply not there yet; only in one that is finished (a later one exists, or its
writer has ended) is it torn.
"""

from __future__ import annotations

import errno
import os
import zlib
from collections import deque
from pathlib import Path
from typing import NamedTuple

from cascade_runtime.agent.shipping.folders import segment_numbers
from cascade_runtime.agent.shipping.head import Head, last_head
from cascade_runtime.agent.shipping.stand_in import gap_row
from cascade_runtime.vocabulary.identity import Actor
from cascade_runtime.vocabulary.spool_format import (
    HEADER,
    RECORD,
    BadSegment,
    read_header,
)

_CHUNK = 64 * 1024
_LOST = (errno.ENOENT, errno.EIO)
"""A segment that gives one of these is gone; other errors (too many open files) may pass."""


class Budget:
    """How much a batch may still take; a first record always fits."""

    def __init__(self, num_records: int, num_bytes: int) -> None:
        self.records = num_records
        self.bytes = num_bytes
        self._empty = True

    def take(self, size: int) -> bool:
        """Count a record of so many bytes in, if it fits."""
        if not self._empty and (self.records < 1 or self.bytes < size):
            self.records = 0  # full: what follows must not overtake this one
            return False
        self._empty = False
        self.records -= 1
        self.bytes -= size
        return True

    def is_full(self) -> bool:
        """Nothing more fits."""
        return self.records < 1 and not self._empty


class Passed(NamedTuple):
    """A segment that was read to its end.

    Attributes:
        number: of its file.
        last_seq: the mark that must be reached before it may go.
        damaged: something in it could not be read.
    """

    number: int
    last_seq: int
    damaged: bool


class Tail:
    """One actor's folder.

    Args:
        run_id: the job's run.
        actor: whose.
        folder: its folder in the spool.
        first: segments with a lower number are known to be stored elsewhere.
    """

    def __init__(self, run_id: str, actor: Actor, folder: Path, first: int = 0) -> None:
        self.actor = actor
        self.folder = folder
        self.mark = -1
        """Up to which seq the collector says it has everything."""
        self.at_end = False
        """The writer has ended and everything was read."""
        self._run_id = run_id
        self._number = first
        self._fd = -1
        self._offset = 0
        self._next_seq = 0
        self._last: Head | None = None
        self._tear: int | None = None
        """First seq of a torn stretch whose end is not known yet."""
        self._tear_wall_ns = 0
        self._passed: deque[Passed] = deque()

    def path(self, number: int) -> Path:
        """Of a segment."""
        return self.folder / f"{number}.seg"

    def close(self) -> None:
        """Give the open file back; reading may go on afterwards."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    # ---- reading -------------------------------------------------------------------------------

    def read(self, budget: Budget, *, ended: bool) -> list[bytes]:
        """Payloads that are there now and were not read before, gaps rows for torn stretches.

        Args:
            budget: how much may be read; is counted down.
            ended: the actor's process is known to have ended, so nothing more will be written.

        Raises:
            OSError: its files cannot be read now, and nothing was read before that.
        """
        out: list[bytes] = []
        try:
            self._read_into(out, budget, ended=ended)
        except OSError:
            if not out:
                raise
        return out

    def _read_into(self, out: list[bytes], budget: Budget, *, ended: bool) -> None:
        while not budget.is_full() and not self.at_end:
            # Looked at before the data: what was written until then will all be seen.
            later = self._later(look=ended or self._fd < 0)
            finished = ended or bool(later)
            if self._fd < 0 and not self._open(finished, later, out, budget):
                break
            if self._fd >= 0:
                torn = self._read_open(out, budget)
                if budget.is_full() or not finished:
                    break
                self._pass(torn, later, out, budget)

    def _later(self, *, look: bool) -> list[int]:
        """Segments after the current one that are there: the next, or else, with ``look``, all.

        Writers number without holes, so looking is for when the first ones are gone, and for the end.
        """
        if self.path(self._number + 1).exists():
            return [self._number + 1]
        if not look:
            return []
        return [number for number in segment_numbers(self.folder) if number > self._number]

    def _open(self, finished: bool, later: list[int], out: list[bytes], budget: Budget) -> bool:
        """Open the current segment; False when there is nothing to read in it yet."""
        try:
            self._fd = os.open(self.path(self._number), os.O_RDONLY | os.O_CLOEXEC)
            header = os.pread(self._fd, HEADER.size, 0)
            if not any(header) and (not finished or self._is_blank()):
                self.close()
                if finished:  # made, but nothing was written into it
                    self._pass(None, later, out, budget, blank=True)
                return finished
            first_seq = read_header(header)
        except BadSegment:
            if not finished:
                self.close()
                return False
            self._pass("header", later, out, budget)
            return True
        except OSError as error:
            if error.errno not in _LOST:
                raise
            self.close()
            if not finished:
                return False
            # Nothing of this name: the first segments were shipped by an earlier agent, or removed.
            missing = error.errno == errno.ENOENT
            self._pass(None if missing else "file", later, out, budget, blank=missing)
            return True
        self._close_tear(first_seq - 1, out, budget)
        self._next_seq = max(self._next_seq, first_seq)
        self._offset = HEADER.size
        return True

    def _is_blank(self) -> bool:
        size = os.fstat(self._fd).st_size
        return not any(os.pread(self._fd, size, 0).strip(b"\0"))

    def _read_open(self, out: list[bytes], budget: Budget) -> str | None:
        """Read on in the open segment; what is torn where reading stopped, None when nothing is."""
        start = len(out)
        try:
            return self._read_records(out, budget)
        except OSError as error:
            if error.errno not in _LOST:
                raise
            return "file"
        finally:
            head = last_head(out, start)
            if head is not None:
                self._last = head
                self._next_seq = max(self._next_seq, head.seq + 1)

    def _read_records(self, out: list[bytes], budget: Budget) -> str | None:
        want = _CHUNK
        unpack, crc32, head_size = RECORD.unpack_from, zlib.crc32, RECORD.size
        if not any(os.pread(self._fd, head_size, self._offset)):
            return None  # most of the time: nothing new, found out without reading a chunk
        while True:
            data = os.pread(self._fd, want, self._offset)
            if len(data) < head_size:
                return "head" if any(data) else None
            at, want = 0, _CHUNK
            while at + head_size <= len(data):
                length, crc = unpack(data, at)
                if length == 0:
                    return None
                end = at + head_size + length
                if end > len(data):
                    if end - at > os.fstat(self._fd).st_size - self._offset:
                        return "length"
                    want = max(_CHUNK, end - at)
                    break
                payload = data[at + head_size : end]
                if crc32(payload) != crc:
                    return "checksum"
                if not budget.take(length):
                    return None
                out.append(payload)
                self._offset += end - at
                at = end

    def _pass(
        self,
        torn: str | None,
        later: list[int],
        out: list[bytes],
        budget: Budget,
        *,
        blank: bool = False,
    ) -> None:
        """Done with the current segment; go to the next one."""
        if torn is not None and self._tear is None:
            self._tear = self._next_seq
            self._tear_wall_ns = self._written_ns()
        self.close()
        if not blank or self.path(self._number).exists():
            last_seq = self._next_seq - 1 if torn is None else self._tear or 0
            self._passed.append(Passed(self._number, last_seq, torn is not None))
        if later:
            self._number = later[0]
            return
        self._close_tear(None, out, budget)
        self._number += 1
        self.at_end = True

    def _close_tear(self, last_seq: int | None, out: list[bytes], budget: Budget) -> None:
        first, self._tear = self._tear, None
        if first is None or (last_seq is not None and last_seq < first):
            return  # nothing is missing that has a number
        row = gap_row(
            self._run_id,
            self.actor,
            first,
            last_seq,
            reason="corrupt",
            tables=None,
            before=self._last,
            wall_ns=self._tear_wall_ns,
        )
        budget.take(len(row))  # may go a row over: it has to be in the batch of what it stands for
        out.append(row)

    def _written_ns(self) -> int:
        try:
            return self.path(self._number).stat().st_mtime_ns
        except OSError:
            return 0

    # ---- what may go ---------------------------------------------------------------------------

    @property
    def first_kept(self) -> int:
        """Lowest segment that is still needed."""
        return self._passed[0].number if self._passed else self._number

    def take_covered(self) -> list[Passed]:
        """Segments that may go; call it only when everything that was read has been answered."""
        covered = []
        while self._passed and self._passed[0].last_seq <= self.mark:
            covered.append(self._passed.popleft())
        return covered
