"""The few statistics that the benchmarks use."""

from __future__ import annotations

import random
import statistics
from collections.abc import Sequence

RESAMPLES = 10_000


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest value that at least ``share`` (0 to 1) of the values do not exceed."""
    ordered = sorted(values)
    rank = -int(-share * len(ordered) // 1)  # rounded up
    return ordered[min(max(rank, 1), len(ordered)) - 1]


def median(values: Sequence[float]) -> float:
    """The middle value."""
    return statistics.median(values)


def p95(values: Sequence[float]) -> float:
    """95 of 100 values are at most this."""
    return percentile(values, 0.95)


def ratio(ours: Sequence[float], theirs: Sequence[float]) -> float:
    """Ours over theirs: the median of the ratios of runs that were measured side by side."""
    return median([a / b for a, b in zip(ours, theirs, strict=True)])


def ratio_upper(ours: Sequence[float], theirs: Sequence[float], level: float = 0.95) -> float:
    """Upper one-sided bootstrap bound of ``ratio``; whole pairs are drawn, so drift cancels."""
    pairs = [a / b for a, b in zip(ours, theirs, strict=True)]
    draw = random.Random(0)  # the same runs give the same bound
    medians = [median(draw.choices(pairs, k=len(pairs))) for _ in range(RESAMPLES)]
    return percentile(medians, level)
