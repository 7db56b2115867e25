"""The step ring: written by a rank, read by its agent at its leisure."""

from __future__ import annotations

import struct
import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cascade_runtime.step_ring import SLOTS, StepRing, StepRingReader, StepTimes


@pytest.fixture
def ring(tmp_path):
    return StepRing(tmp_path / "ring")


def write(ring, step, epoch=0):
    ring.entered_ns = step * 10
    ring.end(step, epoch, step * 10 + 3, step)


def times(step, epoch=0):
    return StepTimes(step, epoch, step * 10, step * 10 + 3, step)


def test_each_step_is_read_once_in_order(ring, tmp_path):
    reader = StepRingReader(tmp_path / "ring")
    assert reader.new() == []
    for step in (1, 2, 3):
        write(ring, step)
    assert reader.new() == [times(1), times(2), times(3)]
    assert reader.new() == []
    write(ring, 4, epoch=2)
    assert reader.new() == [times(4, 2)]


def test_a_reader_may_come_before_the_ring_and_long_after(tmp_path):
    reader = StepRingReader(tmp_path / "late")
    assert reader.new() == []
    (tmp_path / "late").write_bytes(b"")
    assert reader.new() == []  # its rank is about to make it
    ring = StepRing(tmp_path / "late")
    for step in range(1000):
        write(ring, step)
    del ring  # its rank is dead
    assert reader.new() == [times(s) for s in range(1000 - SLOTS + 1, 1000)]


@given(st.lists(st.integers(0, 3 * SLOTS), max_size=20))
@settings(deadline=None, max_examples=50)
def test_whatever_the_pace_nothing_is_told_twice_or_wrong(tmp_path_factory, paces):
    folder = tmp_path_factory.mktemp("ring")
    ring, reader, step, seen = StepRing(folder / "r"), StepRingReader(folder / "r"), 0, []
    for pace in paces:
        for _ in range(pace):
            step += 1
            write(ring, step)
        new = reader.new()
        assert (
            new
            == [times(s) for s in range(max(step - pace, step - SLOTS + 1) + 1, step + 1)][
                -(SLOTS - 1) :
            ]
        )
        seen += new
    assert len({t.step for t in seen}) == len(seen)


def test_read_while_it_is_written_every_record_is_whole(tmp_path):
    """The writer never waits for the reader; what was overwritten meanwhile is left out."""
    ring, reader = StepRing(tmp_path / "ring"), StepRingReader(tmp_path / "ring")
    over, seen = threading.Event(), []

    def writes():
        for step in range(1, 30_001):
            write(ring, step)
        over.set()

    writer = threading.Thread(target=writes)
    writer.start()
    while not over.is_set():
        seen += reader.new()
    writer.join()
    seen += reader.new()
    assert [t for t in seen if t != times(t.step)] == []
    assert [t.step for t in seen] == sorted({t.step for t in seen})
    assert seen[-1].step == 30_000


def test_a_record_that_has_not_arrived_is_read_later(ring, tmp_path):
    """The count may be seen before the record's words are, on some processors."""
    reader = StepRingReader(tmp_path / "ring")
    write(ring, 1)
    with (tmp_path / "ring").open("r+b") as file:
        file.write(struct.pack("q", 2))
    assert reader.new() == [times(1)]
    write(ring, 2)
    assert reader.new() == [times(2)]
