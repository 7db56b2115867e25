"""The compiled scan against the codec: what it vouches for, the codec takes, and the rows are equal."""

from __future__ import annotations

import random

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cascade_runtime.vocabulary.events import CollectiveDone, Collectives, Gaps, Record
from cascade_runtime.vocabulary.schema import EVENT_TABLES
from collector.doorway import joined
from collector.hot.raw_rows import Raw, convert
from collector.hot.scanned import scan_completions
from collector.schema.rows import events_to_table, table_to_events
from collector.schema.words import NARROWED, breaks_words
from collector.wire.records import LEAST_SCANNED, array_length, decode_msgpack, encode_msgpack
from collector.wire.scan import scan_body
from collector.wire.scan_plan import FLAT, TABLES
from tests.collector.wire.bodies import sample_rows
from tests.vocabulary.strategies import LAWS, records

codec = msgspec.msgpack.Decoder(list[Record])


def scanned(body: bytes, num: int):
    return scan_body(body, num)


def of_one_run(rows: list[Record]) -> list[Record]:
    """The same with one run, seqs in a row and no two of one place."""
    return [
        msgspec.structs.replace(row, run_id="run", rank=1, incarnation=0, seq=number)
        for number, row in enumerate(rows)
    ]


def rows_of(converted) -> list[str]:
    found = [*converted.rare, *converted.entered, *converted.done]
    for name, table in converted.tables.items():
        found += table_to_events(name, table)
    return sorted(map(repr, found))


def is_open(row: Record) -> bool:
    return isinstance(row, Collectives) and row.done_seq is None and not row.completed


@LAWS
@given(st.lists(records(), min_size=1, max_size=6))
def test_any_records_give_the_codec_s_rows(rows: list[Record]) -> None:
    mine = [row for row in of_one_run(rows) if not isinstance(row, Gaps)]
    body = encode_msgpack(mine)
    scan = scanned(body, len(mine))
    if scan is None:  # allowed to pass: text beyond ASCII, words that the codec knows better
        return
    decoded = codec.decode(body)
    assert decoded == mine
    assert not [r for r in mine if type(r) in NARROWED and breaks_words(r)]
    assert [TABLES[k] for k in scan.kinds] == [str(r.__struct_config__.tag) for r in mine]
    assert scan.opens.tolist() == [is_open(row) for row in mine]
    batch = Raw(body, scan, len(mine), scan_completions(scan))
    assert rows_of(convert([batch])) == sorted(map(repr, mine))


def test_real_records_are_all_vouched_for_and_equal() -> None:
    rows = [row for row in sample_rows() if not isinstance(row, Gaps)]
    batches = []
    for start in range(0, len(rows), 500):
        part = rows[start : start + 500]
        body = encode_msgpack(part)
        scan = scanned(body, len(part))
        assert scan is not None
        batches.append(Raw(body, scan, len(part), scan_completions(scan)))
    converted = convert(batches)
    for name in {str(row.__struct_config__.tag) for row in rows} & FLAT:
        mine = [r for r in rows if r.__struct_config__.tag == name and not is_open(r)]
        want = events_to_table(name, mine)
        assert converted.tables[name].equals(want), name


@pytest.mark.parametrize("seed", range(4))
def test_completions_join_as_one_by_one(seed: int) -> None:
    """Entered and completed in any order of batches, some twice seen, some never completed."""
    rng = random.Random(seed)
    whole = [row for row in sample_rows() if isinstance(row, Collectives)][:300]
    stream: list[Record] = []
    waiting: list[CollectiveDone] = []
    want: list[Collectives] = []
    for row in whole:
        entered = msgspec.structs.replace(
            row, done_seq=None, complete_ns=None, completed=False, payload_digest=None
        )
        stream.append(entered)
        if rng.random() < 0.1:
            want.append(entered)
            continue
        done = CollectiveDone(
            row.run_id, row.rank, row.incarnation, row.seq, row.seq + 1,
            rng.choice([None, 5]), rng.choice([None, 7]), rng.choice([True, False]),
            rng.choice([None, "", "ab"]),
        )  # fmt: skip
        want.append(joined(entered, done))
        waiting.append(done)
        rng.shuffle(waiting)
        while waiting and rng.random() < 0.7:
            stream.append(waiting.pop())
    stream += waiting
    batches = []
    for start in range(0, len(stream), 37):
        part = stream[start : start + 37]
        body = encode_msgpack(part)
        scan = scanned(body, len(part))
        assert scan is not None
        batches.append(Raw(body, scan, len(part), scan_completions(scan)))
    converted = convert(batches)
    assert rows_of(converted) == sorted(map(repr, want))
    assert all(is_open(row) for row in converted.entered)
    assert converted.done == []


@pytest.mark.parametrize("seed", range(6))
def test_damaged_bodies_are_never_vouched_for_wrongly(seed: int) -> None:
    """Flipped, cut or lengthened: where the scan says yes, the codec says the same rows."""
    rng = random.Random(seed)
    rows = rng.sample([row for row in sample_rows() if not isinstance(row, Gaps)], 40)
    clean = encode_msgpack(rows)
    vouched = 0
    for _ in range(1500):
        body = bytearray(clean)
        for _ in range(rng.randrange(1, 4)):
            match rng.randrange(3):
                case 0:
                    body[rng.randrange(len(body))] = rng.randrange(256)
                case 1:
                    del body[rng.randrange(len(body)) :]
                case 2:
                    at = rng.randrange(len(body) + 1)
                    body[at:at] = rng.randbytes(rng.randrange(1, 9))
            if len(body) < 4:
                body = bytearray(clean)
        data = bytes(body)
        num = array_length(data)
        scan = scanned(data, num)
        if scan is None:
            continue
        vouched += 1
        decoded = codec.decode(data)  # raises when the codec refuses what the scan vouched for
        assert len(decoded) == num
        assert not [r for r in decoded if type(r) in NARROWED and breaks_words(r)]
        assert scan.rank.tolist() == [r.rank for r in decoded]
        assert scan.incarnation.tolist() == [r.incarnation for r in decoded]
        assert scan.seq.tolist() == [r.seq for r in decoded]
        assert {r.run_id for r in decoded} == {scan.run_id}
    assert vouched > 20  # the test saw both sides


def test_what_the_scan_leaves_is_still_decoded() -> None:
    """Several runs, text beyond ASCII, gaps: the codec's way, and the same batch for whoever asks."""
    (row,) = [r for r in sample_rows() if r.__struct_config__.tag == "steps"][:1]
    for other in (
        msgspec.structs.replace(row, run_id="another", seq=row.seq + 1),
        msgspec.structs.replace(row, group_id="wörld", seq=row.seq + 1),
    ):
        rows = [row] * LEAST_SCANNED + [other]
        batch = decode_msgpack(encode_msgpack(rows))
        assert batch.scan is None
        assert batch.records == rows
    many = [msgspec.structs.replace(row, seq=n) for n in range(LEAST_SCANNED)]
    for rows, is_scanned in ((many, True), (many[:-1], False)):
        batch = decode_msgpack(encode_msgpack(rows))
        assert (batch.scan is not None) is is_scanned
        assert batch.records == rows
    assert {name for name in TABLES if name not in FLAT} <= set(EVENT_TABLES)
