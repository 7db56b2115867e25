"""Of all rows of a key the one that is first."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

Row = dict[str, Any]
Rank = tuple[Any, ...]


class Firsts:
    """Of all rows of a key the one that is first."""

    def __init__(self, key: Callable[[Row], Rank], order: Callable[[Row], Rank]) -> None:
        self._key = key
        self._order = order
        self._found: dict[Rank, tuple[Rank, Row]] = {}

    def put(self, row: Row) -> None:
        """Take a row."""
        key, order = self._key(row), self._order(row)
        known = self._found.get(key)
        if known is None or order < known[0]:
            self._found[key] = (order, row)

    def sorted_by(self, *names: str) -> list[Row]:
        """The rows, null last."""
        return sorted(
            (row for _, row in self._found.values()), key=lambda row: _in_order(row, names)
        )

    def cut(self, num: int, *names: str) -> list[Rank]:
        """Keep the first so many of that order when there are twice as many; the keys that went."""
        if len(self._found) < 2 * num:
            return []
        gone = [self._key(row) for row in self.sorted_by(*names)[num:]]
        self.drop(gone)
        return gone

    def drop(self, keys: Iterable[Rank]) -> None:
        """Forget these, where they are known."""
        for key in keys:
            self._found.pop(key, None)

    def get(self, key: Rank) -> Row | None:
        """The row of a key."""
        found = self._found.get(key)
        return None if found is None else found[1]


def _in_order(row: Row, names: Iterable[str]) -> Rank:
    """Null last."""
    return tuple((row[name] is None, "" if row[name] is None else row[name]) for name in names)
