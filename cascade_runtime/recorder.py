"""The recorder: stamps rows and writes them into the memory-mapped spool (docs/spool.md).

It needs no thread, never blocks on anything but the page cache, and what it wrote survives SIGKILL at
any moment, because the kernel owns the pages. The methods for hot rows build the wire tuple directly
(same bytes as the vocabulary's struct, half the time); ``row`` takes any event type.
"""

from __future__ import annotations

import functools
import mmap
import os
import struct
import threading
import time
import weakref
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from cascade_runtime.vocabulary import spool_format
from cascade_runtime.vocabulary.events import Event, Gaps
from cascade_runtime.vocabulary.identity import Actor, Dot
from cascade_runtime.vocabulary.regime import Regime

SEGMENT_BYTES = 1 << 20
MAX_SPOOL_BYTES = 2 << 30
_RECOUNT_DROPS = 1024

_DROPPED_FIRST = frozenset({"health", "gpu", "compute"})
_NEVER_DROPPED = frozenset(
    {"updates", "transitions", "debt", "membership", "checkpoints", "decisions", "messages", "gaps"}
)
_NO_DOT = (None, None, None)
_MADV_POPULATE_WRITE = 23
_U32 = struct.Struct("<I")
_pack_u32 = _U32.pack_into
_crc32 = zlib.crc32
_mono_ns = time.monotonic_ns


class Recorder:
    """Writes one actor's rows.

    Args:
        spool_dir: the trace's ``spool`` folder; the actor's own folder is made in it.
        run_id: the run.
        actor: who writes. A restarted process is another incarnation and gets another folder.
        segment_bytes: size of one segment file, in bytes.
        max_spool_bytes: above 80 % of this, health, gpu and compute rows are dropped; above it, all
            but the rows that the walk and the debt need. Each run of drops becomes a ``gaps`` row.

    Context that is stamped on every row is set by ``set_view`` and ``set_step``.
    """

    def __init__(
        self,
        spool_dir: Path,
        run_id: str,
        actor: Actor,
        *,
        segment_bytes: int = SEGMENT_BYTES,
        max_spool_bytes: int = MAX_SPOOL_BYTES,
    ) -> None:
        self.run_id = run_id
        self.actor = actor
        self.group_id = "world"
        self.epoch = 0
        self.regime = Regime.STRONG.value
        self.step = 0
        self.seq = 0
        """The seq that the next row will take."""
        self.num_dropped = 0
        self._rank = actor.rank
        self._incarnation = actor.incarnation
        self._encode = msgspec.msgpack.Encoder().encode
        self._wall_anchor = time.time_ns() - _mono_ns()
        self._dir = Path(spool_dir) / f"{actor.rank}-{actor.incarnation}"
        self._dir.mkdir(parents=True, exist_ok=True)
        self._segment_bytes = segment_bytes
        self._max_bytes = max_spool_bytes
        self._bytes_before = 0
        self._recount_at = max_spool_bytes // 2
        self._gap_first: int | None = None
        self._gap_tables: set[str] = set()
        self._entries_dropped: set[int] = set()
        self._lock = threading.Lock()
        # Bound once: ``with`` costs 0.3 us more a row (benchmarks/emit.py).
        self._acquire, self._release = self._lock.acquire, self._lock.release
        self._closed = False
        self._fd = -1
        self._map: mmap.mmap | None = None
        self._offset = 0
        self._limit = 0
        self._number = 0
        self._open_segment()
        # A forked child (a data loader worker) shares the mapping and must not write into it.
        os.register_at_fork(after_in_child=_forgetter(weakref.ref(self)))

    # ---- context -------------------------------------------------------------------------------

    def set_view(self, epoch: int, regime: Regime) -> None:
        """The epoch and regime that later rows carry."""
        self.epoch = epoch
        self.regime = regime.value

    def set_step(self, step: int) -> None:
        """The training step that later rows carry."""
        self.step = step

    # ---- hot rows ------------------------------------------------------------------------------

    def steps(self, phase: str, loss: float | None = None, num_samples: int | None = None) -> int:
        """A ``steps`` row; returns its seq."""
        now = _mono_ns()
        self._acquire()
        try:
            return self._write(
                "steps",
                ("steps", self.run_id, self._rank, self._incarnation, self.seq, self.group_id,
                 self.epoch, self.regime, self.step, self._wall_anchor + now, now,
                 phase, loss, num_samples),
            )  # fmt: skip
        finally:
            self._release()

    def reads(
        self,
        object_names: Sequence[str],
        use: str,
        dots: Sequence[Dot | None],
        version: int | None,
        frontier: list[Dot] | None = None,
    ) -> None:
        """``reads`` rows of several objects at one moment.

        ``dots`` names the update seen of each object, None for the initial value; delta reads below
        STRONG give ``frontier`` instead and None dots.
        """
        now = _mono_ns()
        wall = self._wall_anchor + now
        self._acquire()
        try:
            for name, dot in zip(object_names, dots, strict=True):
                rank, incarnation, counter = (
                    (dot.rank, dot.incarnation, dot.counter) if dot is not None else _NO_DOT
                )
                self._write(
                    "reads",
                    ("reads", self.run_id, self._rank, self._incarnation, self.seq, self.group_id,
                     self.epoch, self.regime, self.step, wall, now,
                     name, use, rank, incarnation, counter, version, frontier),
                )  # fmt: skip
        finally:
            self._release()

    def updates(
        self,
        action: str,
        object_names: Sequence[str],
        dots: Sequence[Dot],
        version: int | None,
        deps: list[Dot],
        sizes: Sequence[int | None],
    ) -> None:
        """``updates`` rows of several objects at one moment: one dot, version and size (bytes) each."""
        now = _mono_ns()
        wall = self._wall_anchor + now
        self._acquire()
        try:
            for name, dot, size in zip(object_names, dots, sizes, strict=True):
                self._write(
                    "updates",
                    ("updates", self.run_id, self._rank, self._incarnation, self.seq, self.group_id,
                     self.epoch, self.regime, self.step, wall, now,
                     action, name, dot.rank, dot.incarnation, dot.counter, version, deps,
                     size, None),
                )  # fmt: skip
        finally:
            self._release()

    def entered(
        self,
        comm_id: str,
        cseq: int,
        op: str,
        label: str,
        num_bytes: int,
        dtype: str,
        root: int | None = None,
        call_site: str | None = None,
        is_async: bool = True,
    ) -> int:
        """A ``collectives`` row at entry; give the returned seq to ``done``."""
        now = _mono_ns()
        wall = self._wall_anchor + now
        self._acquire()
        try:
            dropped = self.num_dropped
            seq = self._write(
                "collectives",
                ("collectives", self.run_id, self._rank, self._incarnation, self.seq, self.group_id,
                 self.epoch, self.regime, self.step, wall, now,
                 comm_id, cseq, op, label, call_site, num_bytes, dtype, root, is_async,
                 None, wall, None, None, False, None),
            )  # fmt: skip
            if self.num_dropped > dropped:
                self._entries_dropped.add(seq)
            return seq
        finally:
            self._release()

    def done(
        self, entered_seq: int, complete_mono_ns: int, payload_digest: str | None = None
    ) -> None:
        """Completion of an entered collective, learnt of now; takes no seq of its own."""
        self._acquire()
        try:
            if self._closed:
                return
            if entered_seq in self._entries_dropped:
                self._entries_dropped.remove(entered_seq)  # there is no row that it could complete
                return
            whole = self._put(
                self._encode(
                    (
                        "collective_done",
                        self.run_id,
                        self._rank,
                        self._incarnation,
                        entered_seq,
                        self.seq,
                        None,
                        self._wall_anchor + complete_mono_ns,
                        True,
                        payload_digest,
                    )
                )
            )
            if not whole:
                # Without a gap the stored row would say that the collective never completed.
                self._drop("collectives")
        finally:
            self._release()

    # ---- any row -------------------------------------------------------------------------------

    def row(self, table: type[Event], **fields: Any) -> int:
        """A row of any event table; leading columns are filled in, ``step`` and the rest may be given."""
        now = _mono_ns()
        group_id = fields.pop("group_id", self.group_id)
        step = fields.pop("step", self.step)
        epoch = fields.pop("epoch", self.epoch)
        regime = fields.pop("regime", Regime(self.regime))
        with self._lock:
            seq = self.seq
            event = table(
                self.run_id, self._rank, self._incarnation, seq, group_id, epoch, regime,
                step, self._wall_anchor + now, now, **fields,
            )  # fmt: skip
            return self._write(str(table.__struct_config__.tag), event)

    def wall_ns(self, mono_ns: int) -> int:
        """A monotonic stamp of this host on the recorder's wall scale."""
        return self._wall_anchor + mono_ns

    def close(self) -> None:
        """Trim the last segment; later rows are ignored."""
        with self._lock:
            if not self._closed:
                self._flush_gap()
                self._close_segment()
                self._closed = True

    # ---- the spool -----------------------------------------------------------------------------

    def _write(self, table: str, record: Any) -> int:
        """Take a seq for the record and put it, or drop it and remember the hole. Returns the seq."""
        if self._closed:
            return self.seq
        used = self._bytes_before + self._offset
        if used > self._max_bytes * 0.8 and (
            table in _DROPPED_FIRST or (used > self._max_bytes and table not in _NEVER_DROPPED)
        ):
            return self._drop(table)
        if self._gap_first is not None:
            # The gap's own row comes after the hole, so the record must move one seq on.
            if not self._flush_gap():
                return self._drop(table)
            record = _with_seq(record, self.seq)
        if not self._put(self._encode(record)):
            return self._drop(table)
        self.seq += 1
        return self.seq - 1

    def _drop(self, table: str) -> int:
        if self._gap_first is None:
            self._gap_first = self.seq
        self._gap_tables.add(table)
        self.num_dropped += 1
        self.seq += 1
        if self.num_dropped % _RECOUNT_DROPS == 0:
            self._recount()  # nothing is written, so no roll would notice that there is room again
        return self.seq - 1

    def _flush_gap(self) -> bool:
        """Write the pending ``gaps`` row; False when there is still no room for it."""
        if self._gap_first is None:
            return True
        now = _mono_ns()
        first, tables = self._gap_first, sorted(self._gap_tables)
        gap = Gaps(
            self.run_id, self._rank, self._incarnation, self.seq, self.group_id, self.epoch,
            Regime(self.regime), self.step, self._wall_anchor + now, now, first_seq=first,
            last_seq=self.seq - 1, num_events=self.seq - first, tables=tables, reason="dropped",
        )  # fmt: skip
        if not self._put(self._encode(gap)):
            return False
        self.seq += 1
        self._gap_first = None
        self._gap_tables.clear()
        return True

    def _put(self, payload: bytes) -> bool:
        """Append one payload; False when there is no room on the disk."""
        size = len(payload)
        offset = self._offset
        end = offset + 8 + size
        if end > self._limit:
            if not self._roll(size):
                return False
            offset = self._offset
            end = offset + 8 + size
        mapped = self._map
        if mapped is None:
            return False
        _payload_struct(size).pack_into(mapped, offset + 4, _crc32(payload), payload)
        _pack_u32(mapped, offset, size)  # last: a reader or a crash sees the record whole or not
        self._offset = end
        return True

    def _roll(self, size: int) -> bool:
        if self._closed:
            return False
        self._close_segment()
        if self._bytes_before >= self._recount_at:
            self._recount()
        return self._open_segment(8 + size)

    def _recount(self) -> None:
        """Count what is in the folder: the agent removes segments that it has shipped."""
        current = f"{self._number - 1}.seg" if self._map is not None else None
        total = 0
        try:
            with os.scandir(self._dir) as entries:
                for entry in entries:
                    if entry.name != current:
                        total += entry.stat().st_size
        except FileNotFoundError:
            return  # one was removed while we looked: count again another time
        self._bytes_before = total
        # Not at every roll: a full spool has thousands of files, and this is a training process.
        self._recount_at = max(self._max_bytes // 2, total + self._max_bytes // 16)

    def _open_segment(self, room: int = 0) -> bool:
        size = max(self._segment_bytes, spool_format.HEADER.size + room)
        path = self._dir / f"{self._number}.seg"
        try:
            self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o644)
            # Reserve the blocks now: a store into a hole of a full disk would be a SIGBUS.
            os.posix_fallocate(self._fd, 0, size)
            self._map = mmap.mmap(self._fd, size)
            _populate(self._map)
        except OSError:
            if self._fd >= 0:
                os.close(self._fd)
                self._fd = -1
                path.unlink(missing_ok=True)
            self._map = None
            self._offset = self._limit = 0
            return False
        self._number += 1
        header = spool_format.pack_header(self.seq)
        self._map[: len(header)] = header
        self._offset = len(header)
        self._limit = size
        return True

    def _close_segment(self) -> None:
        if self._map is None:
            return
        self._map.close()
        self._map = None
        os.ftruncate(self._fd, self._offset)
        os.close(self._fd)
        self._fd = -1
        self._bytes_before += self._offset
        self._offset = self._limit = 0

    def _forget(self) -> None:
        """In a forked child: write nothing, and leave the parent's lock and mapping alone."""
        self._lock = threading.Lock()
        self._acquire, self._release = self._lock.acquire, self._lock.release
        self._closed = True
        self._map = None
        self._offset = self._limit = 0


@functools.cache
def _payload_struct(size: int) -> struct.Struct:
    """CRC and payload in one store."""
    return struct.Struct(f"<I{size}s")


def _populate(mapped: mmap.mmap) -> None:
    """Fault the pages in now: at a record each of 4 KiB it would be 3 % of all calls (emit.py)."""
    try:
        mapped.madvise(_MADV_POPULATE_WRITE)
    except (OSError, ValueError):
        return  # Linux before 5.14: the faults come one by one


def _forgetter(reference: weakref.ref[Recorder]) -> Callable[[], None]:
    """A fork handler that does not keep the recorder alive."""

    def forget() -> None:
        recorder = reference()
        if recorder is not None:
            recorder._forget()

    return forget


def _with_seq(record: Any, seq: int) -> Any:
    if isinstance(record, tuple):
        return (*record[:4], seq, *record[5:])
    return msgspec.structs.replace(record, seq=seq)
