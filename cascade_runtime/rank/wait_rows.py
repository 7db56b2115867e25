"""Signs of life of a member that waits in its step's collectives, or for other cohorts after it.

It writes nothing else while it waits, and a wait is known to last until its last row: without these
a job that hangs for a minute would be told as one that waited for nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from cascade_runtime.rank.guard import guarded
from cascade_runtime.recorder import Recorder
from cascade_runtime.vocabulary.events import Health
from cascade_runtime.vocabulary.identity import Actor

EVERY_S = 1.0
"""From that long a wait on, a row so often; healthy steps have none."""

LONG_S = 60.0
LATER_EVERY_S = 3.0
"""After a minute. Less than the 5 s without a row after which a rank counts as silent."""

DETECTOR = "wait"
PENDING = "pending"
"""It waits in a collective."""

ROOM = "room"
"""It waits at the staleness bound, until other cohorts have folded more; the analyzer's G3 knows the word."""


class WaitRows:
    """One member's waits, and when to tell of them again.

    Args:
        clock_s: steady, seconds.
    """

    def __init__(
        self, actor: Actor, recorder: Recorder, clock_s: Callable[[], float] = time.monotonic
    ) -> None:
        self._actor = actor
        self._recorder = recorder
        self._clock_s = clock_s
        self._began_s: float | None = None
        self._next_s = 0.0
        self._signal = PENDING

    def begin(self, signal: str = PENDING) -> None:
        """The member waits for a collective from now on, if it did not before.

        Args:
            signal: ``ROOM`` where it waits for that instead.
        """
        if self._began_s is None:
            self._signal = signal
            self._began_s = self._clock_s()
            self._next_s = self._began_s + EVERY_S

    def end(self) -> None:
        """It has completed, or another view gave it up."""
        self._began_s = None

    @guarded()
    def look(self) -> None:
        """A row, if one is due: seconds waited so far. Never blocks."""
        if self._began_s is None or (now_s := self._clock_s()) < self._next_s:
            return
        waited_s = now_s - self._began_s
        every_s = EVERY_S if waited_s < LONG_S else LATER_EVERY_S
        # From when it was due: who is woken every second would else miss every other row.
        self._next_s = max(self._next_s + every_s, now_s + every_s / 2)
        self._recorder.row(
            Health,
            detector=DETECTOR,
            signal=self._signal,
            subject_rank=self._actor.rank,
            subject_incarnation=self._actor.incarnation,
            value=waited_s,
            threshold=None,
            unit="s",
            fault=None,
        )
