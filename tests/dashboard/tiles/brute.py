"""What tiles must show, counted the slow way."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np

from dashboard.tiles.spans import Spans


def pixels(a, b, w):
    """(begin, end) of every pixel; 1 ns at least."""
    bounds = [a + (b - a) * i // w for i in range(w + 1)]
    return [(x, max(y, x + 1)) for x, y in pairwise(bounds)]


def inside(spans, a, b, *, union):
    """ns of (start, end) inside a..b."""
    cut = sorted((max(s, a), min(e, b)) for s, e in spans if max(s, a) < min(e, b))
    if not union:
        return sum(e - s for s, e in cut)
    total, until = 0, a
    for s, e in cut:
        total += max(0, e - max(s, until))
        until = max(until, e)
    return total


def code(ns, width):
    return math.ceil(255.0 * math.sqrt(min(ns / width, 1.0)))


def tile(by_rank, ranks, a, b, w, *, union):
    return np.array(
        [
            [code(inside(by_rank.get(r, []), x, y, union=union), y - x) for x, y in pixels(a, b, w)]
            for r in ranks
        ],
        np.uint8,
    ).reshape(len(ranks), w)


def spread(values):
    """(median, p10, p90, min, max, num) of whole percents."""
    if not values:
        return (255, 255, 255, 255, 255, 0)
    values = sorted(values)

    def least(tenths):
        return next(v for i, v in enumerate(values) if 10 * (i + 1) >= tenths * len(values))

    return (least(5), least(1), least(9), values[0], values[-1], min(len(values), 254))


def lane(batches, *, union):
    """A lane that got the (rank, start, end) of each batch."""
    made = Spans(union=union)
    for batch in batches:
        rank, start, end = np.array(batch, np.int64).reshape(-1, 3).T
        made.add(rank, start, end)
    return made


def of_ranks(batches):
    found = {}
    for batch in batches:
        for rank, start, end in batch:
            if end > start:
                found.setdefault(rank, []).append((start, end))
    return found
