"""How long to wait after a failure: exponential, with full jitter."""

from __future__ import annotations

from collections.abc import Callable

SHORTEST_S = 0.1
LONGEST_S = 10.0
LONGEST_ASKED_S = 60.0
"""More than this a collector's ``Retry-After`` is not followed: it may be a mistake."""


class Backoff:
    """Counts failures in a row.

    Args:
        chance: gives a number from 0 up to 1, like ``random.random``.
    """

    def __init__(self, chance: Callable[[], float]) -> None:
        self._chance = chance
        self._failures = 0

    def failed(self, asked_s: float | None = None) -> float:
        """Seconds to wait now. ``asked_s``: what the collector asked for; never less than that."""
        ceiling = min(LONGEST_S, SHORTEST_S * 2.0 ** min(self._failures, 16))
        self._failures += 1
        return max(self._chance() * ceiling, min(asked_s or 0.0, LONGEST_ASKED_S))

    def worked(self) -> None:
        """Start anew."""
        self._failures = 0
