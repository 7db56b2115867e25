"""The columns of a story's regimes as arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]


class Spans(NamedTuple):
    """Which rank held which regime when, by (group, rank, start).

    Attributes:
        groups: names; ``group`` holds places in them.
        start: a time; in ns unless somebody rounded it. So is ``end``.
    """

    groups: list[str]
    group: Ints
    rank: Ints
    incarnation: Ints
    epoch: Ints
    regime: Ints
    start: Ints
    end: Ints


def spans_of(
    group: Sequence[str],
    rank: Sequence[int] | Ints,
    incarnation: Sequence[int] | Ints,
    epoch: Sequence[int] | Ints,
    regime: Sequence[int] | Ints,
    start: Sequence[int] | Ints,
    end: Sequence[int] | Ints,
) -> Spans:
    """The same of plain columns."""
    names = list(dict.fromkeys(group))
    place = {name: number for number, name in enumerate(names)}
    columns = ([place[name] for name in group], rank, incarnation, epoch, regime, start, end)
    return Spans(names, *(np.asarray(column, dtype=np.int64) for column in columns))
