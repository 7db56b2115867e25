"""Bodies that are read together: each gives what it gives when it is read alone."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cascade_runtime.vocabulary.events import Gaps, Record
from collector.wire.batch import BadBatch, Batch, Scan
from collector.wire.records import LEAST_SCANNED, array_length, decode_msgpack, encode_msgpack
from collector.wire.scan import scan_body
from collector.wire.unread import MOST_UNREAD, Unread, join, read_together, unread
from tests.collector.wire.bodies import sample_rows
from tests.vocabulary.strategies import LAWS, records


def alone(body: bytes) -> Batch | BadBatch:
    try:
        return decode_msgpack(body)
    except BadBatch as error:
        return error


def check_same(found: list[Batch | BadBatch], bodies: list[bytes]) -> None:
    assert len(found) == len(bodies)
    for mine, body in zip(found, bodies, strict=True):
        want = alone(body)
        if isinstance(want, BadBatch):
            assert isinstance(mine, BadBatch)
            assert (mine.message, mine.where) == (want.message, want.where)
        else:
            assert isinstance(mine, Batch)
            assert (mine.records, mine.num_rows) == (want.records, want.num_rows)
            assert (mine.body, mine.media_type) == (body, want.media_type)


@LAWS
@given(st.lists(st.lists(records(), min_size=1, max_size=3), min_size=1, max_size=5))
def test_any_records_are_read_as_alone(batches: list[list[Record]]) -> None:
    bodies = [encode_msgpack(rows) for rows in batches]
    check_same(read_together([Unread(b, array_length(b)) for b in bodies]), bodies)


@pytest.mark.parametrize("seed", range(3))
def test_damaged_bodies_harm_no_other(seed: int) -> None:
    rng = random.Random(seed)
    rows = sample_rows()
    num_bad = num_scanned = 0
    for _ in range(60):
        bodies = []
        for _ in range(rng.randrange(2, 12)):
            at = rng.randrange(len(rows))
            body = bytearray(encode_msgpack(rows[at : at + rng.randrange(1, 20)]))
            if rng.random() < 0.3:
                body[rng.randrange(1, len(body))] = rng.randrange(256)
            if rng.random() < 0.1:
                del body[rng.randrange(1, len(body)) :]
            bodies.append(bytes(body))
        later = [found for body in bodies if (found := unread(body)) is not None]
        bodies = [found.body for found in later]
        found = read_together(later)
        check_same(found, bodies)
        num_bad += sum(isinstance(f, BadBatch) for f in found)
        num_scanned += sum(isinstance(f, Batch) and f.scan is not None for f in found)
    assert min(num_bad, num_scanned) > 20  # the test saw both


def test_joined_batches_are_one_with_the_rows_of_all() -> None:
    rng = random.Random(5)
    rows = [row for row in sample_rows() if not isinstance(row, Gaps)]
    bodies = []
    for _ in range(40):
        num = rng.choice([1, 2, 15, 16, 17, LEAST_SCANNED + 5])  # leads of one byte and of three
        at = rng.randrange(len(rows) - num)
        bodies.append(encode_msgpack(rows[at : at + num]))
    bodies.append(b"\xdd\x00\x00\x00\x01" + encode_msgpack(rows[:1])[1:])
    found = read_together([Unread(body, array_length(body)) for body in bodies])
    batches = [b for b in found if isinstance(b, Batch) and b.scan is not None]
    assert len(batches) > len(bodies) // 2
    whole = join(batches)
    want = [record for batch in batches for record in batch.records or ()]
    assert whole.num_rows == array_length(whole.body) == len(want)
    assert whole.records == want
    check_scans(whole.scan, scan_body(whole.body, len(want)))


def test_a_lone_body_is_scanned_when_it_is_long_enough() -> None:
    rows = [row for row in sample_rows() if not isinstance(row, Gaps)]
    for num, is_scanned in ((LEAST_SCANNED - 1, False), (LEAST_SCANNED, True)):
        bodies = [encode_msgpack(rows[:num])]
        (found,) = read_together([Unread(bodies[0], num)])
        check_same([found], bodies)
        assert isinstance(found, Batch)
        assert (found.scan is not None) == is_scanned


def check_scans(mine: Scan | None, want: Scan | None) -> None:
    assert mine is not None
    assert want is not None
    assert (mine.run_id, mine.rare) == (want.run_id, want.rare)
    for name in ("kinds", "starts", "ends", "rank", "incarnation", "seq", "opens"):
        assert getattr(mine, name).tolist() == getattr(want, name).tolist(), name


def test_what_is_large_or_wrong_at_first_sight_is_read_at_once() -> None:
    (row,) = [r for r in sample_rows() if r.__struct_config__.tag == "steps"][:1]
    assert unread(encode_msgpack([row] * (MOST_UNREAD - 1))) is not None
    assert unread(encode_msgpack([row] * MOST_UNREAD)) is None
    for body in (b"", b"\x90", b"\xc0", b"\x9f\x01", b"\xdc\x00\x60", b"\xdd\xff\xff\xff\xff"):
        assert unread(body) is None
