"""Counts and medians of what was measured lately, in bounded memory."""

from __future__ import annotations

from collections import deque
from statistics import median


class RecentMedian:
    """Median of the samples of the last ``window_s`` seconds, one sample for each ``slots``-th of it.

    Samples grow old only as newer ones come: without any, the last median stays.
    """

    def __init__(self, window_s: float, least: int, slots: int = 256) -> None:
        self._window_s = window_s
        self._slot_s = window_s / slots
        self._least = least
        self._samples: deque[tuple[float, float]] = deque()
        self._begun: list[float] = []
        self._value: float | None = None

    def add(self, value: float, now_s: float) -> None:
        """A sample at ``now_s`` (s)."""
        if len(self._begun) < self._least:
            self._begun.append(value)
        if self._samples and now_s - self._samples[-1][0] < self._slot_s:
            if len(self._begun) < self._least or self._value is not None:
                return
        else:
            self._samples.append((now_s, value))
            while self._samples[0][0] < now_s - self._window_s:
                self._samples.popleft()
        if len(self._begun) >= self._least:
            # Young series have few slots: until those say more, the first samples speak.
            many = len(self._samples) >= self._least
            self._value = median([v for _, v in self._samples] if many else self._begun)

    @property
    def value(self) -> float | None:
        """The median; None while there were fewer samples than ``least``."""
        return self._value


class FiresIn:
    """A fault that begins when ``fires_in`` of ``of`` are bad, and stay so for ``dwell_s``.

    It ends after ``clears_after`` good ones in a row. The dwell time is for short steps: a machine that
    is busy for a moment makes a dozen of them bad at once.
    """

    def __init__(self, fires_in: int, of: int, dwell_s: float, clears_after: int) -> None:
        self._fires_in, self._dwell_s, self._clears_after = fires_in, dwell_s, clears_after
        self._last: deque[bool] = deque(maxlen=of)
        self._since_s: float | None = None
        self._good = 0
        self.stands = False

    def add(self, bad: bool, now_s: float) -> bool:
        """One more, at ``now_s`` (s); True when this begins or ends it."""
        self._last.append(bad)
        self._good = 0 if bad else self._good + 1
        if self.stands:
            if self._good < self._clears_after:
                return False
            self._last.clear()
            self._since_s, self.stands = None, False
            return True
        if sum(self._last) < self._fires_in:
            self._since_s = None
            return False
        self._since_s = now_s if self._since_s is None else self._since_s
        self.stands = bad and now_s - self._since_s >= self._dwell_s
        return self.stands

    @property
    def idle(self) -> bool:
        """It stands not, and nothing bad is remembered."""
        return not self.stands and not any(self._last)
