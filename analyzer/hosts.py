"""One time scale for all hosts, as far as the evidence carries it (result table ``clock_fit``).

Inside a host the monotonic clock is exact. Between hosts every message, and every n-to-n
collective, bounds the offset from one side; both sides together make an interval (clock_evidence.py).
Where it holds zero the clocks are taken as they are, else its middle; half of it is the error. Where no
one offset fits the whole run, clocks drift, and a line is fitted; what it leaves is fitted again. Hosts without
evidence both ways are not connected, and no wait is computed between them (design contract 4.4).
"""

from __future__ import annotations

import heapq
from typing import Any

import numpy as np
import numpy.typing as npt

from analyzer.clock_evidence import Apart, apart, collective_bounds, message_bounds
from analyzer.columns import NULL, Flags, Ints
from analyzer.instances import Instances
from analyzer.rows import Rows
from cascade_runtime.vocabulary.report import ClockSummary

_SAMPLE = 1001
_WINDOWS = 16
_ROUNDS = 3
"""Lines are fitted so often at most: the first is bent by what drift does inside a window."""

Floats = npt.NDArray[np.float64]


class Clocks:
    """What to add to an actor's times, and which hosts hang together.

    Args:
        rows: the trace's rows.
        message_pairs: (send row, recv row) of its messages.
        instances: its collectives.

    Attributes:
        hosts: host names, the reference first.
        host: per actor the index of its host.
        shift: per actor, nanoseconds to add to its ``_ns`` columns.
        part: per host a number that is equal for connected hosts.
    """

    def __init__(self, rows: Rows, message_pairs: tuple[Ints, Ints], instances: Instances) -> None:
        names = _host_names(rows)
        self.hosts = list(dict.fromkeys(names))
        self.host: Ints = np.array([self.hosts.index(name) for name in names], dtype=np.int64)
        self.shift: Ints = _same_host_shift(rows, self.host)
        self.start_ns = int(rows.wall.min()) if rows.n else 0
        num = len(self.hosts)
        self.offset: Ints = np.zeros(num, dtype=np.int64)
        self.drift: Floats = np.zeros(num)
        self.error: Ints = np.zeros(num, dtype=np.int64)
        self._beyond: Floats = np.zeros(num)
        self.part: Ints = np.arange(num, dtype=np.int64)
        self._own_shift = self.shift
        for _ in range(_ROUNDS if num > 1 else 0):
            drifts = self._connect(*_bounds(rows, message_pairs, instances, self))
            self.shift = self._own_shift + self.offset[self.host]
            if not drifts:
                break

    def _connect(self, bound: Floats, tied: Floats, at: Floats) -> bool:
        """Grow each part from its first host along the narrowest intervals (Prim); True where some drift.

        What is found is added to what an earlier round had found.
        """
        num = len(self.hosts)
        pairs: dict[tuple[int, int], Apart] = {}
        there = np.isfinite(bound.min(axis=0))
        for a, b in np.argwhere(there & there.T).tolist():
            found = apart(bound[:, a, b], -bound[:, b, a], tied[:, a, b], at)
            if found is not None:
                pairs[a, b] = found
        links: list[list[tuple[float, int]]] = [[] for _ in range(num)]
        for (a, b), one in pairs.items():
            links[a].append((one.width, b))
        left = set(range(num))
        offset, drift = np.zeros(num), np.zeros(num)
        self.part, error = np.arange(num, dtype=np.int64), np.zeros(num)
        beyond = np.zeros(num)
        while left:
            root = min(left)
            left.discard(root)
            waiting = [(width, root, b) for width, b in links[root]]
            heapq.heapify(waiting)
            while waiting:
                _, a, b = heapq.heappop(waiting)
                if b not in left:
                    continue
                left.discard(b)
                one = pairs[a, b]
                # How far it is ahead is what its times must be set back by.
                offset[b] = offset[a] - one.offset
                drift[b] = drift[a] - one.drift
                error[b] = error[a] + one.error
                beyond[b] = beyond[a] + one.beyond
                self.part[b] = root
                for width, c in links[b]:
                    heapq.heappush(waiting, (width, b, c))
        self.offset = self.offset + np.round(offset).astype(np.int64)
        self.drift = self.drift + drift
        # A later round sees only what a line leaves where the evidence is, not what it does beyond.
        self._beyond = np.maximum(self._beyond, beyond)
        self.error = np.round(error + self._beyond).astype(np.int64)
        return bool((drift != 0).any())

    @property
    def connected(self) -> bool:
        """True when every host is tied to the first."""
        return bool((self.part == 0).all())

    def times(self, actors: Ints, times: Ints) -> Ints:
        """Times of actors on the common scale."""
        if not len(actors):
            return times
        drift = self.drift[self.host[actors]]
        if drift.any():
            times = times + np.round(drift * (times - self.start_ns)).astype(np.int64)
        return times + self.shift[actors]

    def since_start(self, actors: Ints, times: Ints) -> npt.NDArray[np.float64]:
        """Times on the common scale since ``start_ns``: small enough to be exact as floats."""
        return (self.times(actors, times) - self.start_ns).astype(np.float64)

    def summary(self) -> ClockSummary:
        """The report's ``clock``."""
        worst = int(self.error.max()) if len(self.error) else 0
        return ClockSummary(num_hosts=len(self.hosts), connected=self.connected, max_error_ns=worst)

    def fit_rows(self) -> list[dict[str, Any]]:
        """Rows of ``clock_fit``: what was added to each host's times."""
        return [
            {
                "host": name,
                "offset_ns": int(self.offset[i]) if self.part[i] == 0 else None,
                "drift_ppm": float(self.drift[i]) * 1e6 if self.part[i] == 0 else None,
                "error_ns": int(self.error[i]) if self.part[i] == 0 else None,
                "connected": bool(self.part[i] == 0),
            }
            for i, name in enumerate(self.hosts)
        ]

    def refused(self) -> str | None:
        """Why some waits are not computed, as a sentence; None when all are."""
        if self.connected:
            return None
        alone = [name for i, name in enumerate(self.hosts) if self.part[i] != 0]
        return (
            f"no evidence in both directions ties the clock of {', '.join(alone[:4])}"
            f"{' and others' if len(alone) > 4 else ''} to that of {self.hosts[0]}, so waits "
            "between them are not computed"
        )


def _host_names(rows: Rows) -> list[str]:
    table = rows["actors"]
    names = [""] * rows.num_actors
    for at, host in zip(table.rows.tolist(), table.values("host"), strict=True):
        names[int(rows.actor[at])] = host or ""
    return names


def _same_host_shift(rows: Rows, host: Ints) -> Ints:
    """Each actor anchored its wall clock once; their common monotonic clock shows by how much."""
    shift = np.zeros(rows.num_actors, dtype=np.int64)
    reference: dict[int, int] = {}
    for actor in range(rows.num_actors):
        span = slice(
            rows.first_row(actor), min(rows.last_row(actor) + 1, rows.first_row(actor) + _SAMPLE)
        )
        mono = rows.mono[span]
        known = mono != NULL
        if not known.any():
            continue
        anchor = int(np.median(rows.wall[span][known] - mono[known]))
        shift[actor] = reference.setdefault(int(host[actor]), anchor) - anchor
    return shift


def _bounds(
    rows: Rows, message_pairs: tuple[Ints, Ints], instances: Instances, clocks: Clocks
) -> tuple[Floats, Floats, Floats]:
    """What ties hosts together: (bounds, ties, the windows' middles).

    Bounds: [window, a, b], the least time from a sending event on a to a receiving one on b. Ties: how far
    b's completions lie after a's on average, NaN without any.
    """
    num = len(clocks.hosts)
    length = max(float(int(rows.wall.max()) - clocks.start_ns), 1.0)
    bound = np.full((_WINDOWS, num, num), np.inf)
    source, target = message_pairs
    if len(source):
        sent = clocks.since_start(rows.actor[source], rows.wall[source])
        got = clocks.since_start(rows.actor[target], rows.wall[target])
        a, b = clocks.host[rows.actor[source]], clocks.host[rows.actor[target]]
        message_bounds(bound, _window(sent, length), a, b, got - sent)
    ties = np.zeros((2, _WINDOWS, num, num))
    if len(instances):
        _collective_bounds(instances, clocks, bound, ties, length)
    tied = np.full(bound.shape, np.nan)
    np.divide(ties[0], ties[1], out=tied, where=ties[1] > 0)
    return bound, tied, (np.arange(_WINDOWS) + 0.5) * length / _WINDOWS


def _window(since_start: Floats, length: float) -> Ints:
    return np.clip(since_start * _WINDOWS / length, 0, _WINDOWS - 1).astype(np.int64)


def _collective_bounds(
    instances: Instances, clocks: Clocks, bound: Floats, ties: Floats, length: float
) -> None:
    """In an n-to-n collective each entry precedes each completion."""
    index = instances.order
    judged: Flags = (instances.kind[instances.of] == 0) & instances.completed[index]
    complete = instances.table.ints("complete_ns")[index]
    judged &= complete != NULL
    if not judged.any():
        return
    actor, of = instances.actor[index][judged], instances.of[judged]
    entry = clocks.since_start(actor, instances.arrival()[index][judged])
    leave = clocks.since_start(actor, complete[judged])
    first = np.flatnonzero(np.diff(of, prepend=-1))
    begin = np.append(first, len(of)).astype(np.int64)
    window = _window(entry[first], length)
    collective_bounds(bound, ties, begin, window, clocks.host[actor], entry, leave)
