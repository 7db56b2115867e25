"""Every record to bytes and back, in both forms."""

from __future__ import annotations

import math

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cascade_runtime.vocabulary import codec
from cascade_runtime.vocabulary.events import EVENT_TYPES, Event, Steps
from tests.vocabulary.strategies import LAWS, RECORD_NAMES, RECORD_TYPES, instances, records

FEW = settings(LAWS, max_examples=30)
each_record = pytest.mark.parametrize("struct", RECORD_TYPES, ids=RECORD_NAMES)
ONE = Steps("run", 0, 0, 7, "world", 1, None, 3, 10, None, "begin")


def as_array(record) -> list:
    """The record as the array that is on the wire."""
    return msgspec.msgpack.decode(codec.pack(record))


@each_record
@given(data=st.data())
@FEW
def test_both_forms_round_trip_and_agree(struct, data):
    record = data.draw(instances(struct))
    assert codec.unpack(codec.pack(record)) == record
    assert codec.from_json(codec.to_json(record)) == record
    assert msgspec.json.decode(codec.to_json(record)) == as_array(record)
    assert b"\n" not in codec.to_json(record)


@each_record
@given(data=st.data())
@FEW
def test_a_tuple_gives_the_same_bytes_as_the_struct(struct, data):
    record = data.draw(instances(struct))
    fields = (getattr(record, name) for name in struct.__struct_fields__)
    assert codec.pack((struct.__struct_config__.tag, *fields)) == codec.pack(record)


@given(records(), st.lists(st.none() | st.integers() | st.text() | st.lists(st.booleans())))
@LAWS
def test_columns_of_a_newer_writer_are_passed_over(record, unknown):
    longer = as_array(record) + unknown
    assert codec.from_json(msgspec.json.encode(longer)) == record


@given(records(), st.data())
@LAWS
def test_columns_that_an_older_writer_did_not_have_read_as_null(record, data):
    fields = type(record).__struct_fields__
    needed = len(fields) - len(type(record).__struct_defaults__)
    kept = data.draw(st.integers(needed, len(fields)))
    shorter = codec.unpack(msgspec.msgpack.encode(as_array(record)[: 1 + kept]))
    for name, default in zip(fields[needed:], type(record).__struct_defaults__, strict=True):
        there = name in fields[:kept]
        assert getattr(shorter, name) == (getattr(record, name) if there else default)


@given(records(), st.data())
@LAWS
def test_an_error_says_which_field_is_bad(record, data):
    at = data.draw(st.integers(1, len(type(record).__struct_fields__)))
    array = as_array(record)
    array[at] = {"no column": "holds a map"}
    with pytest.raises(msgspec.ValidationError, match=rf"at `\$\[{at}\]"):
        codec.unpack(msgspec.msgpack.encode(array))
    with pytest.raises(msgspec.ValidationError, match=rf"at `\$\[{at}\]"):
        codec.from_json(msgspec.json.encode(array))


@pytest.mark.parametrize(
    ("at", "bad"),
    [
        (0, "no_such_table"),
        (2, -1),  # rank below 0
        (2, 2**31),  # rank outside int32
        (4, -1),  # seq below 0
        (4, 2**63),  # seq outside int64
        (7, "WEAK"),  # no regime
        (11, "middle"),  # no phase of a step
        (1, None),  # run_id may not be null
    ],
)
def test_values_outside_of_the_contract_are_refused(at, bad):
    array = as_array(ONE)
    array[at] = bad
    with pytest.raises(msgspec.ValidationError, match=rf"at `\$\[{at}\]"):
        codec.unpack(msgspec.msgpack.encode(array))


@given(st.binary(max_size=64) | records().map(codec.pack).map(lambda data: data[:-1]))
@LAWS
def test_bytes_that_are_no_record_raise_a_decode_error(data):
    for decode in (codec.unpack, codec.from_json):
        with pytest.raises(msgspec.DecodeError):
            decode(data)


@pytest.mark.parametrize(
    ("decode", "data"), [(codec.unpack, b"\x91" * 100_000), (codec.from_json, b"[" * 100_000)]
)
def test_a_bomb_of_brackets_raises_a_decode_error_too(decode, data):
    with pytest.raises(msgspec.DecodeError):
        decode(data)


def test_a_deep_value_where_a_newer_writer_put_its_column_raises_a_decode_error():
    with pytest.raises(msgspec.DecodeError, match="nested too deep"):
        codec.from_json(codec.to_json(ONE)[:-1] + b"," + b"[" * 100_000)
    array = as_array(ONE)
    head = msgspec.msgpack.encode([*array, None])[:-1]
    with pytest.raises(msgspec.DecodeError, match="nested too deep"):
        codec.unpack(head + b"\x91" * 100_000)


@pytest.mark.parametrize("loss", [math.nan, math.inf, -math.inf])
def test_json_has_no_word_for_a_loss_that_is_no_number(loss):
    record = msgspec.structs.replace(ONE, loss=loss)
    kept = codec.unpack(codec.pack(record))
    assert isinstance(kept, Steps)
    assert repr(kept.loss) == repr(loss)
    assert codec.from_json(codec.to_json(record)) == msgspec.structs.replace(ONE, loss=None)


def test_every_table_starts_with_the_same_columns_and_ends_with_nullable_ones():
    leading = Event.__struct_fields__
    for struct in EVENT_TYPES:
        own = len(struct.__struct_fields__) - len(leading)
        assert struct.__struct_fields__[: len(leading)] == leading
        assert struct.__struct_defaults__ == (None,) * own
