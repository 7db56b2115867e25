"""The completions that a group of batches brings, so that none is taken twice."""

from __future__ import annotations

from collector.doorway import CollectiveKey
from collector.hot.scanned import Completions


class DoneKeys:
    """A set of collectives. Those of batches that were scanned become keys when somebody asks.

    Nearly always nobody does: their rows are new, and so are their completions.
    """

    def __init__(self) -> None:
        self._keys: set[CollectiveKey] = set()
        self._scanned: list[tuple[str, Completions]] = []
        self._has_records = False

    def add(self, key: CollectiveKey) -> None:
        """Add a completion that came as a record."""
        self._has_records = True
        self._keys.add(key)

    def add_scanned(self, run_id: str, completions: Completions) -> None:
        """Add those of a batch."""
        self._keys.update((run_id, *place) for place in completions.before)
        if completions.here.size:
            self._scanned.append((run_id, completions))

    def add_all(self, other: DoneKeys) -> None:
        """Add those of another set."""
        self._keys |= other._keys
        self._scanned += other._scanned
        self._has_records |= other._has_records

    def __contains__(self, key: CollectiveKey) -> bool:
        self._list()
        return key in self._keys

    def has_any(self, run_id: str, completions: Completions) -> bool:
        """Whether one of a batch is among them.

        Args:
            run_id: the batch's run.
            completions: of the batch, whose rows are all new: a row that it enters can only have been
                completed by a record that came before its row.
        """
        if any((run_id, *place) in self._keys for place in completions.before):
            return True
        places = zip(*completions.here.tolist(), strict=True) if self._has_records else ()
        return any((run_id, *place) in self._keys for place in places)

    def _list(self) -> None:
        for run_id, completions in self._scanned:
            places = zip(*completions.here.tolist(), strict=True)
            self._keys.update((run_id, *place) for place in places)
        self._scanned = []
