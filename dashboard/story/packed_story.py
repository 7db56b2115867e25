"""A story for the page: JSON for all that is small, and bytes for its regimes, which may be very many.

As JSON the regimes of a long run are four fifths of the story, and a browser reads each number as text.
"""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from dashboard.story.model import Regimes
from dashboard.story.spans import Spans

_ALIGN = 8
_LARGEST_INT32 = (1 << 31) - 1


def framed(rest: Any, regimes: Regimes) -> bytes:
    """u32 length of the head (LE), the head as JSON padded with spaces, the arrays padded with zeros.

    The head: ``story``, and ``regimes``: ``groups``, ``chains``, ``arrays``. A chain is intervals that
    follow each other, of one actor in one group: place of the group, rank, incarnation, its first
    interval, and when that begins. The arrays have a number for each interval: ``since``, ns from the
    begin of the one before in its chain; ``length``, ns; ``regime``; ``epoch``. Each tells its dtype and
    its offset from the first, which begins at a multiple of 8.

    Args:
        rest: the story without regimes.
        regimes: the story's.
    """
    spans = regimes.spans
    first = _firsts(spans)
    since = np.diff(spans.start.astype("<f8"), prepend=0.0)  # as integers it might wrap around
    since[first] = 0
    most = int(max(spans.epoch.max(initial=0), ~spans.epoch.min(initial=0)))
    arrays: dict[str, npt.NDArray[Any]] = {
        "since": since,
        "length": (spans.end - spans.start).astype("<f8"),
        "epoch": spans.epoch.astype("<i4" if most <= _LARGEST_INT32 else "<f8"),
        "regime": spans.regime.astype("u1"),
    }
    told, bodies, offset = [], [], 0
    for name, array in arrays.items():
        body = array.tobytes()
        body += bytes(-len(body) % _ALIGN)
        told.append({"name": name, "dtype": array.dtype.str[1:], "offset": offset})
        bodies.append(body)
        offset += len(body)
    chains = {
        "group": spans.group[first].tolist(),
        "rank": spans.rank[first].tolist(),
        "incarnation": spans.incarnation[first].tolist(),
        "first": first.tolist(),
        "begin_ns": spans.start[first].tolist(),
    }
    how = {"num": len(since), "groups": spans.groups, "chains": chains, "arrays": told}
    text = msgspec.json.encode({"story": rest, "regimes": how})
    text += b" " * (-(len(text) + 4) % _ALIGN)
    return b"".join([len(text).to_bytes(4, "little"), text, *bodies])


def _firsts(spans: Spans) -> npt.NDArray[np.int64]:
    """Where chains begin."""
    if not len(spans.rank):
        return np.empty(0, np.int64)
    who = (spans.group, spans.rank, spans.incarnation)
    change = np.logical_or.reduce([np.diff(column) != 0 for column in who])
    return np.concatenate(([0], np.flatnonzero(change) + 1))
