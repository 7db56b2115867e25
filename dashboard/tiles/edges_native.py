# mypy: disallow-untyped-decorators=False
"""Compiled: how long something went on up to any moment, from where it begins and ends.

A rank's spans are one sorted array of *edges*: ``time * 2`` where a span begins, ``time * 2 + 1``
where one ends. A directory of equal buckets of time knows for the begin of each how much went on before,
how many spans are open there and which edge comes next. So any moment costs two reads from memory,
however many edges there are, and the sum inside a window is the difference of two moments: exact at
every zoom, where levels of sums would be exact only for windows that begin and end with a bucket.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Counts = npt.NDArray[np.int32]
Bytes = npt.NDArray[np.uint8]

BLOCK = 64
"""Edges between two sums that are kept for buckets with very many edges."""

FEW = 16
"""Edges of a bucket that are gone through one by one."""

OPEN = 32
"""A directory's second number: place of the next edge, and the open spans above these bits."""

# Without a type: numba turns numbers of numpy into those of Python and back, mypy does not.
_njit: Any = numba.njit(nogil=True, cache=True)
_inline: Any = numba.njit(nogil=True, cache=True, inline="always")


@_inline
def _going_on(num: int, union: bool) -> int:
    """How many count: all, or one where there are any."""
    if union:
        return 1 if num > 0 else 0
    return num


@_njit
def _walk(
    edges: Ints,
    n: int,
    area: Ints,
    open_at: Counts,
    union: bool,
    total: int,
    code: int,
    before: int,
    high: int,
    t: int,
) -> Any:
    """Go from a bucket's begin (``total``, ``code``, ``before``) to the moment; ``high`` ends it."""
    at, num = code & ((1 << OPEN) - 1), code >> OPEN
    if high - at > BLOCK:
        low = at
        while low < high:
            middle = (low + high) >> 1
            if edges[middle] < 2 * t:
                low = middle + 1
            else:
                high = middle
        block = (low - 1) // BLOCK
        if block * BLOCK > at:
            at = block * BLOCK
            total, num, before = area[block], open_at[block], edges[at] >> 1
    while at < n:
        edge = edges[at]
        time = edge >> 1
        if time >= t:
            break
        total += _going_on(num, union) * (time - before)
        num += 1 - 2 * (edge & 1)
        before = time
        at += 1
    return total + _going_on(num, union) * (t - before)


@_inline
def _walk_few(
    edges: Ints, union: bool, total: int, code: int, before: int, high: int, t: int
) -> Any:
    """The same for a bucket with few edges: nothing to be searched."""
    at, num = code & ((1 << OPEN) - 1), code >> OPEN
    while at < high and edges[at] < 2 * t:
        edge = edges[at]
        total += _going_on(num, union) * ((edge >> 1) - before)
        num += 1 - 2 * (edge & 1)
        before = edge >> 1
        at += 1
    return total + _going_on(num, union) * (t - before)


@_njit
def sum_before(
    edges: Ints,
    n: int,
    area: Ints,
    open_at: Counts,
    directory: Ints,
    origin: int,
    shift: int,
    union: bool,
    t: int,
) -> Any:
    """Nanoseconds of spans before ``t``.

    Args:
        edges: sorted; the first ``n`` count.
        n: how many there are.
        area, open_at: of every BLOCK-th edge: the sum before it, the spans that are open there.
        directory: [buckets, 2]: the sum before each, its next edge and open spans (see OPEN).
        origin, shift: bucket i begins at ``origin + (i << shift)``; the last one behind all edges.
        union: time with at least one span; else each span counts.
        t: the moment.
    """
    if n == 0 or t <= origin:
        return 0
    last = directory.shape[0] - 1
    bucket = min((t - origin) >> shift, last)
    high = n if bucket == last else directory[bucket + 1, 1] & ((1 << OPEN) - 1)
    total, code = directory[bucket, 0], directory[bucket, 1]
    begin = origin + (bucket << shift)
    return _walk(edges, n, area, open_at, union, total, code, begin, high, t)


@_njit
def merge(edges: Ints, n: int, new: Ints) -> int:
    """Put sorted ``new`` edges among the first ``n``, which have room behind them.

    Returns:
        The place of the first edge that was put or moved.
    """
    i, j = n - 1, new.shape[0] - 1
    at: int = i + new.shape[0]
    while j >= 0:
        if i >= 0 and edges[i] > new[j]:
            edges[at] = edges[i]
            i -= 1
        else:
            edges[at] = new[j]
            j -= 1
        at -= 1
    return at + 1


@_njit
def reindex(
    edges: Ints,
    n: int,
    area: Ints,
    open_at: Counts,
    directory: Ints,
    origin: int,
    shift: int,
    union: bool,
    first: int,
    num_right: int,
) -> None:
    """Make the kept sums and the directory right again.

    Args:
        edges, n, area, open_at, directory, origin, shift, union: see ``sum_before``.
        first: edges before this place have not changed.
        num_right: so many buckets were right before that.
    """
    size = directory.shape[0]
    bucket = min(((edges[first] >> 1) - origin) >> shift, num_right - 1)
    at, num, total, before = np.int64(0), np.int64(0), np.int64(0), np.int64(origin)
    if bucket >= 0:
        total, code = directory[bucket, 0], directory[bucket, 1]
        at, num = code & ((1 << OPEN) - 1), code >> OPEN
        before = origin + (bucket << shift)
    bucket += 1
    for i in range(at, n + 1):
        time = edges[i] >> 1 if i < n else np.int64(1 << 62)
        while bucket < size:
            begin = origin + (bucket << shift)
            if begin > time:
                break
            directory[bucket, 0] = total + _going_on(num, union) * (begin - before)
            directory[bucket, 1] = (num << OPEN) | i
            bucket += 1
        if i == n:
            break
        total += _going_on(num, union) * (time - before)
        if i % BLOCK == 0:
            area[i // BLOCK] = total
            open_at[i // BLOCK] = num
        num += 1 - 2 * (edges[i] & 1)
        before = time


@_njit
def draw(
    edges: Ints,
    n: int,
    area: Ints,
    open_at: Counts,
    directory: Ints,
    origin: int,
    shift: int,
    union: bool,
    peers: int,
    bounds: Ints,
    out: Bytes,
) -> None:
    """One row of a tile: the root of each pixel's share, 255 for all of it, at least 1 for any.

    Args:
        edges, n, area, open_at, directory, origin, shift, union: see ``sum_before``.
        peers: how many times its width is all of a pixel.
        bounds: where pixels begin, and the end. A pixel takes 1 ns at least.
        out: one byte a pixel.
    """
    num = out.shape[0]
    last = directory.shape[0] - 1
    at_bits = (1 << OPEN) - 1
    total, code = np.empty(num + 1, np.int64), np.empty(num + 1, np.int64)
    high = np.empty(num + 1, np.int64)
    # All buckets first, then all edges: reads that do not wait for each other are many at a time.
    for i in range(num + 1):
        bucket = min(max(bounds[i] - origin, 0) >> shift, last)
        total[i], code[i] = directory[bucket, 0], directory[bucket, 1]
        high[i] = n if bucket == last else directory[bucket + 1, 1] & at_bits
    touched = np.int64(0)
    for i in range(num + 1):
        at = code[i] & at_bits
        touched ^= edges[min(at, n - 1)] ^ edges[min(at + 6, n - 1)]  # mostly all of a bucket's
    for i in range(num + 1):
        t, at = bounds[i], code[i] & at_bits
        before = origin + (min((t - origin) >> shift, last) << shift)
        if t <= origin:
            total[i] = 0
        elif high[i] - at > FEW:
            walk = _walk(edges, n, area, open_at, union, total[i], code[i], before, high[i], t)
            total[i] = walk
        else:
            total[i] = _walk_few(edges, union, total[i], code[i], before, high[i], t)
    out[0] = touched & 1  # else nobody would read what was touched; overwritten below
    for i in range(num):
        width, inside = bounds[i + 1] - bounds[i], total[i + 1] - total[i]
        if width == 0:
            end = bounds[i] + 1
            find = sum_before(edges, n, area, open_at, directory, origin, shift, union, end)
            width, inside = np.int64(1), find - total[i]
        out[i] = 0
        if inside > 0:
            out[i] = np.uint8(np.ceil(255.0 * np.sqrt(min(inside / (width * peers), 1.0))))


@_njit
def uncovered(
    edges: Ints,
    n: int,
    area: Ints,
    open_at: Counts,
    directory: Ints,
    origin: int,
    shift: int,
    start: Ints,
    end: Ints,
    counted: Ints,
) -> None:
    """Of each span the part that neither these edges nor an earlier span here covers.

    Args:
        edges, n, area, open_at, directory, origin, shift: see ``sum_before``; taken as a union.
        start, end: the new spans, sorted by start.
        counted: gets the nanoseconds.
    """
    until = np.int64(-(1 << 62))
    for i in range(start.shape[0]):
        begin = max(start[i], until)
        counted[i] = 0
        if begin < end[i]:
            low = sum_before(edges, n, area, open_at, directory, origin, shift, True, begin)
            high = sum_before(edges, n, area, open_at, directory, origin, shift, True, end[i])
            counted[i] = (end[i] - begin) - (high - low)
            until = end[i]
