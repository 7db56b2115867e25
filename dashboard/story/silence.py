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
    lives = _Lives(spans, facts.t1_ns + quiet_ns(facts))
    found = [
        silence for key, span in spans.items() for silence in _of(facts, cast, key, span, lives)
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


class _Lives:
    """All ranks' rows, for what is asked of them for each.

    Args:
        spans: of every rank.
        now_ns: until when nothing came.
    """

    def __init__(self, spans: dict[Key, Span], now_ns: int) -> None:
        self.spans = spans
        self.now_ns = now_ns
        self._next: dict[Key, int] = {}
        begins: dict[int, int] = {}
        for key, span in sorted(spans.items(), reverse=True):
            if key[0] in begins:
                self._next[key] = begins[key[0]]
            begins[key[0]] = min(span.first_ns, begins.get(key[0], span.first_ns))

    def next_ns(self, key: Key) -> int | None:
        """When the rank came again, in whatever later incarnation."""
        return self._next.get(key)

    def goes_on(self, key: Key, begin: int, end: int) -> bool:
        """Whether another rank has a row in between."""
        for other, span in self.spans.items():
            if other != key:
                at = int(np.searchsorted(span.first, begin, side="right"))
                if at < len(span.first) and int(span.first[at]) < end:
                    return True
        return False


def _of(facts: Facts, cast: Cast, key: Key, span: Span, lives: _Lives) -> list[Silence]:
    least = max(LEAST_NS, TIMES_MEDIAN * span.usual_ns)
    found = []
    for begin, end in span.pauses(LEAST_NS):
        if end - begin > least and lives.goes_on(key, begin, end):
            found.append(_silence(facts, key, begin, end))
    tail = _tail(facts, cast, key, span, lives, least)
    return [*found, tail] if tail else found


def _tail(
    facts: Facts, cast: Cast, key: Key, span: Span, lives: _Lives, least: float
) -> Silence | None:
    """From its last row until it was said to have left, came again, or until now."""
    begin = span.latest_ns
    left, again = cast.left.get(key), lives.next_ns(key)
    ends = [at for at in (again, None if left is None else left.wall_ns) if at is not None]
    if ends:
        in_order = left is not None and left.reason == "finished"
        late = min(ends) - begin > least and not in_order
        return _silence(facts, key, begin, min(ends)) if late else None
    if lives.now_ns - begin <= least:
        return None
    return _silence(facts, key, begin, None if facts.state == "live" else facts.t1_ns)


def _silence(facts: Facts, key: Key, begin: int, end: int | None) -> Silence:
    to = None if end is None else facts.since(end)
    return Silence(rank=key[0], incarnation=key[1], from_ns=facts.since(begin), to_ns=to)
