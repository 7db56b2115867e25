"""One time scale for all hosts, as far as the evidence carries it (result table ``clock_fit``).

Inside a host the monotonic clock is exact. Between hosts every message, and every n-to-n
collective, bounds the offset from one side; both sides together make an interval. Where it holds
zero the clocks are taken as they are, else its middle; half of it is the error. Hosts without
evidence both ways are not connected, and no wait is computed between them (design contract 4.4).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from analyzer.columns import NULL, Flags, Ints
from analyzer.history import History
from analyzer.instances import Instances
from cascade_runtime.vocabulary.report import ClockSummary

_SAMPLE = 1001
_ALL_PAIRS = 32
"""Up to so many hosts each pair is compared; beyond, each with the first only."""


class Clocks:
    """What to add to an actor's times, and which hosts hang together.

    Attributes:
        hosts: host names, the reference first.
        host: per actor the index of its host.
        shift: per actor, nanoseconds to add to its ``_ns`` columns.
        part: per host a number that is equal for connected hosts.
    """

    def __init__(self, history: History) -> None:
        rows = history.rows
        self._history = history
        names = _host_names(history)
        self.hosts = list(dict.fromkeys(names))
        self.host: Ints = np.array([self.hosts.index(name) for name in names], dtype=np.int64)
        self.shift: Ints = _same_host_shift(history, self.host)
        self.start_ns = int(rows.wall.min()) if rows.n else 0
        num = len(self.hosts)
        self.offset: Ints = np.zeros(num, dtype=np.int64)
        self.error: Ints = np.zeros(num, dtype=np.int64)
        self.part: Ints = np.arange(num, dtype=np.int64)
        if num > 1:
            self._connect(_delays(history, self))
        if rows.num_actors:
            self.shift = self.shift + self.offset[self.host]

    def _connect(self, delay: npt.NDArray[np.float64]) -> None:
        """Grow each part from its first host along the narrowest intervals (Prim)."""
        num = len(self.hosts)
        width = delay + delay.T
        left = set(range(num))
        while left:
            root = min(left)
            left.discard(root)
            inside = [root]
            while True:
                links = [(width[a, b], a, b) for a in inside for b in left if width[a, b] < np.inf]
                if not links:
                    break
                _, a, b = min(links)
                low, high = -delay[a, b], delay[b, a]
                held = low <= 0 <= high
                step = 0.0 if held else (low + high) / 2
                error = max(-low, high) if held else abs(high - low) / 2
                self.offset[b] = self.offset[a] + round(step)
                self.error[b] = self.error[a] + round(error)
                self.part[b] = root
                inside.append(b)
                left.discard(b)

    @property
    def connected(self) -> bool:
        """True when every host is tied to the first."""
        return bool((self.part == 0).all())

    def times(self, actors: Ints, times: Ints) -> Ints:
        """Times of actors on the common scale."""
        return times + self.shift[actors] if len(actors) else times

    def since_start(self, actors: Ints, times: Ints) -> npt.NDArray[np.float64]:
        """Times on the common scale since ``start_ns``: small enough to be exact as floats."""
        return (self.times(actors, times) - self.start_ns).astype(np.float64)

    def summary(self) -> ClockSummary:
        """The report's ``clock``."""
        worst = int(self.error.max()) if len(self.error) else 0
        return ClockSummary(num_hosts=len(self.hosts), connected=self.connected, max_error_ns=worst)

    def fit_rows(self) -> list[dict[str, Any]]:
        """Rows of ``clock_fit``; drift is not fitted in this release."""
        return [
            {
                "host": name,
                "offset_ns": int(self.offset[i]) if self.part[i] == 0 else None,
                "drift_ppm": None,
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


def _host_names(history: History) -> list[str]:
    rows = history.rows
    table = rows["actors"]
    names = [""] * rows.num_actors
    for at, host in zip(table.rows.tolist(), table.values("host"), strict=True):
        names[int(rows.actor[at])] = host or ""
    return names


def _same_host_shift(history: History, host: Ints) -> Ints:
    """Each actor anchored its wall clock once; their common monotonic clock shows by how much."""
    rows = history.rows
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


def _delays(history: History, clocks: Clocks) -> npt.NDArray[np.float64]:
    """[a, b]: the least seen time from a sending event on host a to a receiving one on b."""
    num = len(clocks.hosts)
    delay = np.full((num, num), np.inf)
    _message_delays(history, clocks, delay)
    _collective_delays(history.instances, clocks, delay)
    np.fill_diagonal(delay, np.inf)
    return delay


def _message_delays(history: History, clocks: Clocks, delay: npt.NDArray[np.float64]) -> None:
    rows = history.rows
    source, target = history.message_pairs
    if not len(source):
        return
    sent = clocks.times(rows.actor[source], rows.wall[source])
    got = clocks.times(rows.actor[target], rows.wall[target])
    a, b = clocks.host[rows.actor[source]], clocks.host[rows.actor[target]]
    np.minimum.at(delay, (a, b), (got - sent).astype(np.float64))


def _collective_delays(
    instances: Instances, clocks: Clocks, delay: npt.NDArray[np.float64]
) -> None:
    """In an n-to-n collective each entry precedes each completion."""
    if not len(instances):
        return
    index = instances.order
    judged: Flags = (instances.kind[instances.of] == 0) & instances.completed[index]
    complete = instances.table.ints("complete_ns")[index]
    judged &= complete != NULL
    actor, of = instances.actor[index][judged], instances.of[judged]
    entry = clocks.since_start(actor, instances.arrival()[index][judged])
    leave = clocks.since_start(actor, complete[judged])
    host = clocks.host[actor]
    num, count = len(clocks.hosts), len(instances)
    last_entry = np.full((num, count), -np.inf)
    first_exit = np.full((num, count), np.inf)
    np.maximum.at(last_entry, (host, of), entry)
    np.minimum.at(first_exit, (host, of), leave)
    first_only = num > _ALL_PAIRS
    for a in range(1 if first_only else num):
        for b in range(num):
            if a == b:
                continue
            delay[a, b] = min(delay[a, b], float((first_exit[b] - last_entry[a]).min()))
            if first_only:
                delay[b, a] = min(delay[b, a], float((first_exit[a] - last_entry[b]).min()))
