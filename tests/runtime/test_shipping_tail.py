"""Reading a spool while it is written: nothing early, nothing twice, what is torn accounted for."""

from __future__ import annotations

import tempfile
import zlib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cascade_runtime.agent.shipping.cursor import Cursor
from cascade_runtime.agent.shipping.spool import MAX_BYTES, MAX_RECORDS, HostSpool
from cascade_runtime.agent.shipping.tail import Budget, Tail
from cascade_runtime.recorder import Recorder
from cascade_runtime.vocabulary import codec
from cascade_runtime.vocabulary.events import CollectiveDone, Gaps, Raw
from cascade_runtime.vocabulary.identity import Actor
from cascade_runtime.vocabulary.spool_format import HEADER, RECORD, read_records
from tests.collector.traces import RUN, make_trace, rows_of

ME = Actor(1, 2)


@pytest.fixture
def spool(tmp_path: Path) -> Path:
    return tmp_path / "spool"


def recorder(spool: Path, actor: Actor = ME, **options: Any) -> Recorder:
    return Recorder(spool, RUN, actor, **({"segment_bytes": 400} | options))


def tail(spool: Path) -> Tail:
    return Tail(RUN, ME, spool / "1-2")


def read(reader: Tail, *, ended: bool = False, records: int = 10_000) -> list[Any]:
    return [codec.unpack(p) for p in reader.read(Budget(records, 1 << 30), ended=ended)]


def segments(spool: Path) -> list[Path]:
    return sorted((spool / "1-2").glob("*.seg"), key=lambda p: int(p.stem))


def seqs(records: list[Any]) -> list[int]:
    return [r.seq for r in records]


def test_rows_are_there_as_soon_as_they_are_written(spool: Path) -> None:
    writer, reader = recorder(spool), tail(spool)
    assert read(reader) == []
    for seq in range(20):  # some segments
        writer.steps("begin")
        assert seqs(read(reader)) == [seq]
        assert read(reader) == []
    writer.close()
    assert read(reader, ended=True) == []
    assert reader.at_end


def test_payloads_are_the_very_bytes_of_the_spool(spool: Path) -> None:
    writer = recorder(spool)
    seq = writer.entered("c", 0, "all_reduce", "grads", 8, "float32")
    writer.done(seq, 5)
    writer.steps("end", float("nan"))
    writer.close()
    stored = [bytes(p) for s in segments(spool) for p in read_records(s.read_bytes())]
    assert tail(spool).read(Budget(99, 1 << 20), ended=True) == stored


def test_what_is_half_written_in_a_live_segment_is_not_there_yet(spool: Path) -> None:
    recorder(spool).steps("begin")
    reader = tail(spool)
    assert seqs(read(reader)) == [0]
    (segment,) = segments(spool)
    payload = codec.pack(Raw(RUN, 1, 2, 1, "world", None, None, None, 0, None, text="x"))
    at = HEADER.size + RECORD.size + RECORD.unpack_from(segment.read_bytes(), HEADER.size)[0]
    with segment.open("r+b") as file:  # another processor may see the length first
        file.seek(at)
        file.write(RECORD.pack(len(payload), zlib.crc32(payload)))
        file.flush()
        assert read(reader) == []
        file.write(payload)
    assert seqs(read(reader)) == [1]


def test_a_segment_that_was_made_and_not_begun_is_no_loss(spool: Path) -> None:
    recorder(spool).steps("begin")
    (spool / "1-2" / "1.seg").write_bytes(bytes(400))
    reader = tail(spool)
    assert seqs(read(reader)) == [0]
    assert not reader.at_end
    assert read(reader, ended=True) == []
    assert reader.at_end


def test_a_torn_stretch_becomes_a_gaps_row_with_the_first_missing_seq(spool: Path) -> None:
    writer = recorder(spool)
    for _ in range(12):
        writer.steps("begin")
    before = [
        seqs([codec.unpack(p) for p in read_records(s.read_bytes())]) for s in segments(spool)
    ]
    broken = segments(spool)[1]
    data = bytearray(broken.read_bytes())
    data[-5] ^= 1  # in its last record
    broken.write_bytes(data)
    found = read(tail(spool))
    (gap,) = [r for r in found if isinstance(r, Gaps)]
    lost = before[1][-1]
    assert (gap.seq, gap.first_seq, gap.last_seq, gap.num_events) == (lost, lost, lost, 1)
    assert gap.reason == "corrupt"
    assert gap.tables is None
    assert gap.wall_ns == found[lost - 1].wall_ns
    assert seqs(found) == list(range(12))  # in its place


def test_a_torn_end_has_no_last_seq(spool: Path) -> None:
    writer = recorder(spool, segment_bytes=4096)
    for _ in range(3):
        writer.steps("begin")
    writer.close()
    data = segments(spool)[0].read_bytes()
    segments(spool)[0].write_bytes(data[:-3])
    reader = tail(spool)
    assert seqs(read(reader)) == [0, 1]  # perhaps it is being written
    (gap,) = read(reader, ended=True)
    assert (gap.seq, gap.first_seq, gap.last_seq, gap.num_events) == (2, 2, None, None)


def test_no_number_is_missing_when_only_a_completion_was_torn(spool: Path) -> None:
    writer = recorder(spool)
    seq = writer.entered("c", 0, "barrier", "", 0, "none")
    writer.done(seq, 5)
    while len(segments(spool)) < 2:
        writer.steps("begin")
    data = bytearray(segments(spool)[0].read_bytes())
    offset = HEADER.size
    while True:
        length = RECORD.unpack_from(data, offset)[0]
        payload = data[offset + RECORD.size : offset + RECORD.size + length]
        if isinstance(codec.unpack(bytes(payload)), CollectiveDone):
            break
        offset += RECORD.size + length
    first_of_next = codec.unpack(bytes(next(iter(read_records(segments(spool)[1].read_bytes())))))
    assert first_of_next.seq > 1 or len(data) == offset + RECORD.size + length
    data[offset + RECORD.size] ^= 1
    segments(spool)[0].write_bytes(data[: offset + RECORD.size + length])
    found = read(tail(spool))
    gaps = [r for r in found if isinstance(r, Gaps)]
    assert [(g.first_seq, g.last_seq) for g in gaps] == (
        [(1, first_of_next.seq - 1)] if first_of_next.seq > 1 else []
    )


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_damage_is_told_as_the_collector_would_tell_it(data: st.DataObject) -> None:
    """The same damaged spool, shipped and read in place: the same rows, the same gaps."""
    with tempfile.TemporaryDirectory() as folder:
        trace = make_trace(Path(folder) / "trace")
        spool = trace / "spool"
        writer = recorder(spool)
        for number in range(data.draw(st.integers(1, 14))):
            if number % 3 == 2:
                writer.done(writer.entered("c", number, "barrier", "", 0, "none"), 5)
            else:
                writer.steps("begin")
        writer.close()
        for _ in range(data.draw(st.integers(1, 3))):
            victim = data.draw(st.sampled_from(segments(spool)))
            content = bytearray(victim.read_bytes())
            if data.draw(st.booleans()):
                # not into the header's first seq, which nothing guards
                at = data.draw(st.sampled_from([0, *range(HEADER.size, len(content))]))
                content[at] ^= data.draw(st.sampled_from([1, 128]))
            else:
                content = content[: data.draw(st.integers(HEADER.size, len(content)))]
            victim.write_bytes(content)
        shipped = read(tail(spool), ended=True)
        read_back = [r for rows in rows_of(trace).values() for r in rows]
        told = {r.seq: r for r in read_back}
        sent = {r.seq: r for r in shipped if not isinstance(r, CollectiveDone)}
        assert sorted(sent) == sorted(told)
        for seq, row in sent.items():
            if isinstance(row, Gaps):
                assert told[seq].first_seq == row.first_seq
                assert told[seq].last_seq == row.last_seq
                assert told[seq].reason == "corrupt"


# ---- many actors -------------------------------------------------------------------------------


def host_spool(spool: Path, tmp_path: Path, ranks: list[int]) -> HostSpool:
    return HostSpool(spool, RUN, ranks, Cursor(tmp_path / "cursor"))


def test_small_actors_go_together_and_other_hosts_are_left_alone(
    spool: Path, tmp_path: Path
) -> None:
    for actor in (Actor(0), Actor(0, 1), Actor(2), Actor(5)):
        recorder(spool, actor).steps("begin")
    payloads, more = host_spool(spool, tmp_path, [0, 5]).collect()
    assert not more
    found = [codec.unpack(p) for p in payloads]
    assert {(r.rank, r.incarnation) for r in found} == {(0, 0), (0, 1), (5, 0)}


def test_a_batch_is_bounded_and_nobody_starves(spool: Path, tmp_path: Path) -> None:
    busy, quiet = recorder(spool, Actor(0), segment_bytes=1 << 20), recorder(spool, Actor(1))
    for _ in range(3 * MAX_RECORDS):
        busy.steps("begin")
    quiet.steps("begin")
    mine = host_spool(spool, tmp_path, [0, 1])
    batches = []
    more = True
    while more:
        payloads, more = mine.collect()
        batches.append([codec.unpack(p) for p in payloads])
    assert max(len(b) for b in batches) <= MAX_RECORDS
    assert 1 in {r.rank for batch in batches[:2] for r in batch}
    assert sum(len(b) for b in batches) == 3 * MAX_RECORDS + 1


def test_a_record_larger_than_a_batch_goes_alone(spool: Path, tmp_path: Path) -> None:
    writer = recorder(spool, Actor(0))
    writer.steps("begin")
    writer.row(Raw, text="x" * (MAX_BYTES + 9))
    writer.steps("end")
    mine = host_spool(spool, tmp_path, [0])
    sizes = [len(mine.collect()[0]) for _ in range(4)]
    assert sizes == [1, 1, 1, 0]
