"""Scanned batches of a run that nobody has made columns of yet, and what they leave open."""

from __future__ import annotations

import numpy as np

from collector.hot.raw_rows import Raw
from collector.hot.scanned import PlaceKey
from collector.wire.batch import SCAN_BYTES
from collector.wire.scan_plan import DONE, TABLES


class RawWaiting:
    """The batches, oldest first. Whoever uses it holds the run's lock.

    Attributes:
        batches: the batches.
        num_rows: of them, completions left out.
        num_bytes: about what they take up.
    """

    def __init__(self) -> None:
        self._clear()

    def _clear(self) -> None:
        self.batches: list[Raw] = []
        self.num_rows = self.num_bytes = 0
        # What they leave open, and what they complete that was entered before them.
        self._open: set[PlaceKey] = set()
        self._done: set[PlaceKey] = set()

    def add(self, raw: Raw) -> None:
        """One more."""
        self.batches.append(raw)
        self.num_rows += raw.num_rows
        self.num_bytes += len(raw.body) + SCAN_BYTES * len(raw.scan.kinds)
        for place in raw.completions.before:
            if place in self._open:
                self._open.remove(place)
            else:
                self._done.add(place)
        self._open.update(raw.completions.left_open)

    def forget(self, num: int) -> None:
        """The first batches are rows now; what the others open and complete is seen anew."""
        left = self.batches[num:]
        self._clear()
        for raw in left:
            self.add(raw)

    def leaves_open(self, place: PlaceKey) -> bool:
        """Whether a collective was entered here and has not completed."""
        return place in self._open

    def completes(self, place: PlaceKey) -> bool:
        """Whether the completion of one that was entered before is here."""
        return place in self._done

    def tables(self) -> set[str]:
        """The tables that they have rows of."""
        kinds = {int(kind) for raw in self.batches for kind in np.unique(raw.scan.kinds)}
        return {TABLES[kind] for kind in kinds} - {DONE}
