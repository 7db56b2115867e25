# mypy: disallow-untyped-decorators=False
"""Compiled: how percent values spread over each pixel: median, tenths, least, most and how many.

Samples are sorted by time. Of every 512th sample the histogram of all samples before it is kept, so
the histogram of a pixel is a difference of two, and right at every zoom.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import numpy.typing as npt

from dashboard.tiles.edges_native import Bytes, Counts, Ints, sum_before

BLOCK = 512
"""Samples between two kept histograms."""

BINS = 101
NONE = 255
MOST = 254
"""The largest count that is told."""

MEDIAN, P10, P90, LEAST, LARGEST, NUM = range(6)
"""Rows of a percent layer."""

Histograms = npt.NDArray[np.uint32]

_njit: Any = numba.njit(nogil=True, cache=True)


@_njit
def merge_samples(times: Ints, values: Bytes, n: int, new_times: Ints, new_values: Bytes) -> int:
    """Put samples, sorted by time, among the first ``n``; the first place that changed."""
    i, j = n - 1, new_times.shape[0] - 1
    at: int = i + new_times.shape[0]
    while j >= 0:
        if i >= 0 and times[i] > new_times[j]:
            times[at], values[at] = times[i], values[i]
            i -= 1
        else:
            times[at], values[at] = new_times[j], new_values[j]
            j -= 1
        at -= 1
    return at + 1


@_njit
def recount(values: Bytes, n: int, first: int, before: Histograms) -> None:
    """Make the kept histograms right again; samples before place ``first`` have not changed."""
    block = first // BLOCK
    if block == 0:
        before[0] = 0
    counts = before[block].copy()
    for i in range(block * BLOCK, n):
        if i % BLOCK == 0:
            before[i // BLOCK] = counts
        counts[values[i]] += np.uint32(1)


@_njit
def _first_from(times: Ints, n: int, t: int) -> int:
    """The place of the first sample at ``t`` or later."""
    low, high = 0, n
    while low < high:
        middle = (low + high) >> 1
        if times[middle] < t:
            low = middle + 1
        else:
            high = middle
    return low


@_njit
def _count(values: Bytes, first: int, last: int, before: Histograms, counts: Ints) -> None:
    """The histogram of the samples ``first`` to ``last`` - 1, added to ``counts``."""
    block, until = (first + BLOCK - 1) // BLOCK, last // BLOCK
    if block >= until:
        for i in range(first, last):
            counts[values[i]] += 1
        return
    for k in range(BINS):
        counts[k] += np.int64(before[until, k]) - np.int64(before[block, k])
    for i in range(first, block * BLOCK):
        counts[values[i]] += 1
    for i in range(until * BLOCK, last):
        counts[values[i]] += 1


@_njit
def spread(counts: Ints, out: Bytes, pixel: int) -> None:
    """Fill in a pixel from its histogram.

    A share of p: the least value that p of the samples do not exceed.
    """
    total = counts.sum()
    for row in range(NUM):
        out[row, pixel] = NONE
    out[NUM, pixel] = min(total, MOST)
    if total == 0:
        return
    seen = 0
    for k in range(BINS):
        if counts[k] == 0:
            continue
        if seen == 0:
            out[LEAST, pixel] = k
        for row, tenths in ((P10, 1), (MEDIAN, 5), (P90, 9)):
            if 10 * seen < tenths * total <= 10 * (seen + counts[k]):
                out[row, pixel] = k
        seen += counts[k]
        out[LARGEST, pixel] = k


@_njit
def draw_samples(
    times: Ints, values: Bytes, n: int, before: Histograms, bounds: Ints, out: Bytes
) -> None:
    """A percent layer of samples.

    Args:
        times, values, n: the samples, sorted by time; the first ``n`` count.
        before: [blocks, BINS], the histogram before every BLOCK-th sample.
        bounds: where pixels begin, and the end. A pixel takes 1 ns at least.
        out: [6, pixels]; rows MEDIAN to NUM.
    """
    counts = np.zeros(BINS, np.int64)
    begin = _first_from(times, n, bounds[0])
    for i in range(out.shape[1]):
        until = _first_from(times, n, max(bounds[i + 1], bounds[i] + 1))
        counts[:] = 0
        _count(values, begin, until, before, counts)
        spread(counts, out, i)
        begin = until if bounds[i + 1] > bounds[i] else begin


@_njit
def count_busy(
    edges: Ints,
    n: int,
    area: Ints,
    open_at: Counts,
    directory: Ints,
    origin: int,
    shift: int,
    bounds: Ints,
    counts: Counts,
) -> None:
    """Add one rank's busy share of each pixel to the pixels' histograms.

    Args:
        edges, n, area, open_at, directory, origin, shift: its busy spans (edges_native).
        bounds: where pixels begin, and the end. A pixel takes 1 ns at least.
        counts: [pixels, BINS]. Nothing is added where the rank has no span any more or none yet.
    """
    if n == 0:
        return
    first, last = edges[0] >> 1, edges[n - 1] >> 1
    for i in range(counts.shape[0]):
        begin, end = max(bounds[i], first), min(max(bounds[i + 1], bounds[i] + 1), last)
        if begin < end:
            low = sum_before(edges, n, area, open_at, directory, origin, shift, True, begin)
            high = sum_before(edges, n, area, open_at, directory, origin, shift, True, end)
            counts[i, int(np.floor(100.0 * (high - low) / (end - begin) + 0.5))] += 1


@_njit
def spread_all(counts: Counts, out: Bytes) -> None:
    """A percent layer from the histogram of each pixel."""
    for i in range(out.shape[1]):
        spread(counts[i].astype(np.int64), out, i)
