"""The spool's bytes: what was written comes back, and damage never comes back as an event."""

from __future__ import annotations

import struct
import zlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cascade_runtime.vocabulary import codec, spool_format
from cascade_runtime.vocabulary.spool_format import RECORD, BadSegment, Torn
from tests.vocabulary.strategies import LAWS, records

HEADER = spool_format.HEADER.size
payloads = st.lists(st.binary(min_size=1, max_size=20), max_size=4)


def frame(payload: bytes) -> bytes:
    """One record, written from its description in docs/spool.md and not by the code under test."""
    return struct.pack("<II", len(payload), zlib.crc32(payload)) + payload


def segment(items: list[bytes], first_seq: int = 0) -> bytes:
    return spool_format.pack_header(first_seq) + b"".join(map(frame, items))


def read(data: bytes, offset: int = HEADER) -> tuple[list[bytes], Torn | None]:
    """The payloads, and where reading stopped early."""
    items = list(spool_format.read_records(data, offset))
    torn = items.pop() if items and isinstance(items[-1], Torn) else None
    assert not any(isinstance(item, Torn) for item in items), "Torn is the last item"
    return [bytes(item) for item in items], torn


def ends(items: list[bytes]) -> list[int]:
    """Offsets at which a record may end: after the header and after each record."""
    found = [HEADER]
    for item in items:
        found.append(found[-1] + RECORD.size + len(item))
    return found


def test_the_header_byte_by_byte():
    assert spool_format.pack_header(0x0102) == bytes.fromhex("4353504c 0100 0000 0201000000000000")
    assert HEADER == 16


@given(st.integers(0, 2**64 - 1))
@LAWS
def test_the_header_round_trips(first_seq):
    assert spool_format.read_header(spool_format.pack_header(first_seq)) == first_seq


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "0 bytes is too short"),
        (b"CSPL" + bytes(11), "15 bytes is too short"),
        (b"LPSC\x01" + bytes(11), "does not start with CSPL"),
        (b"CSPL\x02" + bytes(11), "version 2 is newer than 1"),
    ],
)
def test_a_header_that_is_not_ours_is_refused(data, why):
    with pytest.raises(BadSegment, match=why):
        spool_format.read_header(data)


@given(st.lists(records(), max_size=5), st.integers(0, 64))
@settings(LAWS, max_examples=50)
def test_events_round_trip_through_a_segment_of_any_free_space(events, free):
    data = segment([codec.pack(e) for e in events]) + bytes(free)
    items, torn = read(data)
    assert [codec.unpack(item) for item in items] == events
    assert torn is None


@given(payloads)
@LAWS
def test_a_segment_cut_at_any_byte_keeps_its_whole_records_and_tells(items):
    data = segment(items)
    whole = ends(items)
    for cut in range(HEADER, len(data) + 1):
        got, torn = read(data[:cut])
        last = max(end for end in whole if end <= cut)
        assert got == items[: whole.index(last)]
        # A cut of one to three bytes may leave zeros only, which is how free space looks.
        if cut in whole or not any(data[last:cut]):
            assert torn is None
        else:
            assert torn is not None
            assert torn.offset == last


@given(payloads.filter(bool), st.data())
@LAWS
def test_a_damaged_byte_never_comes_back_as_an_event(items, data):
    good = segment(items)
    at = data.draw(st.integers(HEADER, len(good) - 1))
    bad = bytearray(good)
    bad[at] ^= data.draw(st.integers(1, 255))
    got, torn = read(bytes(bad))
    hit = sum(end <= at for end in ends(items)) - 1
    assert got == items[:hit]
    # Only a length that became zero reads as a clean end.
    length = bad[ends(items)[hit] :][:4]
    assert (torn is None) == (length == bytes(4))


@given(payloads, st.binary(min_size=1, max_size=20), st.data())
@LAWS
def test_a_record_whose_length_was_not_yet_written_is_not_there(items, last, data):
    written = data.draw(st.integers(0, len(last) + 4))
    unfinished = bytearray(frame(last))
    unfinished[:4] = bytes(4)
    unfinished[4 + written :] = bytes(len(last) + 4 - written)
    assert read(segment(items) + unfinished + bytes(16)) == (items, None)


@pytest.mark.parametrize(
    ("tail", "why"),
    [
        (b"\x05\x00\x00\x00\x00\x00\x00\x00abc", "runs past the end"),
        (b"\x01\x00\x00\x00\x00\x00\x00\x00a", "checksum is wrong"),
        (b"\x05\x00\x00", "ends inside a record's header"),
    ],
)
def test_what_was_wrong_is_said(tail, why):
    items, torn = read(segment([b"kept"]) + tail)
    assert items == [b"kept"]
    assert torn is not None
    assert torn.offset == HEADER + RECORD.size + 4
    assert why in torn.why


@given(payloads)
@LAWS
def test_reading_goes_on_from_any_record(items):
    data = segment(items)
    for n, offset in enumerate(ends(items)):
        assert read(data, offset) == (items[n:], None)


def test_a_payload_is_a_view_and_no_copy():
    data = bytearray(segment([b"abc"]))
    (payload,) = spool_format.read_records(data)
    data[-1] = ord("z")
    assert bytes(payload) == b"abz"


@pytest.mark.parametrize(
    ("name", "pattern", "groups"),
    [
        ("12-3", spool_format.ACTOR_DIR, ("12", "3")),
        ("0.seg", spool_format.SEGMENT_FILE, ("0",)),
        ("0.seg.tmp", spool_format.SEGMENT_FILE, None),
        ("12-", spool_format.ACTOR_DIR, None),
    ],
)
def test_names_in_the_spool(name, pattern, groups):
    match = pattern.fullmatch(name)
    assert (match and match.groups()) == groups
