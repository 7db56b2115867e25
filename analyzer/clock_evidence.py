"""What bounds how far two hosts' clocks are apart: messages, and n-to-n collectives.

Each gives a bound from one side: what was sent on a and received on b says that b's clock is ahead of a's by
at most the difference. Bounds are kept apart by windows of time, because clocks drift.
"""

from __future__ import annotations

from typing import NamedTuple

import numba
import numpy as np
import numpy.typing as npt

from analyzer.columns import Ints

Floats = npt.NDArray[np.float64]

MANY_HOSTS = 32
"""In a collective of more hosts, each is compared with the first few of them only."""

_REFERENCES = 8

_SCATTER = 4.0
"""So many times the scatter of the windows' distances a drift must part clocks to be believed."""

_MIN_WINDOWS = 4
"""With fewer, where one distance fits all, no drift is believed: three points have next to no scatter."""


class Apart(NamedTuple):
    """How far b's clock is ahead of a's, as a line over time: ``offset + drift * (time - start)``."""

    offset: float
    drift: float
    error: float
    width: float
    """Of the interval that the bounds leave: the narrower, the better the evidence."""
    beyond: float = 0.0
    """What the line may be off beside ``error`` at the ends of the run, where evidence is only in a part."""


@numba.njit(cache=True)
def message_bounds(bound: Floats, window: Ints, a: Ints, b: Ints, took: Floats) -> None:
    """Lower ``bound[window, a, b]`` to the least time that a message took from a to b."""
    for i in range(len(took)):
        if a[i] != b[i] and took[i] < bound[window[i], a[i], b[i]]:
            bound[window[i], a[i], b[i]] = took[i]


@numba.njit(cache=True)
def collective_bounds(
    bound: Floats,
    ties: Floats,
    begin: Ints,
    window: Ints,
    host: Ints,
    entry: Floats,
    leave: Floats,
) -> None:
    """The same by n-to-n collectives: each entry precedes each completion.

    Args:
        bound: lowered in place.
        ties: [0 or 1, window, a, b]: how far b's first completions lie after a's, summed, and of how many.
        begin: where each collective's entries begin, and the end.
        window: of each collective.
        host, entry, leave: per entry.
    """
    num = bound.shape[1]
    last = np.full(num, -np.inf)
    first = np.full(num, np.inf)
    here = np.empty(num, dtype=np.int64)
    for i in range(len(begin) - 1):
        count = 0
        for e in range(begin[i], begin[i + 1]):
            h = host[e]
            if last[h] == -np.inf:
                here[count] = h
                count += 1
            last[h] = max(last[h], entry[e])
            first[h] = min(first[h], leave[e])
        references = count if count <= MANY_HOSTS else _REFERENCES
        for x in range(count):
            for y in range(count):
                if x != y and (x < references or y < references):
                    a, b = here[x], here[y]
                    bound[window[i], a, b] = min(bound[window[i], a, b], first[b] - last[a])
                    ties[0, window[i], a, b] += first[b] - first[a]
                    ties[1, window[i], a, b] += 1.0
        for x in range(count):
            last[here[x]] = -np.inf
            first[here[x]] = np.inf


def apart(upper: Floats, lower: Floats, tied: Floats, at: Floats) -> Apart | None:
    """Between the bounds of each window; None without evidence from both sides.

    Zero where it is among the distances that fit all windows: synchronised clocks are left alone. Else what
    common completions say (their members are through at about the same time), kept between the bounds,
    or without them the middle; as a line where no one distance fits, or where four windows or more show a
    drift far beyond their scatter.

    Args:
        upper, lower: bounds by window; infinite where there are none.
        tied: by window how far b's completions lie after a's on average; NaN where there are none.
        at: the windows' middles, ns since the start, all of the run's.
    """
    high, low = float(upper.min()), float(lower.max())
    if not (np.isfinite(high) and np.isfinite(low)):
        return None
    if low <= 0 <= high:
        return Apart(0.0, 0.0, max(-low, high), high - low)
    both = np.isfinite(upper) & np.isfinite(lower)
    fits = low <= high
    if both.sum() < 2:
        return Apart((low + high) / 2, 0.0, abs(high - low) / 2, abs(high - low))
    ends = (float(1.5 * at[0] - 0.5 * at[1]), float(1.5 * at[-1] - 0.5 * at[-2]))
    upper, lower, tied, at = upper[both], lower[both], tied[both], at[both]
    middle = (upper + lower) / 2
    half = np.abs(upper - lower) / 2
    known = np.clip(np.where(np.isnan(tied), middle, tied), middle - half, middle + half)
    drift, offset = np.polyfit(at, known, 1)
    left = known - offset - drift * at
    believed = abs(drift) * float(np.ptp(at)) > _SCATTER * float(left.std()) + 1_000.0
    if fits and not (believed and len(at) >= _MIN_WINDOWS):
        value = (
            float(np.clip(known.mean(), low, high))
            if not np.isnan(tied).all()
            else (low + high) / 2
        )
        return Apart(value, 0.0, max(value - low, high - value), high - low)
    line = offset + drift * at
    error = float(np.maximum(np.abs(upper - line), np.abs(line - lower)).max())
    outside = max(float(at[0]) - ends[0], ends[1] - float(at[-1]))
    beyond = _slope_error(upper, lower, at, float(drift)) * outside
    return Apart(float(offset), float(drift), error, float(2 * half.mean()), beyond)


def _slope_error(upper: Floats, lower: Floats, at: Floats, drift: float) -> float:
    """How far the drift may be off: of what the bounds of any two windows leave, the narrowest."""
    one, other = np.triu_indices(len(at), 1)
    apart_ns = at[other] - at[one]
    most = float(((upper[other] - lower[one]) / apart_ns).min())
    least = float(((lower[other] - upper[one]) / apart_ns).max())
    return max(abs(most - drift), abs(drift - least))
