"""Looks into a trace folder without ever leaving it: symlinks that point out are not followed."""

from __future__ import annotations

from pathlib import Path

from cascade_runtime.vocabulary.ports import SourceNote


class Inside:
    """The files and folders of one trace.

    Args:
        root: the trace folder; it may itself be reached by a symlink, that is the caller's choice.
    """

    def __init__(self, root: Path) -> None:
        self.root = root.resolve()
        self.notes: list[SourceNote] = []

    def name(self, path: Path) -> str:
        """The path as seen from the trace."""
        return path.relative_to(self.root).as_posix()

    def path(self, *parts: str) -> Path:
        """A path inside the trace."""
        return self.root.joinpath(*parts)

    def files(self, folder: Path, suffix: str = "") -> list[Path]:
        """Regular files of a folder by name; hidden ones (being written) are left out."""
        return [
            path
            for path in self._entries(folder)
            if path.name.endswith(suffix) and path.is_file() and self.holds(path)
        ]

    def folders(self, folder: Path) -> list[Path]:
        """Folders of a folder by name; hidden ones are left out."""
        return [path for path in self._entries(folder) if path.is_dir() and self.holds(path)]

    def holds(self, path: Path) -> bool:
        """True when the path stays inside the trace; noted when it does not."""
        if path.resolve().is_relative_to(self.root):
            return True
        note = SourceNote(where=self.name(path), what="a symlink out of the trace, not followed")
        if note not in self.notes:
            self.notes.append(note)
        return False

    def _entries(self, folder: Path) -> list[Path]:
        if not folder.is_dir() or not self.holds(folder):
            return []
        return sorted(path for path in folder.iterdir() if not path.name.startswith("."))
