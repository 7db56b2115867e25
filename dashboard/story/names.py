"""Names of groups as they are shown: short, on one line, and still different from each other."""

from __future__ import annotations

from collections.abc import Iterable

from dashboard.story.words import plain

MAX_GROUP_CHARS = 80


class GroupNames:
    """Shown name of each group.

    Args:
        groups: as the trace names them.
    """

    def __init__(self, groups: Iterable[str]) -> None:
        self._shown: dict[str, str] = {}
        for group in sorted(set(groups)):
            self._add(group)

    def __call__(self, group: str) -> str:
        """The name shown for a group."""
        return self._shown[group] if group in self._shown else self._add(group)

    @property
    def shown(self) -> dict[str, str]:
        """Shown names by those of the trace."""
        return dict(self._shown)

    @property
    def all(self) -> list[str]:
        """Every group, by its shown name."""
        return sorted(self._shown.values())

    def _add(self, group: str) -> str:
        shown, number = plain(group, MAX_GROUP_CHARS), 1
        while shown in self._shown.values():
            number += 1
            shown = f"{plain(group, MAX_GROUP_CHARS - 8)}#{number}"
        self._shown[group] = shown
        return shown
