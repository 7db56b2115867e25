"""What the recorder writes is what a reader of the trace gets, number by number and byte by byte."""

from __future__ import annotations

import itertools
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cascade_runtime.recorder import Recorder
from cascade_runtime.vocabulary import codec
from cascade_runtime.vocabulary.events import (
    EVENT_TYPES,
    CollectiveDone,
    Collectives,
    Event,
    Health,
    Reads,
    Steps,
    Updates,
)
from cascade_runtime.vocabulary.identity import Actor, Dot
from cascade_runtime.vocabulary.regime import Regime
from cascade_runtime.vocabulary.spool_format import Torn, read_header, read_records
from tests.collector.traces import RUN, make_trace, notes_of, rows_of
from tests.vocabulary.strategies import instances

LEADING = msgspec.structs.fields(Event)
ME = Actor(3, 1)


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    return make_trace(tmp_path / "trace")


def record_into(trace: Path, **options: Any) -> Recorder:
    return Recorder(trace / "spool", RUN, ME, **options)


def segments(trace: Path) -> list[bytes]:
    files = sorted((trace / "spool" / "3-1").iterdir(), key=lambda p: int(p.stem))
    return [file.read_bytes() for file in files]


def payloads(trace: Path) -> list[bytes]:
    found = []
    for data in segments(trace):
        for item in read_records(data):
            assert not isinstance(item, Torn)
            found.append(bytes(item))
    return found


def seqs(trace: Path) -> list[int]:
    return sorted(row.seq for rows in rows_of(trace).values() for row in rows)


# ---- what is written is what is read --------------------------------------------------------------


@st.composite
def any_rows(draw: Any) -> list[Event]:
    rows = []
    for kind in draw(st.lists(st.sampled_from(EVENT_TYPES), min_size=1, max_size=8)):
        row = draw(instances(kind))
        if getattr(row, "relaxed", None) is Regime.EVENTUAL:
            row = msgspec.structs.replace(row, relaxed=None)  # a word that debts may not hold
        if isinstance(row, Collectives):
            row = msgspec.structs.replace(row, completed=True)
        rows.append(row)
    return rows


@given(rows=any_rows())
@settings(deadline=None, max_examples=25, suppress_health_check=[HealthCheck.too_slow])
def test_any_row_is_read_back_as_it_was_written(rows: list[Event]) -> None:
    leading = {field.name for field in LEADING}
    with tempfile.TemporaryDirectory() as folder:
        trace = make_trace(Path(folder) / "t")
        recorder = record_into(trace, segment_bytes=400)
        for number, row in enumerate(rows):
            recorder.set_view(number, Regime.CAUSAL)
            recorder.set_step(number + 7)
            own = {k: v for k, v in msgspec.structs.asdict(row).items() if k not in leading}
            assert recorder.row(type(row), **own) == number
        recorder.close()
        read = [r for table in rows_of(trace).values() for r in table]
        assert notes_of(trace) == []
    read.sort(key=lambda r: r.seq)
    assert [type(r) for r in read] == [type(r) for r in rows]
    for number, (told, row) in enumerate(zip(read, rows, strict=True)):
        assert (told.run_id, told.rank, told.incarnation, told.seq) == (RUN, 3, 1, number)
        assert (told.group_id, told.epoch, told.regime) == ("world", number, Regime.CAUSAL)
        assert told.step == number + 7
        same = {name: getattr(told, name) for name in leading}
        assert told == msgspec.structs.replace(row, **same)


def test_stamps_are_taken_at_the_moment_and_on_one_scale(trace: Path) -> None:
    recorder = record_into(trace)
    before, wall_before = time.monotonic_ns(), time.time_ns()
    recorder.steps("begin")
    recorder.row(Health, signal="dead")
    after = time.monotonic_ns()
    assert abs(recorder.wall_ns(after) - time.time_ns()) < 1_000_000_000
    recorder.close()
    first, second = rows_of(trace)["steps"][0], rows_of(trace)["health"][0]
    assert before <= first.mono_ns <= second.mono_ns <= after
    assert first.wall_ns - first.mono_ns == second.wall_ns - second.mono_ns
    assert recorder.wall_ns(first.mono_ns) == first.wall_ns
    assert abs(first.wall_ns - wall_before) < 1_000_000_000


def test_row_takes_a_step_an_epoch_and_a_regime_of_its_own(trace: Path) -> None:
    recorder = record_into(trace)
    recorder.row(Health, step=9, epoch=4, regime=Regime.EVENTUAL)
    recorder.row(Health)
    recorder.close()
    own, usual = rows_of(trace)["health"]
    assert (own.step, own.epoch, own.regime) == (9, 4, Regime.EVENTUAL)
    assert (usual.step, usual.epoch, usual.regime) == (0, 0, Regime.STRONG)


def test_a_closed_recorder_takes_nothing_more(trace: Path) -> None:
    recorder = record_into(trace)
    entered = recorder.entered("c", 0, "all_reduce", "b", 4, "float32")
    recorder.close()
    assert recorder.steps("end") == 1
    recorder.done(entered, time.monotonic_ns())
    recorder.close()
    assert seqs(trace) == [0]
    assert recorder.seq == 1
    assert rows_of(trace)["collectives"][0].completed is False


def test_each_incarnation_has_a_folder_of_its_own(tmp_path: Path) -> None:
    for incarnation in (0, 1):
        recorder = Recorder(tmp_path, RUN, Actor(2, incarnation))
        recorder.steps("begin")
        recorder.close()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["2-0", "2-1"]


# ---- hot methods ----------------------------------------------------------------------------------

DOTS = [Dot(0, 0, 4), Dot(1, 2, 9)]


def one_done(recorder: Recorder) -> None:
    seq = recorder.entered("c", 5, "broadcast", "buffers", 12, "uint8", 2, "f.py:3", False)
    recorder.done(seq, time.monotonic_ns(), "ab")


HOT: dict[str, tuple[Callable[[Recorder], object], list[tuple[type, dict[str, Any]]]]] = {
    "steps": (
        lambda r: r.steps("end", 0.5, 32),
        [(Steps, {"phase": "end", "loss": 0.5, "num_samples": 32})],
    ),
    "reads": (
        lambda r: r.reads(["params/0", "buffers"], "forward", [DOTS[0], None], 3),
        [
            (
                Reads,
                {"object": "params/0", "use": "forward", "origin_rank": 0, "counter": 4}
                | {"origin_incarnation": 0, "version": 3, "frontier": None},
            ),
            (
                Reads,
                {"object": "buffers", "use": "forward", "origin_rank": None, "counter": None}
                | {"origin_incarnation": None, "version": 3, "frontier": None},
            ),
        ],
    ),
    "reads below STRONG": (
        lambda r: r.reads(["params/0"], "forward", [None], None, DOTS),
        [(Reads, {"object": "params/0", "counter": None, "version": None, "frontier": DOTS})],
    ),
    "updates": (
        lambda r: r.updates("issued", ["params/0", "optim"], DOTS, 7, [Dot(5, 0, 1)], [10, None]),
        [
            (
                Updates,
                {"action": "issued", "object": "params/0", "origin_rank": 0, "counter": 4}
                | {"origin_incarnation": 0, "version": 7, "deps": [Dot(5, 0, 1)], "num_bytes": 10},
            ),
            (
                Updates,
                {"action": "issued", "object": "optim", "origin_rank": 1, "counter": 9}
                | {"origin_incarnation": 2, "version": 7, "num_bytes": None, "digest": None},
            ),
        ],
    ),
    "entered": (
        lambda r: r.entered("c", 5, "broadcast", "buffers", 12, "uint8", 2, "f.py:3", False),
        [
            (
                Collectives,
                {"comm_id": "c", "cseq": 5, "op": "broadcast", "label": "buffers", "root": 2}
                | {"num_bytes": 12, "dtype": "uint8", "call_site": "f.py:3", "is_async": False}
                | {"done_seq": None, "completed": False, "complete_ns": None},
            )
        ],
    ),
    "done": (
        one_done,
        [
            (Collectives, {"comm_id": "c", "done_seq": None}),
            (CollectiveDone, {"seq": 0, "done_seq": 1, "completed": True, "payload_digest": "ab"}),
        ],
    ),
}


@pytest.mark.parametrize("name", HOT)
def test_the_tuple_form_is_the_struct_s_bytes(trace: Path, name: str) -> None:
    call, expected = HOT[name]
    recorder = record_into(trace)
    recorder.set_view(2, Regime.CAUSAL)
    recorder.set_step(11)
    call(recorder)
    recorder.close()
    raw = payloads(trace)
    records = [codec.unpack(payload) for payload in raw]
    assert [codec.pack(record) for record in records] == raw
    assert [type(record) for record in records] == [kind for kind, _ in expected]
    for number, (record, (_, fields)) in enumerate(zip(records, expected, strict=True)):
        assert {name: getattr(record, name) for name in fields} == fields
        assert (record.run_id, record.rank, record.incarnation) == (RUN, 3, 1)
        if isinstance(record, Event):
            assert (record.seq, record.epoch, record.regime) == (number, 2, Regime.CAUSAL)
            assert (record.step, record.group_id) == (11, "world")


def test_rows_of_one_call_have_one_moment(trace: Path) -> None:
    recorder = record_into(trace)
    recorder.updates("applied", ["a", "b"], DOTS, 1, [], [None, None])
    recorder.reads(["a", "b"], "forward", [None, None], 1)
    recorder.close()
    for table in ("updates", "reads"):
        assert len({row.mono_ns for row in rows_of(trace)[table]}) == 1


def test_a_collective_becomes_one_row_with_its_completion(trace: Path) -> None:
    recorder = record_into(trace)
    first = recorder.entered("c", 0, "all_reduce", "bucket/0", 4, "float32")
    second = recorder.entered("c", 1, "all_reduce", "bucket/1", 4, "float32")
    recorder.steps("end")
    moment = time.monotonic_ns()
    recorder.done(second, moment, "d1")
    recorder.close()
    open_row, whole = rows_of(trace)["collectives"]
    assert (first, second) == (0, 1)
    assert (open_row.completed, open_row.done_seq) == (False, None)
    assert (whole.completed, whole.done_seq, whole.payload_digest) == (True, 3, "d1")
    assert whole.complete_ns == recorder.wall_ns(moment)
    assert whole.enter_ns == whole.wall_ns


# ---- numbers and segments -------------------------------------------------------------------------


def test_numbers_run_without_a_hole_over_all_tables_and_segments(trace: Path) -> None:
    recorder = record_into(trace, segment_bytes=900)
    for number in range(40):
        recorder.steps("begin")
        recorder.reads(["a", "b", "c"], "forward", [None] * 3, number)
        recorder.row(Health, signal="x", value=float(number))
        recorder.done(recorder.entered("c", number, "all_reduce", "b", 4, "float32"), 1)
    recorder.close()
    assert seqs(trace) == list(range(240))
    written = segments(trace)
    assert len(written) > 10
    assert all(len(data) <= 900 for data in written)
    for before, data in itertools.pairwise(written):
        rows = [codec.unpack(p) for p in read_records(before) if not isinstance(p, Torn)]
        assert read_header(data) == 1 + max(r.seq for r in rows if isinstance(r, Event))


def test_a_row_larger_than_a_segment_gets_one_that_fits(trace: Path) -> None:
    recorder = record_into(trace, segment_bytes=300)
    recorder.steps("begin")
    recorder.row(Health, signal="x" * 5000)
    recorder.steps("end")
    recorder.close()
    assert seqs(trace) == [0, 1, 2]
    assert rows_of(trace)["health"][0].signal == "x" * 5000
    assert [len(data) > 5000 for data in segments(trace)] == [False, True, False]


def test_a_segment_that_is_being_written_can_be_read(trace: Path) -> None:
    recorder = record_into(trace)
    recorder.steps("begin")
    assert seqs(trace) == [0]
    recorder.steps("end")
    assert seqs(trace) == [0, 1]
    assert notes_of(trace) == []
    recorder.close()
    assert len(segments(trace)[0]) < 1000  # trimmed


def test_two_threads_never_share_a_number(trace: Path) -> None:
    recorder = record_into(trace, segment_bytes=2000)
    numbers: list[list[int]] = [[], []]
    usual = sys.getswitchinterval()

    def write(mine: list[int]) -> None:
        for _ in range(300):
            mine.append(recorder.steps("begin"))
            mine.append(recorder.row(Health, signal="x"))
            seq = recorder.entered("c", 0, "all_reduce", "b", 4, "float32")
            recorder.done(seq, 1)
            mine.append(seq)

    threads = [threading.Thread(target=write, args=(mine,)) for mine in numbers]
    sys.setswitchinterval(1e-6)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(usual)
    recorder.close()
    assert sorted(numbers[0] + numbers[1]) == list(range(1800))
    assert seqs(trace) == list(range(1800))
    assert all(row.completed for row in rows_of(trace)["collectives"])
    assert notes_of(trace) == []
