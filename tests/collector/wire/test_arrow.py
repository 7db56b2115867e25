"""Bodies of Arrow IPC streams from somebody who is not trusted."""

from __future__ import annotations

import struct
import subprocess
import sys

import pyarrow as pa
import pytest

from collector.schema.rows import events_to_table
from collector.wire import arrow_body, arrow_claims
from collector.wire.arrow_body import decode_arrow, encode_arrow
from collector.wire.batch import BadBatch
from tests.collector.store.rows import entered, gap, steps
from tests.collector.wire.bodies import rows_of, sample_rows, sample_tables


def stream(table, name="steps", **options):
    sink = pa.BufferOutputStream()
    schema = table.schema.with_metadata({b"table": name.encode()})
    with pa.ipc.new_stream(sink, schema, options=pa.ipc.IpcWriteOptions(**options)) as out:
        out.write_table(table.cast(schema))
    return bytes(sink.getvalue())


def refused(body):
    with pytest.raises(BadBatch) as raised:
        decode_arrow(body)
    return raised.value


ROWS = events_to_table("steps", steps(0, 9))


def changed(column, values):
    return ROWS.set_column(ROWS.column_names.index(column), column, values)


@pytest.mark.parametrize("compression", [None, "lz4", "zstd"])
def test_streams_one_after_the_other(compression):
    body = b"".join(
        stream(rows, name, compression=compression) for name, rows in sample_tables().items()
    )
    assert rows_of(decode_arrow(body)) == sorted(sample_rows(), key=repr)


def test_two_streams_of_one_table_are_one_table():
    body = stream(ROWS) + stream(events_to_table("steps", steps(10, 12)))
    assert decode_arrow(body).tables["steps"].num_rows == 13


def test_no_body_is_no_rows():
    assert decode_arrow(b"").num_rows == 0


@pytest.mark.parametrize(
    ("body", "where"),
    [
        (stream(ROWS, "nothing"), "body"),
        (stream(ROWS.drop_columns(["seq"])), "steps.seq"),
        (stream(changed("seq", pa.array([-1] * 10))), "steps.seq"),
        (stream(changed("seq", pa.array([None] * 10, pa.int64()))), "steps.seq"),
        (stream(changed("seq", pa.array(range(10), pa.int32()))), "steps.seq"),
        (stream(changed("phase", pa.array(["middle"] * 10))), "steps.phase"),
        (stream(ROWS.append_column("seq", ROWS["seq"])), "steps.seq"),
        (stream(changed("run_id", ROWS["run_id"].dictionary_encode())), "body"),
        (stream(changed("run_id", ROWS["run_id"].cast(pa.string_view()))), "steps.run_id"),
        (b"PK\x03\x04 not Arrow", "body"),
        (b"\x00" * 64, "body"),
        (stream(ROWS)[:-8] + b"\x01\x02\x03", "body"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named(body, where):
    assert refused(body).where == where


@pytest.mark.parametrize(
    ("name", "column", "value"),
    [
        ("updates", "counter", 0),
        ("updates", "origin_rank", -1),
        ("updates", "deps", [{"rank": 0, "incarnation": 0, "counter": 0}]),
        ("updates", "deps", [{"rank": None, "incarnation": 0, "counter": 1}]),
        ("updates", "deps", [None]),
        ("objects", "holders", [-4]),
        ("membership", "members", [{"rank": -2, "incarnation": 0}]),
        ("leases", "holder", {"rank": 0, "incarnation": None}),
        ("steps", "epoch", -(2**63)),
        ("steps", "wall_ns", -(2**63)),
        ("steps", "wall_ns", 2**62 + 1),
        ("collectives", "enter_ns", -(2**62) - 1),
        ("gaps", "first_seq", -(2**63)),
    ],
)
def test_values_that_the_record_forms_refuse(name, column, value):
    from collector.schema.arrow import arrow_schema

    schema = arrow_schema(name)
    leading = ROWS.slice(0, 1).select(ROWS.column_names[:10]).to_pylist()[0]
    rows = pa.Table.from_pylist([leading | {column: value}], schema=schema)
    assert refused(encode_arrow({name: rows})).where == f"{name}.{column}"


def test_gaps_of_any_numbers_are_taken_or_refused():
    rows = events_to_table("gaps", [gap(5, 3, 9)])
    odd = rows.set_column(10, "first_seq", pa.array([1 - 2**63]))
    assert decode_arrow(encode_arrow({"gaps": odd})).num_rows == 1


@pytest.mark.parametrize(("column", "value"), [("epoch", 1 - 2**63), ("wall_ns", -(2**62))])
def test_numbers_at_the_edge_are_taken(column, value):
    rows = events_to_table("steps", steps(0, 1)[:1])
    place = rows.column_names.index(column)
    odd = rows.set_column(place, column, pa.array([value]))
    assert decode_arrow(encode_arrow({"steps": odd})).tables["steps"][column].to_pylist() == [value]


def test_claims_are_added_up_before_anything_is_unpacked(monkeypatch):
    """A bomb: a body that says it unpacks to much more than is taken."""
    body = bytearray(stream(events_to_table("steps", steps(0, 999)), compression="zstd"))
    monkeypatch.setattr(arrow_body, "MAX_UNPACKED", 10_000)
    assert "unpack to" in refused(bytes(body)).message


def test_a_compressed_buffer_that_claims_too_much_or_lies():
    rows = events_to_table("collectives", [entered(s, call_site="x" * 900) for s in range(2000)])
    body = stream(rows, "collectives", compression="zstd")
    length = struct.pack("<q", 2000 * 900)
    assert body.count(length) == 1
    for claim in (1 << 62, 600 << 20, 2000 * 900 - 1, 2000 * 900 + 1, 0, -2):
        assert refused(body.replace(length, struct.pack("<q", claim))).where == "body"


def test_many_messages_without_rows(monkeypatch):
    monkeypatch.setattr(arrow_claims, "MAX_MESSAGES", 5)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, ROWS.schema.with_metadata({b"table": b"steps"})) as out:
        for _ in range(6):
            out.write_table(ROWS.slice(0, 1))
    assert "messages" in refused(bytes(sink.getvalue())).message


def test_cut_off_at_every_byte():
    body = stream(ROWS, compression="lz4")
    for length in range(len(body)):
        try:
            batch = decode_arrow(body[:length])
        except BadBatch:
            continue
        assert batch.num_rows in (0, 10)  # between two messages


FUZZ = """
import random, sys
from collector.schema.rows import table_to_events
from collector.wire.arrow_body import decode_arrow, encode_arrow
from collector.wire.batch import BadBatch
from tests.collector.wire.bodies import sample_tables
chance = random.Random(int(sys.argv[1]))
bodies = [encode_arrow({name: rows}) for name, rows in sample_tables().items()]
taken = refused = 0
for turn in range(int(sys.argv[2])):
    body = bytearray(chance.choice(bodies))
    for _ in range(chance.choice([1, 1, 2, 8])):
        at = chance.randrange(len(body))
        if chance.random() < 0.2:
            body[at : at + 8] = chance.choice([b"\\xff" * 8, b"\\x00" * 8, b"\\xff" * 7 + b"\\x7f"])
        else:
            body[at] ^= 1 << chance.randrange(8)
    try:
        batch = decode_arrow(bytes(body))
    except BadBatch:
        refused += 1
        continue
    taken += 1
    for name, rows in batch.tables.items():
        rows.validate(full=True)
        table_to_events(name, rows)
print(taken, refused)
"""


@pytest.mark.parametrize("seed", [1, 2])
def test_flipped_bits_are_a_batch_or_refused(seed):
    """In a process of its own: were it to crash, the test would say so."""
    ended = subprocess.run(
        [sys.executable, "-c", FUZZ, str(seed), "1500"], capture_output=True, text=True, timeout=100
    )
    assert ended.returncode == 0, ended.stderr[-2000:]
    taken, num_refused = map(int, ended.stdout.split())
    assert taken > 50
    assert num_refused > 200
