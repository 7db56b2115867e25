"""Times without a row of a rank that had not ended, while the run went on."""

from __future__ import annotations

import numpy as np

from dashboard.story.activity import Key, Span
from dashboard.story.actors import Cast
from dashboard.story.facts import Facts
from dashboard.story.model import Silence

LEAST_NS = 5_000_000_000
TIMES_MEDIAN = 20
MAX_SILENT = 2_000


def silent_of(facts: Facts, cast: Cast) -> list[Silence]:
    """The longest MAX_SILENT, in time.

    A rank is silent after max(5 s, 20 times the median distance of the quarter-seconds in which it
    has rows): bursts of rows, step by step, are one sign of life each.
    """
    if facts.activity is None:
        return []
    spans = {k: s for k, s in facts.activity.spans.items() if k not in cast.agents}
    found = [
        silence for key, span in spans.items() for silence in _of(facts, cast, key, span, spans)
    ]
    found.sort(key=lambda s: -_length(facts, s))
    return sorted(found[:MAX_SILENT], key=lambda s: (s.from_ns, s.rank, s.incarnation))


def quiet_ns(facts: Facts) -> int:
    """How long nothing has come from anybody; 0 for a run that nothing is expected of."""
    came = facts.source.last_came_ns()
    return max(0, facts.now_ns - came) if facts.state == "live" and came is not None else 0


def _length(facts: Facts, silence: Silence) -> int:
    end = facts.since(facts.t1_ns) if silence.to_ns is None else silence.to_ns
    return end - silence.from_ns


def _of(facts: Facts, cast: Cast, key: Key, span: Span, spans: dict[Key, Span]) -> list[Silence]:
    distances = np.diff(span.first)
    median = float(np.median(distances)) if len(distances) else 0.0
    least = max(LEAST_NS, TIMES_MEDIAN * median)
    found = []
    for at in np.flatnonzero(span.first[1:] - span.last[:-1] > least).tolist():
        begin, end = int(span.last[at]), int(span.first[at + 1])
        if _goes_on(key, spans, begin, end):
            found.append(_silence(facts, key, begin, end))
    tail = _tail(facts, cast, key, span, spans, least)
    return [*found, tail] if tail else found


def _tail(
    facts: Facts, cast: Cast, key: Key, span: Span, spans: dict[Key, Span], least: float
) -> Silence | None:
    """From its last row until it was said to have left, came again, or until now."""
    begin = int(span.last.max())
    left = cast.left.get(key)
    again = [span.first_ns for other, span in spans.items() if other[0] == key[0] and other > key]
    ends = [*again] if left is None else [*again, left.wall_ns]
    if ends:
        in_order = left is not None and left.reason == "finished"
        late = min(ends) - begin > least and not in_order
        return _silence(facts, key, begin, min(ends)) if late else None
    now = facts.t1_ns + quiet_ns(facts)
    if now - begin <= least:
        return None
    return _silence(facts, key, begin, None if facts.state == "live" else facts.t1_ns)


def _silence(facts: Facts, key: Key, begin: int, end: int | None) -> Silence:
    to = None if end is None else facts.since(end)
    return Silence(rank=key[0], incarnation=key[1], from_ns=facts.since(begin), to_ns=to)


def _goes_on(key: Key, spans: dict[Key, Span], begin: int, end: int) -> bool:
    """Whether another rank has a row in between."""
    for other, span in spans.items():
        if other != key:
            at = int(np.searchsorted(span.first, begin, side="right"))
            if at < len(span.first) and int(span.first[at]) < end:
                return True
    return False
