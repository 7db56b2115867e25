"""Looks at a large run that nobody waits for: one at a time, each in a thread."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from dashboard.tiles.background import in_background

SYNC_ROWS = 1_000_000
"""Of a run with more rows nobody waits for a look: it is taken in a thread."""

RETRY_S = 30.0
"""After a look that failed."""

_log = logging.getLogger(__name__)


class BackgroundLook:
    """Takes looks in a thread, never two at once.

    Args:
        name: of the thread.
        about: what is looked at, for the log.

    Attributes:
        generation: grows with each look that ended, failed or not.
    """

    def __init__(self, name: str, about: str) -> None:
        self._name = name
        self._about = about
        self._thread: threading.Thread | None = None
        self.generation = 0

    @property
    def was_begun(self) -> bool:
        """Whether there ever was one."""
        return self._thread is not None

    @property
    def is_going_on(self) -> bool:
        """Whether one is being taken now."""
        return self._thread is not None and self._thread.is_alive()

    def wait(self, timeout_s: float) -> None:
        """Wait for one that is being taken, so long at most."""
        if self._thread is not None:
            self._thread.join(timeout_s)

    def begin(self, look: Callable[[], None], failed: Callable[[], None]) -> bool:
        """Take a look; False, and nothing is done, while another is being taken.

        Args:
            look: the work.
            failed: called when the work raised; the error is in the log.
        """
        if self.is_going_on:
            return False
        self._thread = threading.Thread(
            target=self._try, args=(look, failed), name=self._name, daemon=True
        )
        self._thread.start()
        return True

    def _try(self, look: Callable[[], None], failed: Callable[[], None]) -> None:
        try:
            with in_background():
                look()
        except Exception:
            failed()
            _log.exception("%s could not be looked at", self._about)
        self.generation += 1
