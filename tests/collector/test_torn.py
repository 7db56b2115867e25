"""What could not be read is a gap, and what could be read is kept."""

from __future__ import annotations

import msgspec
import pytest

from cascade_runtime.vocabulary import codec
from cascade_runtime.vocabulary.events import Debt, Gaps, Steps
from cascade_runtime.vocabulary.regime import Regime
from cascade_runtime.vocabulary.spool_format import HEADER, RECORD
from collector.trace.seal import seal_trace
from collector.trace.trace_writer import write_tables
from tests.collector.traces import (
    RUN,
    done,
    entered,
    frame,
    leading,
    make_trace,
    notes_of,
    rows_of,
    segment,
    step,
    write_spool,
)

RECORDS = [step(0), step(1), entered(2), done(2), step(3)]
WHOLE = segment(RECORDS)
ENDS = [HEADER.size]
for record in RECORDS:
    ENDS.append(ENDS[-1] + RECORD.size + len(codec.pack(record)))


def gap(seq: int, last: int | None = None, **changes) -> Gaps:
    row = Gaps(
        run_id=RUN,
        rank=0,
        incarnation=0,
        seq=seq,
        group_id="world",
        epoch=None,
        regime=None,
        step=None,
        wall_ns=2_000 + seq - 1,
        mono_ns=seq - 1,
        first_seq=seq,
        last_seq=last,
        num_events=None if last is None else last - seq + 1,
        tables=None,
        reason="corrupt",
    )
    return msgspec.structs.replace(row, **changes)


def rows_with(trace, data: bytes) -> dict:
    """The rows of a trace whose only segment is ``data``; reading leaves nothing behind."""
    folder = trace / "spool" / "0-0"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "0.seg").write_bytes(data)
    return rows_of(trace, "steps", "collectives", "gaps")


def test_cut_anywhere_each_earlier_record_survives_and_the_rest_is_a_gap(trace):
    for cut in range(len(WHOLE) + 1):
        rows = rows_with(trace, WHOLE[:cut])
        whole = [r for r, end in zip(RECORDS, ENDS[1:], strict=True) if end <= cut]
        steps = [r for r in whole if isinstance(r, Steps)]
        assert rows.get("steps", []) == steps, cut
        completed = [row.completed for row in rows.get("collectives", [])]
        assert completed == ([RECORDS[3] in whole] if RECORDS[2] in whole else []), cut
        first_missing = sum(r is not RECORDS[3] for r in whole)
        if cut == 0 or cut in ENDS:  # as good as a clean end
            assert "gaps" not in rows, cut
        elif first_missing:
            assert rows["gaps"] == [gap(first_missing)], cut
        else:  # nothing of the actor was read: the time is the trace's own
            assert rows["gaps"] == [gap(0, wall_ns=1_000, mono_ns=None)], cut


def test_a_flipped_byte_is_found_and_nothing_before_it_is_lost(trace):
    for place in range(len(WHOLE)):
        data = bytearray(WHOLE)
        data[place] ^= 0x41
        rows = rows_with(trace, bytes(data))
        before = {r.seq for r, end in zip(RECORDS, ENDS[1:], strict=True) if end <= place}
        kept = {r.seq for table in ("steps", "collectives") for r in rows.get(table, [])}
        assert before <= kept, place
        in_record = place >= HEADER.size and (place - max(e for e in ENDS if e <= place)) >= 4
        if in_record:  # its checksum or its payload; a length may also become 0 or fit by chance
            assert "gaps" in rows, place


def test_the_next_segment_says_where_the_lost_stretch_ends(trace):
    torn = segment([step(0), step(1)])[:-1]
    write_spool(trace, "0-0", torn, segment([step(5)], first_seq=5))
    rows = rows_of(trace)
    assert [r.seq for r in rows["steps"]] == [0, 5]
    assert rows["gaps"] == [gap(1, 4)]
    assert any("0.seg" in note and "past the end" in note for note in notes_of(trace))


def test_segments_are_read_in_the_order_of_their_numbers(trace):
    segments = [segment([step(n)], first_seq=n) for n in range(11)]
    segments[2] = segments[2][:-1]
    write_spool(trace, "0-0", *segments)
    assert rows_of(trace)["gaps"] == [gap(2, 2)]


def test_a_lost_completion_leaves_the_collective_unknown_and_makes_no_gap(trace):
    torn = segment([entered(0), done(0)])[:-1]
    write_spool(trace, "0-0", torn, segment([step(1)], first_seq=1))
    rows = rows_of(trace)
    assert "gaps" not in rows
    assert rows["collectives"][0].completed is None


@pytest.mark.parametrize("data", [b"", bytes(16), bytes(4096)])
def test_a_segment_that_was_not_begun_is_no_loss(trace, data):
    write_spool(trace, "0-0", segment([step(0)]), data)
    assert list(rows_of(trace)) == ["steps"]
    assert notes_of(trace) == []


def test_a_live_segment_ends_at_its_first_empty_length(trace):
    write_spool(trace, "0-0", WHOLE + bytes(1000))
    assert "gaps" not in rows_of(trace)


def test_a_segment_of_a_newer_version_is_a_gap_and_stays_where_it_is(trace):
    newer = bytearray(segment([step(1)], first_seq=1))
    newer[4] = 9
    folder = write_spool(trace, "0-0", segment([step(0)]), bytes(newer))
    assert rows_of(trace)["gaps"] == [gap(1)]
    summary = seal_trace(trace)
    assert (summary.kept, summary.num_actors) == (["0-0"], 0)
    assert len(list(folder.iterdir())) == 2
    assert not (trace / "events").exists()


def unknown(seq: int) -> bytes:
    return msgspec.msgpack.encode(["dreams", RUN, 0, 0, seq, "world", 0, None, None, 5, 5, "x"])


def test_rows_of_an_unknown_table_are_skipped_and_leave_no_unexplained_hole(trace):
    folder = write_spool(trace, "0-0", segment([step(0), unknown(1), step(2), unknown(3)]))
    rows = rows_of(trace)
    assert [r.seq for r in rows["steps"]] == [0, 2]
    # only inside: at the tail nothing looks missing
    assert rows["gaps"] == [gap(1, 1, reason="not_supplied", tables=["dreams"])]
    assert any("2 of the table dreams" in note for note in notes_of(trace))
    assert seal_trace(trace).kept == ["0-0"]
    assert folder.exists()


def test_a_whole_record_that_breaks_the_schema_is_accounted_for(trace):
    bad = msgspec.msgpack.encode(["steps", RUN, 0, 0, 1, "world", 0, None, None, 5, 5, "middle"])
    write_spool(trace, "0-0", segment([step(0), bad]))
    rows = rows_of(trace)
    assert [r.seq for r in rows["steps"]] == [0]
    assert rows["gaps"] == [gap(1, 1, tables=["steps"])]
    assert any("1 of steps that break the schema" in note for note in notes_of(trace))


def test_a_word_that_a_column_may_not_hold_is_stopped_at_the_door(trace):
    """The codec lets every regime through; a debt relaxes STRONG or CAUSAL only."""
    bad = Debt(**leading(1), action="opened", relaxed=Regime.EVENTUAL)
    write_spool(trace, "0-0", segment([step(0), bad]))
    before = rows_of(trace)
    assert before["gaps"] == [gap(1, 1, tables=["debt"])]
    seal_trace(trace)
    assert rows_of(trace) == before


@pytest.mark.parametrize("payload", [b"\xc1", b"\x01", b"\x90", b"\x91\x01", b"\x92\xa5steps\xa1r"])
def test_a_payload_that_is_no_record_is_skipped(trace, payload):
    write_spool(trace, "0-0", segment([step(0)]) + frame(payload) + segment([step(1)])[16:])
    assert [r.seq for r in rows_of(trace)["steps"]] == [0, 1]
    assert any("records skipped: 1" in note for note in notes_of(trace))


def test_what_was_shipped_before_the_tear_is_not_missing(trace):
    """The agent shipped rows that the torn spool no longer gives: only the rest is a gap."""
    write_spool(trace, "0-0", segment([step(0), step(1)])[:-1], segment([step(4)], first_seq=4))
    write_tables(trace, {"steps": [step(1), step(3)]})
    assert rows_of(trace)["gaps"] == [gap(2, 2, wall_ns=2_000, mono_ns=0)]


def test_what_another_gaps_row_covers_is_not_reported_again(trace):
    write_spool(trace, "0-0", segment([step(0), step(1)])[:-1], segment([step(9)], first_seq=9))
    stored = gap(1, 3, reason="dropped")
    write_tables(trace, {"gaps": [stored]})
    assert rows_of(trace)["gaps"] == [stored, gap(4, 8, wall_ns=2_000, mono_ns=0)]


def test_a_torn_spool_sealed_reads_as_before(trace, tmp_path):
    torn = segment([step(0), step(1)])[:-1]
    later = segment([step(5), entered(6)], first_seq=5)[:-2]
    write_spool(trace, "0-0", torn, later)
    before = rows_of(trace)
    summary = seal_trace(trace)
    assert summary.damaged == ["spool/damaged/0-0/0.seg", "spool/damaged/0-0/1.seg"]
    assert rows_of(trace) == before
    assert (trace / summary.damaged[0]).read_bytes() == torn
    assert seal_trace(trace).num_rows == {}
    assert make_trace(tmp_path / "other").is_dir()


@pytest.mark.parametrize("seq", [2**63 - 1, 2**63 - 2])
def test_the_highest_numbers_do_not_overflow(trace, seq):
    low = {"step": 0, "wall_ns": 1, "mono_ns": 1}  # these have a bound of their own
    write_spool(trace, "0-0", segment([step(0), step(seq, **low)])[:-1] + b"xx")
    assert len(rows_of(trace)["gaps"]) == 1
    write_spool(trace, "1-0", segment([step(seq, 1, **low)]) + b"torn")
    assert [g.rank for g in rows_of(trace)["gaps"]] == ([0] if seq == 2**63 - 1 else [0, 1])
