"""From when to when a replica differed from the others: what a person asks about one that does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from analyzer.columns import NULL


class Compared(NamedTuple):
    """One comparison of one replica with the others, in its own order."""

    place: int
    step: int
    is_odd: bool


def stretches(compared: Sequence[Compared]) -> dict[int, str]:
    """In words when the replica differed, by the place of each stretch's first odd comparison.

    Args:
        compared: all comparisons of one replica of one object, in order.
    """
    found: dict[int, str] = {}
    begin = 0
    while begin < len(compared):
        if not compared[begin].is_odd:
            begin += 1
            continue
        end = begin
        while end < len(compared) and compared[end].is_odd:
            end += 1
        first, last = compared[begin], compared[end - 1]
        before = compared[begin - 1].step if begin else NULL
        after = compared[end].step if end < len(compared) else NULL
        if first.step != NULL and last.step != NULL:
            found[first.place] = _when(first.step, last.step, before, after, end == len(compared))
        begin = end
    return found


def _when(first: int, last: int, before: int, after: int, to_the_end: bool) -> str:
    if first == last:
        said = f"in step {first}"
    else:
        said = f"from step {first} on" if to_the_end else f"in steps {first} to {last}"
    equal = [f"equal in step {before}"] if before != NULL else []
    equal += [f"{'again' if equal else 'equal again'} in step {after}"] if after != NULL else []
    return f"{said} ({' and '.join(equal)})" if equal else said
