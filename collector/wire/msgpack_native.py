"""MessagePack in compiled code: one value, a scan of a whole body, fields as columns.

Source of the layout: the MessagePack specification, "Formats". Compiled by numba without the
interpreter lock; the first process that needs it compiles once, the result is kept on disk. Places in
inner loops are unsigned: a signed one may count from the end, and looking for that makes loops over
texts two to eight times as slow.
"""

from __future__ import annotations

import numba
import numpy as np

from collector.wire.scan_plan import BOOL, DOTS, FLOAT, INT, OTHER, TEXT, WORD

BAD, NIL, IS_BOOL, IS_INT, IS_FLOAT, IS_TEXT, IS_ARRAY = range(7)
"""What a value is."""

_njit = numba.njit(nogil=True, cache=True)
_inline = numba.njit(nogil=True, cache=True, inline="never")


@_inline
def big_endian(buf, at, size):  # type: ignore[no-untyped-def]
    """An unsigned number of 1, 2, 4 or 8 bytes. Written out, each is one load."""
    at = np.uint64(at)
    if size == 1:
        return np.uint64(buf[at])
    if size == 2:
        return (np.uint64(buf[at]) << np.uint64(8)) | np.uint64(buf[at + np.uint64(1)])
    value = (
        (np.uint64(buf[at]) << np.uint64(24))
        | (np.uint64(buf[at + np.uint64(1)]) << np.uint64(16))
        | (np.uint64(buf[at + np.uint64(2)]) << np.uint64(8))
        | np.uint64(buf[at + np.uint64(3)])
    )
    if size == 4:
        return value
    return (
        (value << np.uint64(32))
        | (np.uint64(buf[at + np.uint64(4)]) << np.uint64(24))
        | (np.uint64(buf[at + np.uint64(5)]) << np.uint64(16))
        | (np.uint64(buf[at + np.uint64(6)]) << np.uint64(8))
        | np.uint64(buf[at + np.uint64(7)])
    )


@_inline
def value_at(buf, at, end):  # type: ignore[no-untyped-def]
    """(what, next, a, b) of the value at ``at``.

    a is the number, the bits of a double, the place of a text's first byte, an array's length; b is a
    text's length. ``next`` of an array is its first element.
    """
    if at >= end:
        return BAD, at, np.int64(0), np.int64(0)
    marker = np.int64(buf[np.uint64(at)])
    at += 1
    if marker < 0x80:
        return IS_INT, at, marker, np.int64(0)
    if marker >= 0xE0:
        return IS_INT, at, marker - 256, np.int64(0)
    if marker == 0xC0:
        return NIL, at, np.int64(0), np.int64(0)
    if 0xA0 <= marker < 0xC0:
        size = marker & 0x1F
        if at + size > end:
            return BAD, at, np.int64(0), np.int64(0)
        return IS_TEXT, at + size, np.int64(at), size
    if 0x90 <= marker < 0xA0:
        return IS_ARRAY, at, marker & 0x0F, np.int64(0)
    if marker == 0xC2 or marker == 0xC3:
        return IS_BOOL, at, marker - 0xC2, np.int64(0)
    if 0xCC <= marker <= 0xCF:
        size = np.int64(1) << (marker - 0xCC)
        if at + size > end:
            return BAD, at, np.int64(0), np.int64(0)
        number = big_endian(buf, at, size)
        if number > np.uint64(0x7FFFFFFFFFFFFFFF):
            return BAD, at, np.int64(0), np.int64(0)
        return IS_INT, at + size, np.int64(number), np.int64(0)
    if 0xD0 <= marker <= 0xD3:
        size = np.int64(1) << (marker - 0xD0)
        if at + size > end:
            return BAD, at, np.int64(0), np.int64(0)
        number = big_endian(buf, at, size)
        shift = np.uint64(64 - 8 * size)
        return IS_INT, at + size, np.int64(number << shift) >> np.int64(shift), np.int64(0)
    if marker == 0xCB:
        if at + 8 > end:
            return BAD, at, np.int64(0), np.int64(0)
        return IS_FLOAT, at + 8, np.int64(big_endian(buf, at, 8)), np.int64(0)
    if marker == 0xD9 or marker == 0xDA or marker == 0xDB:
        size = np.int64(1) << (marker - 0xD9)
        if at + size > end:
            return BAD, at, np.int64(0), np.int64(0)
        length = np.int64(big_endian(buf, at, size))
        at += size
        if at + length > end:
            return BAD, at, np.int64(0), np.int64(0)
        return IS_TEXT, at + length, np.int64(at), length
    if marker == 0xDC or marker == 0xDD:
        size = np.int64(2) << (marker - 0xDC)
        if at + size > end:
            return BAD, at, np.int64(0), np.int64(0)
        return IS_ARRAY, at + size, np.int64(big_endian(buf, at, size)), np.int64(0)
    return BAD, at, np.int64(0), np.int64(0)


@numba.njit(nogil=True, cache=True, inline="always")
def next_value(buf, at, end):  # type: ignore[no-untyped-def]
    """``value_at``, without a call for what most fields are: small numbers, short texts, nil."""
    marker = np.int64(buf[np.uint64(at)]) if at < end else np.int64(0xC1)
    size = marker & 0x1F
    if marker < 0x80:
        found = (IS_INT, np.int64(at + 1), marker, np.int64(0))
    elif marker == 0xC0:
        found = (NIL, np.int64(at + 1), np.int64(0), np.int64(0))
    elif 0xA0 <= marker < 0xC0 and at + 1 + size <= end:
        found = (IS_TEXT, np.int64(at + 1 + size), np.int64(at + 1), size)
    else:
        found = value_at(buf, at, end)
    return found


@_njit
def skip(buf, at, end):  # type: ignore[no-untyped-def]
    """The place behind a value of nils, booleans, numbers, texts and arrays; -1 when it is none."""
    left = np.int64(1)
    while left > 0:
        what, at, a, _ = value_at(buf, at, end)
        if what == BAD:
            return np.int64(-1)
        left -= 1
        if what == IS_ARRAY:
            left += a
            if left > end - at + 1:  # every value takes a byte
                return np.int64(-1)
    return np.int64(at)


@_njit
def _same(buf, start, size, other, other_start, other_size):  # type: ignore[no-untyped-def]
    if size != other_size:
        return False
    at, there, end = np.uint64(start), np.uint64(other_start), np.uint64(start + size)
    differ = np.uint8(0)
    while at < end:
        differ |= buf[at] ^ other[there]
        at += np.uint64(1)
        there += np.uint64(1)
    return differ == 0


@_njit
def _find(buf, start, size, texts, ends, first, last):  # type: ignore[no-untyped-def]
    """Which of the texts ``first`` to ``last`` - 1 it is; -1 for none."""
    for i in range(first, last):
        begin = ends[i - 1] if i > 0 else 0
        if _same(buf, start, size, texts, begin, ends[i] - begin):
            return i
    return -1


@_njit
def _is_ascii(buf, start, size):  # type: ignore[no-untyped-def]
    at, end = np.uint64(start), np.uint64(start + size)
    every = np.uint8(0)
    while at < end:
        every |= buf[at]
        at += np.uint64(1)
    return every < 0x80


@_njit
def _dots_end(buf, at, end, count, low, high):  # type: ignore[no-untyped-def]
    """The place behind ``count`` dots; -1 when they are none."""
    for _ in range(count):
        what, at, size, _ = value_at(buf, at, end)
        if what != IS_ARRAY or size != 3:
            return np.int64(-1)
        for part in range(3):
            what, at, number, _ = value_at(buf, at, end)
            if what != IS_INT or number < low[part] or number > high[part]:
                return np.int64(-1)
    return np.int64(at)


@_njit
def scan_records(buf, at, num, plan, collectives, done_seq, completed, out, opens, run):  # type: ignore[no-untyped-def]
    """Check ``num`` records from ``at`` on against the plan.

    Args:
        buf: the body.
        at: its first record.
        num: how many there are.
        plan: see scan_plan.
        collectives: the kind's number.
        done_seq, completed: its fields that say whether it is open.
        out: int64[6, num], gets kind, first byte, byte behind, rank, incarnation, seq.
        opens: uint8[num], gets 1 for a collective that is entered.
        run: int64[2], gets the place of the run's id and its length.

    Returns:
        True when every record is one, all are of one run, and nothing follows them. False says
        nothing but that somebody else must look.
    """
    end = len(buf)
    run_start, run_size = np.int64(-1), np.int64(0)
    kind = -1
    for r in range(num):
        out[1, r] = at
        what, at, size, _ = value_at(buf, at, end)
        if what != IS_ARRAY:
            return False
        what, at, start, length = value_at(buf, at, end)
        if what != IS_TEXT:
            return False
        if kind < 0 or _find(buf, start, length, plan.names, plan.name_ends, kind, kind + 1) < 0:
            kind = _find(buf, start, length, plan.names, plan.name_ends, 0, len(plan.name_ends))
        if kind < 0 or size - 1 < plan.least[kind] or size - 1 > plan.num_fields[kind]:
            return False
        out[0, r] = kind
        is_open = kind == collectives
        for f in range(size - 1):
            code = plan.code[kind, f]
            if code == OTHER:
                at = skip(buf, at, end)
                if at < 0:
                    return False
                continue
            what, at, a, b = next_value(buf, at, end)
            if what == NIL:
                if not plan.nullable[kind, f]:
                    return False
            elif code == INT:
                if what != IS_INT or a < plan.low[kind, f] or a > plan.high[kind, f]:
                    return False
                if f == 1 or f == 2 or f == 3:
                    out[2 + f, r] = a
                if kind == collectives and f == done_seq:
                    is_open = False
            elif code == TEXT:
                if what != IS_TEXT or not _is_ascii(buf, a, b):
                    return False
                if f == 0:
                    if run_start < 0:
                        run_start, run_size = a, b
                    elif not _same(buf, a, b, buf, run_start, run_size):
                        return False
            elif code == WORD:
                first, last = plan.words_from[kind, f], plan.words_to[kind, f]
                if what != IS_TEXT:
                    return False
                if _find(buf, a, b, plan.words, plan.word_ends, first, last) < 0:
                    return False
            elif code == FLOAT:
                if what != IS_FLOAT:
                    return False
            elif code == BOOL:
                if what != IS_BOOL:
                    return False
                if kind == collectives and f == completed and a == 1:
                    is_open = False
            elif code == DOTS:
                if what != IS_ARRAY:
                    return False
                at = _dots_end(buf, at, end, a, plan.dot_low, plan.dot_high)
                if at < 0:
                    return False
        opens[r] = 1 if is_open else 0
        out[2, r] = at
    run[0], run[1] = run_start, run_size
    return at == end


@_njit
def scan_bodies(  # type: ignore[no-untyped-def]
    buf, ends, leads, nums, plan, collectives, done_seq, completed, out, opens, runs, good
):
    """``scan_records`` of many bodies that stand end to end; places are those in their own body.

    Args:
        buf: the bodies.
        ends: the place behind each.
        leads: bytes before its first record.
        nums: records of each.
        plan, collectives, done_seq, completed, out, opens: as above, ``out`` and ``opens`` for the
            records of all bodies.
        runs: int64[bodies, 2].
        good: uint8[bodies], gets 1 where the scan vouches for the body.
    """
    begin, first = np.int64(0), np.int64(0)
    for b in range(len(ends)):
        last = first + nums[b]
        good[b] = scan_records(
            buf[begin : ends[b]], leads[b], nums[b], plan, collectives, done_seq, completed,
            out[:, first:last], opens[first:last], runs[b],
        )  # fmt: skip
        begin, first = ends[b], last


@_njit
def fields_of(buf, starts, first, last, cells, sizes, known):  # type: ignore[no-untyped-def]
    """The fields ``first`` to ``last`` - 1 of records that were scanned.

    Args:
        buf: the body.
        starts: first byte of each record.
        first, last: field numbers.
        cells: int64[fields, records], gets value_at's a (an array's: place of its first element).
        sizes: int64[fields, records], gets its b (an array's: its length).
        known: uint8[fields, records], gets 1 where the field is there and not nil; where it is not,
            the cell and its size are 0.
    """
    end = len(buf)
    for r in range(len(starts)):
        _, at, size, _ = value_at(buf, starts[r], end)
        _, at, _, _ = value_at(buf, at, end)
        for f in range(min(size - 1, last)):
            what, behind, a, b = next_value(buf, at, end)
            if f >= first:
                known[f - first, r] = what != NIL
                cells[f - first, r] = behind if what == IS_ARRAY else a
                sizes[f - first, r] = a if what == IS_ARRAY else b
            at = skip(buf, at, end) if what == IS_ARRAY else behind
        for f in range(max(size - 1, first), last):
            known[f - first, r] = 0
            cells[f - first, r] = sizes[f - first, r] = 0


@_njit
def gather(buf, starts, sizes, ends, out):  # type: ignore[no-untyped-def]
    """Copy texts end to end; ``ends`` are the places behind each in ``out``."""
    for r in range(len(starts)):
        at, end = np.uint64(starts[r]), np.uint64(starts[r] + sizes[r])
        to = np.uint64(ends[r] - sizes[r])
        while at < end:
            out[to] = buf[at]
            at += np.uint64(1)
            to += np.uint64(1)


@_njit
def gather_dots(buf, starts, counts, rank, incarnation, counter):  # type: ignore[no-untyped-def]
    """The numbers of all dots of all records, end to end."""
    end = len(buf)
    place = 0
    for r in range(len(starts)):
        at = starts[r]
        for _ in range(counts[r]):
            _, at, _, _ = value_at(buf, at, end)
            _, at, a, _ = value_at(buf, at, end)
            _, at, b, _ = value_at(buf, at, end)
            _, at, c, _ = value_at(buf, at, end)
            rank[place], incarnation[place], counter[place] = a, b, c
            place += 1
