"""Bodies of records: MessagePack arrays and lines of JSON."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cascade_runtime.vocabulary.events import CollectiveDone
from collector.schema.rows import events_to_table
from collector.wire import records as records_module
from collector.wire.arrow_body import encode_arrow
from collector.wire.batch import ARROW, MSGPACK, NDJSON, BadBatch
from collector.wire.decode import decode
from collector.wire.records import encode_msgpack
from tests.collector.wire.bodies import rows_of, sample_rows, sample_tables

STEP = ["steps", "r", 0, 0, 7, "world", 0, None, 1, 5, 6, "begin", 0.5, 8]
NAMES = "table run_id rank incarnation seq group_id epoch regime step wall_ns mono_ns phase loss"
FIELDS = (*NAMES.split(), "num_samples")


def line(**changes):
    return msgspec.json.encode(dict(zip(FIELDS, STEP, strict=True)) | changes)


def ndjson(*lines):
    return decode(NDJSON, b"\n".join(lines))


def refused(media_type, body):
    with pytest.raises(BadBatch) as raised:
        decode(media_type, body)
    return raised.value


def test_the_three_forms_hold_the_same_rows():
    rows = sorted(sample_rows(), key=repr)
    assert len({type(row) for row in rows}) > 8
    packed = decode(MSGPACK, encode_msgpack(list(rows)))
    text = ndjson(*map(msgspec.json.encode, rows))
    arrow = decode(ARROW, encode_arrow(dict(sample_tables())))
    assert rows_of(packed) == rows_of(text) == rows_of(arrow) == rows
    assert packed.num_rows == text.num_rows == arrow.num_rows == len(rows)


def test_not_a_number_travels_in_two_of_the_forms():
    packed = decode(MSGPACK, msgspec.msgpack.encode([[*STEP[:12], float("nan"), 8]])).records
    assert packed[0].loss != packed[0].loss
    again = decode(ARROW, encode_arrow({"steps": events_to_table("steps", packed)}))
    assert rows_of(again)[0].loss != rows_of(again)[0].loss
    assert "line 1" in refused(NDJSON, line().replace(b"0.5", b"NaN")).where
    assert ndjson(line(loss=None)).records[0].loss is None


def test_an_object_is_the_same_as_the_array():
    assert ndjson(line()).records == ndjson(msgspec.json.encode(STEP)).records
    done = b'{"table":"collective_done","run_id":"r","rank":0,"incarnation":0,"seq":1,"done_seq":2}'
    assert ndjson(done).records == [CollectiveDone("r", 0, 0, 1, 2)]
    only = b'{"table":"steps","run_id":"r","rank":0,"incarnation":0,"seq":1,"group_id":"w","wall_ns":1}'
    assert ndjson(only).records[0].phase is None


def test_of_equal_keys_the_last_counts():
    assert ndjson(line()[:-1] + b',"rank":3}').records[0].rank == 3


def test_empty_lines_and_carriage_returns_are_nothing():
    plain = ndjson(line(), line(seq=8)).records
    assert (
        ndjson(b"", line() + b"\r", b"  ", b"\t" + line(seq=8) + b" ", b"\r", b"").records == plain
    )
    assert ndjson(b"").num_rows == ndjson(b"\n\n").num_rows == 0


@pytest.mark.parametrize(
    ("body", "where"),
    [
        (line(seq=-1), "line 1: steps.seq"),
        (line(seq=2**63), "line 1: steps.seq"),
        (line(wall_ns=10**400), "line 1: steps.wall_ns"),
        (line(wall_ns=-(2**63)), "line 1: steps.wall_ns"),
        (line(wall_ns=2**62 + 1), "line 1: steps.wall_ns"),
        (line(epoch=-(2**63)), "line 1: steps.epoch"),
        (line(rank="0"), "line 1: steps.rank"),
        (line(phase="middle"), "line 1: steps.phase"),
        (line(group_id=None), "line 1: steps.group_id"),
        (line(loss=1.5).replace(b"1.5", b"1e999"), "line 1"),
        (line(colour="red"), "line 1: steps.colour"),
        (line(table="nothing"), "line 1: table"),
        (line(table=None), "line 1: table"),
        (line().replace(b'"wall_ns":5,', b""), "line 1: steps.wall_ns"),
        (line() + b"\n\n" + line(rank=-3), "line 3: steps.rank"),
        (b"\n[]", "line 2"),
        (b"5", "line 1"),
        (b"][", "line 1"),
        (b"]\n[", "line 1"),
        (b'"steps"', "line 1"),
        (b'["steps"]', "line 1"),
        (msgspec.json.encode([*STEP, 1, 2]), None),
        (msgspec.json.encode(STEP) * 2, "line 1"),
        (msgspec.json.encode(STEP) + b"," + msgspec.json.encode(STEP), "line 1"),
        (msgspec.json.encode(STEP)[:30] + b"\n" + msgspec.json.encode(STEP)[30:], "line 1"),
        (line().replace(b'"r"', b'"\xff"'), "line 1"),
        (line().replace(b'"r"', b'"\\ud800"'), "line 1"),
        (b"[" * 100_000, "line 1"),
        (b'{"a":' * 100_000, "line 1"),
    ],
)
def test_a_wrong_line_is_named_with_its_field(body, where):
    if where is None:
        assert decode(NDJSON, body).num_rows == 1  # columns of a newer writer are passed over
        return
    assert refused(NDJSON, body).where == where


def test_two_records_on_a_line_are_not_hidden_by_one_on_two_lines():
    one = msgspec.json.encode(STEP)
    assert refused(NDJSON, one + b"," + one + b"\n" + one[:30] + b"\n" + one[30:]).where == "line 1"


@pytest.mark.parametrize(
    ("body", "where"),
    [
        (b"", "body"),
        (b"\x80", "body"),
        (b"\xc1", "body"),
        (msgspec.msgpack.encode([STEP, 5]), "record 2"),
        (msgspec.msgpack.encode([STEP, [*STEP[:4], -1, *STEP[5:]]]), "record 2: steps.seq"),
        (msgspec.msgpack.encode([["nothing", 1]]), "record 1"),
        (msgspec.msgpack.encode([STEP]) + b"\x00", "body"),
        (msgspec.msgpack.encode([STEP]).replace(b"\xa1r", b"\xa1\xff"), "body"),
        (b"\x91" * 100_000, "record 1"),
        (b"\xdd\xff\xff\xff\xff", "body"),
        (b"\xdc\xff\xff", "body"),
        (b"\x91\x9e\xa5steps\xdb\xff\xff\xff\xff", "body"),
    ],
)
def test_a_wrong_record_is_named_with_its_field(body, where):
    assert refused(MSGPACK, body).where == where


def test_words_that_only_some_columns_may_hold():
    row = ["debt", "r", 0, 0, 1, "world", 0, "STRONG", 1, 5, 6, "opened", "d", "EVENTUAL"]
    for media_type, body in (
        (MSGPACK, msgspec.msgpack.encode([row])),
        (NDJSON, msgspec.json.encode(row)),
    ):
        error = refused(media_type, body)
        assert "relaxed is EVENTUAL" in error.message
        assert error.where.endswith("1: debt")


def test_too_many_rows(monkeypatch):
    monkeypatch.setattr(records_module, "MAX_RECORDS", 3)
    four = [[*STEP[:4], seq, *STEP[5:]] for seq in range(4)]
    for media_type, body in (
        (MSGPACK, msgspec.msgpack.encode(four)),
        (NDJSON, b"\n".join(map(msgspec.json.encode, four))),
        (MSGPACK, b"\xdd\x00\x00\x00\x04"),
    ):
        assert refused(media_type, body).hint == "send smaller batches"


@given(st.binary(max_size=200))
def test_any_bytes_are_a_batch_or_refused(body):
    for media_type in (MSGPACK, NDJSON):
        batch = taken(media_type, body)
        assert batch is None or batch.num_rows == len(batch.records)


def taken(media_type, body):
    """The batch; None when it is refused."""
    try:
        return decode(media_type, body)
    except BadBatch:
        return None


@given(st.data())
def test_flipped_bytes_of_records_are_a_batch_or_refused(data):
    body = bytearray(encode_msgpack(list(sample_rows()[:40])))
    for _ in range(data.draw(st.integers(1, 3))):
        body[data.draw(st.integers(0, len(body) - 1))] = data.draw(st.integers(0, 255))
    batch = taken(MSGPACK, bytes(body))
    records = batch.records if batch else []
    for name in {type(r).__struct_config__.tag for r in records} - {"collective_done"}:
        events_to_table(name, [r for r in records if type(r).__struct_config__.tag == name])
