"""Questions that are being answered now; whoever works in the background gives way to them."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

LATELY_S = 10.0
"""A page that is open asks again within this time."""


class Asking:
    """Counts questions. The writer, the publisher and the converter let them go first for a moment.

    On a machine of few cores a question shares them, and the interpreter, with rows that come in as
    fast as senders can. Senders wait for their acknowledgment anyway, and the next commit takes more of
    them at once, so that a moment's wait costs little (docs/decisions/0017).

    Args:
        most_s: how long one step waits at most.
    """

    def __init__(self, most_s: float) -> None:
        self._most_s = most_s
        self._changed = threading.Condition()
        self._num_asking = 0
        self._last_s = float("-inf")

    @contextmanager
    def question(self) -> Iterator[None]:
        """Around the answering of one question."""
        with self._changed:
            self._num_asking += 1
        try:
            yield
        finally:
            with self._changed:
                self._num_asking -= 1
                self._last_s = time.monotonic()
                self._changed.notify_all()

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Around a question for whose answer nobody waits: nothing gives way to it.

        New rows are made ready for the next one all the same.
        """
        try:
            yield
        finally:
            self._last_s = time.monotonic()

    @property
    def lately(self) -> bool:
        """True while somebody asks or did so a short time ago."""
        return self._num_asking > 0 or time.monotonic() - self._last_s < LATELY_S

    def give_way(self) -> None:
        """Wait until nobody asks, but not for long: questions shall not stop what comes in."""
        if self._num_asking:
            with self._changed:
                self._changed.wait_for(lambda: not self._num_asking, self._most_s)
