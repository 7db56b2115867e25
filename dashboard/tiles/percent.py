"""Percent lanes: how the samples of a pool spread over each pixel, or the busy share of its ranks."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from dashboard.tiles.edges_native import Bytes, Ints
from dashboard.tiles.percent_native import (
    BINS,
    BLOCK,
    Histograms,
    count_busy,
    draw_samples,
    merge_samples,
    recount,
    spread_all,
)
from dashboard.tiles.spans import Spans

ROWS = ("median", "p10", "p90", "min", "max", "num")
"""Of a percent layer, in the order of percent_native's numbers."""

_ROOM = 4096


@dataclass(slots=True)
class Samples:
    """Percent samples of all ranks in time, rounded to whole percents; they may come in any order."""

    times: Ints = field(default_factory=lambda: np.empty(_ROOM, np.int64))
    values: Bytes = field(default_factory=lambda: np.empty(_ROOM, np.uint8))
    before: Histograms = field(
        default_factory=lambda: np.zeros((_ROOM // BLOCK + 1, BINS), np.uint32)
    )
    num: int = 0

    def add(self, times: Ints, percent: npt.NDArray[np.float64]) -> None:
        """Add samples; what is no number is left out, what is outside 0..100 is cut to it."""
        known = np.isfinite(percent)
        times, percent = times[known], percent[known]
        if not len(times):
            return
        order = np.argsort(times, kind="stable")
        values = np.floor(np.clip(percent[order], 0.0, 100.0) + 0.5).astype(np.uint8)
        need = self.num + len(times)
        if need > len(self.times):
            self._grow(max(need, self.num + self.num // 2))
        first = merge_samples(self.times, self.values, self.num, times[order], values)
        self.num = need
        # A block behind the last sample is wanted where the samples fill theirs.
        recount(self.values, self.num, first, self.before)
        if self.num % BLOCK == 0:
            tail = self.values[self.num - BLOCK : self.num]
            counts = np.bincount(tail, minlength=BINS).astype(np.uint32)
            self.before[self.num // BLOCK] = self.before[self.num // BLOCK - 1] + counts

    def draw(self, bounds: Ints) -> Bytes:
        """uint8[ROWS, pixels]."""
        out = np.empty((len(ROWS), len(bounds) - 1), np.uint8)
        draw_samples(self.times, self.values, self.num, self.before, bounds, out)
        return out

    def _grow(self, size: int) -> None:
        times, values = np.empty(size, np.int64), np.empty(size, np.uint8)
        before = np.zeros((size // BLOCK + 1, BINS), np.uint32)
        times[: self.num], values[: self.num] = self.times[: self.num], self.values[: self.num]
        before[: len(self.before)] = self.before
        self.times, self.values, self.before = times, values, before


def draw_busy(busy: Spans, bounds: Ints) -> Bytes:
    """uint8[ROWS, pixels]: each rank's busy share of a pixel is one sample."""
    counts = np.zeros((len(bounds) - 1, BINS), np.int32)
    for row in busy.rows.values():
        count_busy(*row.finder(), bounds, counts)
    out = np.empty((len(ROWS), len(bounds) - 1), np.uint8)
    spread_all(counts, out)
    return out
