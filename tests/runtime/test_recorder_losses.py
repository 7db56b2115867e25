"""When there is no room, and when the process is killed: what is missing is known exactly."""

from __future__ import annotations

import errno
import os
import random
import signal
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cascade_runtime.recorder import Recorder
from cascade_runtime.vocabulary import codec
from cascade_runtime.vocabulary.events import (
    EVENT_TYPES,
    CollectiveDone,
    Event,
    Gaps,
    Health,
    Updates,
)
from cascade_runtime.vocabulary.identity import Actor
from cascade_runtime.vocabulary.spool_format import HEADER, RECORD, Torn, read_records
from tests.collector.traces import RUN, make_trace, notes_of, rows_of

FIRST = {"health", "gpu", "compute"}
NEVER = {"updates", "transitions", "debt", "membership", "checkpoints", "decisions", "messages"}
KINDS = {str(kind.__struct_config__.tag): kind for kind in EVENT_TYPES if kind is not Gaps}


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    return make_trace(tmp_path / "trace")


def all_rows(trace: Path) -> list[Any]:
    return sorted(
        (row for rows in rows_of(trace).values() for row in rows), key=lambda row: row.seq
    )


def written(trace: Path) -> list[tuple[Any, int]]:
    """Records of rank 0 in order, with the bytes that the spool held when each was complete."""
    found, used = [], 0
    for file in sorted((trace / "spool" / "0-0").iterdir(), key=lambda p: int(p.stem)):
        used += HEADER.size
        for item in read_records(file.read_bytes()):
            assert not isinstance(item, Torn)
            used += RECORD.size + len(item)
            found.append((codec.unpack(item), used))
    return found


def missing(trace: Path) -> set[int]:
    """Numbers that no row has, after checking that they are exactly those that gaps rows name."""
    rows = all_rows(trace)
    numbers = [row.seq for row in rows]
    assert len(set(numbers)) == len(numbers)
    holes = set(range(max(numbers, default=-1) + 1)) - set(numbers)
    covered: list[int] = []
    for row in rows:
        if isinstance(row, Gaps):
            assert (row.reason, row.num_events) == ("dropped", row.last_seq - row.first_seq + 1)
            covered += range(row.first_seq, row.last_seq + 1)
    assert sorted(covered) == sorted(holes)
    return holes


# ---- the budget -----------------------------------------------------------------------------------


def used_when_asked(records: list[tuple[Any, int]], seqs: set[int]) -> dict[int, int]:
    """Bytes in the spool at the moment when each of ``seqs`` was to be written."""
    found = {}
    for seq in seqs:
        before = [(record, end) for record, end in records if record.seq < seq]
        if before and isinstance(before[-1][0], Gaps) and before[-1][0].seq == seq - 1:
            before.pop()  # written with this very row, after it had been let in
        found[seq] = before[-1][1] if before else HEADER.size
    return found


@given(tables=st.lists(st.sampled_from(sorted(KINDS)), min_size=15, max_size=60))
@settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.too_slow])
def test_a_full_spool_drops_in_order_and_says_exactly_what(tables: list[str]) -> None:
    budget = 2000
    with tempfile.TemporaryDirectory() as folder:
        trace = make_trace(Path(folder) / "t")
        recorder = Recorder(
            trace / "spool", RUN, Actor(0), segment_bytes=700, max_spool_bytes=budget
        )
        table_of = {recorder.row(KINDS[table]): table for table in tables}
        recorder.close()
        holes = missing(trace)
        used = used_when_asked(written(trace), set(table_of))
        gaps = rows_of(trace).get("gaps", [])
    assert holes <= set(table_of)
    assert recorder.num_dropped == len(holes)
    for gap in gaps:
        told = {table_of[seq] for seq in range(gap.first_seq, gap.last_seq + 1)}
        assert gap.tables == sorted(told)
    for seq, table in table_of.items():
        limit = 0.8 * budget if table in FIRST else budget
        assert (seq in holes) is (table not in NEVER and used[seq] > limit), (seq, table)


def test_what_the_walk_needs_is_never_dropped(trace: Path) -> None:
    recorder = Recorder(trace / "spool", RUN, Actor(0), segment_bytes=700, max_spool_bytes=1000)
    for _ in range(30):
        recorder.row(Updates, action="applied")
    for table in sorted(NEVER):
        recorder.row(KINDS[table])
    recorder.close()
    assert recorder.num_dropped == 0
    assert missing(trace) == set()
    assert set(rows_of(trace)) == NEVER


def test_completions_of_dropped_entries_are_dropped_and_others_kept(trace: Path) -> None:
    recorder = Recorder(trace / "spool", RUN, Actor(0), segment_bytes=700, max_spool_bytes=2000)
    kept = recorder.entered("c", 0, "all_reduce", "b", 4, "float32")
    while recorder.num_dropped == 0:
        recorder.steps("begin")
    lost = recorder.entered("c", 1, "all_reduce", "b", 4, "float32")
    recorder.done(lost, time.monotonic_ns())
    recorder.done(kept, time.monotonic_ns())
    recorder.close()
    (row,) = rows_of(trace)["collectives"]
    assert (row.seq, row.completed) == (kept, True)
    assert lost in missing(trace)
    assert notes_of(trace) == []  # no completion without its entry


# ---- the disk -------------------------------------------------------------------------------------


class Disk:
    """``os.posix_fallocate`` of a disk that may be full."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.full = False
        self._real = os.posix_fallocate
        monkeypatch.setattr(os, "posix_fallocate", self._allocate)

    def _allocate(self, fd: int, offset: int, size: int) -> None:
        if self.full:
            raise OSError(errno.ENOSPC, "No space left on device")
        self._real(fd, offset, size)


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    return Disk(monkeypatch)


def write_a_bit_of_everything(recorder: Recorder, times: int = 10) -> None:
    for number in range(times):
        recorder.steps("begin")
        recorder.reads(["a"], "forward", [None], 1)
        recorder.row(Updates, action="applied")
        recorder.done(recorder.entered("c", number, "all_reduce", "b", 4, "float32"), 1)


def test_a_full_disk_never_raises_and_is_one_gap_when_there_is_room_again(
    trace: Path, disk: Disk
) -> None:
    recorder = Recorder(trace / "spool", RUN, Actor(0), segment_bytes=1000)
    write_a_bit_of_everything(recorder)
    disk.full = True
    write_a_bit_of_everything(recorder)
    assert recorder.num_dropped > 0
    dropped = recorder.num_dropped
    disk.full = False
    write_a_bit_of_everything(recorder)
    recorder.close()
    assert recorder.num_dropped == dropped
    assert len(missing(trace)) == dropped
    (gap,) = rows_of(trace)["gaps"]
    assert gap.tables == ["collectives", "reads", "steps", "updates"]
    assert all_rows(trace)[-1].seq == recorder.seq - 1
    assert notes_of(trace) == []


def test_a_disk_full_from_the_first_row_on(trace: Path, disk: Disk) -> None:
    disk.full = True
    recorder = Recorder(trace / "spool", RUN, Actor(0))
    write_a_bit_of_everything(recorder)
    recorder.close()
    assert recorder.num_dropped == recorder.seq > 0
    assert list((trace / "spool" / "0-0").iterdir()) == []  # no empty file is left to be misread


def test_a_lost_completion_is_a_gap_and_no_collective_that_never_ended(
    trace: Path, disk: Disk
) -> None:
    recorder = Recorder(trace / "spool", RUN, Actor(0), segment_bytes=1000)
    entered = recorder.entered("c", 0, "all_reduce", "b", 4, "float32")
    disk.full = True
    while recorder.num_dropped == 0:
        recorder.steps("begin")
    only_steps = recorder.seq
    recorder.done(entered, time.monotonic_ns())
    disk.full = False
    recorder.row(Health)
    recorder.close()
    assert only_steps in missing(trace)
    (gap,) = rows_of(trace)["gaps"]
    assert gap.tables == ["collectives", "steps"]
    assert gap.last_seq == only_steps


def test_the_gap_at_the_very_end_is_told_at_closing(trace: Path) -> None:
    recorder = Recorder(trace / "spool", RUN, Actor(0), segment_bytes=700, max_spool_bytes=600)
    while recorder.num_dropped < 3:
        recorder.row(Health)
    recorder.close()
    assert len(missing(trace)) == 3
    assert isinstance(all_rows(trace)[-1], Gaps)


# ---- SIGKILL --------------------------------------------------------------------------------------

WRITER = """
import os, struct, sys
from pathlib import Path
from cascade_runtime.recorder import Recorder
from cascade_runtime.vocabulary.events import Health
from cascade_runtime.vocabulary.identity import Actor
recorder = Recorder(Path(sys.argv[1]), sys.argv[2], Actor(0), segment_bytes=4096)
while True:
    recorder.reads(["a", "b"], "forward", [None, None], 1)
    recorder.done(recorder.entered("c", 0, "all_reduce", "b", 4, "float32"), 1)
    seq = recorder.row(Health, signal="x" * (recorder.seq % 97))
    os.write(1, struct.pack("<q", seq))
"""


@pytest.mark.chaos
@pytest.mark.parametrize("seed", range(3))
def test_what_was_written_survives_sigkill(trace: Path, seed: int) -> None:
    rows_before_the_kill = random.Random(seed).randrange(1, 3000)
    command = [sys.executable, "-c", WRITER, str(trace / "spool"), RUN]
    child = subprocess.Popen(command, stdout=subprocess.PIPE)
    assert child.stdout is not None
    with child.stdout as reports:
        told = reports.read(8 * rows_before_the_kill)
        child.send_signal(signal.SIGKILL)
        told += reports.read()
    assert child.wait() == -signal.SIGKILL
    last_told = struct.unpack("<q", told[len(told) // 8 * 8 - 8 : len(told) // 8 * 8])[0]
    rows = [row for row in all_rows(trace) if not isinstance(row, Gaps)]
    numbers = [row.seq for row in rows]
    assert numbers == list(range(len(numbers)))
    assert numbers[-1] >= last_told >= 4 * rows_before_the_kill - 1
    torn = [note for note in notes_of(trace) if "lost" in note]
    assert len(torn) <= 1
    assert all(row.completed for row in rows_of(trace)["collectives"] if row.seq < last_told)


# ---- fork -----------------------------------------------------------------------------------------

FORKER = """
import os, sys, threading
from pathlib import Path
from cascade_runtime.recorder import Recorder
from cascade_runtime.vocabulary.events import Health
from cascade_runtime.vocabulary.identity import Actor
recorder = Recorder(Path(sys.argv[1]), sys.argv[2], Actor(0), segment_bytes=2048)
forgotten = Recorder(Path(sys.argv[1]), sys.argv[2], Actor(1))
del forgotten  # its fork handler must bear that
for _ in range(3):
    recorder.steps("begin")
entered = recorder.entered("c", 0, "all_reduce", "b", 4, "float32")
held, over = threading.Event(), threading.Event()

def hold():
    with recorder._lock:
        held.set()
        over.wait()

thread = threading.Thread(target=hold)
thread.start()
held.wait()
child = os.fork()
if child == 0:  # a data loader worker, forked while another thread was writing
    for _ in range(100):
        recorder.steps("end")
        recorder.row(Health, signal="x" * 100)
    recorder.done(entered, 1)
    recorder.close()
    os._exit(7)
status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
over.set()
thread.join()
recorder.steps("begin")
recorder.done(entered, 1)
recorder.close()
print(status)
"""


def test_a_forked_child_writes_nothing(trace: Path) -> None:
    command = [sys.executable, "-c", FORKER, str(trace / "spool"), RUN]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr) == ("7\n", "")
    rows = all_rows(trace)
    assert [row.seq for row in rows] == [0, 1, 2, 3, 4]
    assert {table: len(found) for table, found in rows_of(trace).items()} == {
        "steps": 4,
        "collectives": 1,
    }
    assert rows_of(trace)["collectives"][0].done_seq == 5
    assert notes_of(trace) == []
    assert isinstance(written(trace)[-1][0], CollectiveDone)
    assert all(isinstance(record, Event) for record, _ in written(trace)[:-1])
