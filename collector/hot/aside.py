"""Where a recovery puts damaged files: ``DATA/damaged/<time>/``, under the path that they had."""

from __future__ import annotations

import time
from pathlib import Path

from collector.trace.durable import sync_folder

DAMAGED = "damaged"
_UNFINISHED = "unfinished"


class Aside:
    """Moves files away and says which.

    Args:
        data: the data folder.

    Attributes:
        kept: the files moved, where they are now.
        goes_on: an earlier recovery was cut short, so what it moved is to be reckoned with.
    """

    def __init__(self, data: Path) -> None:
        self._data = data
        self._folder = data / DAMAGED / time.strftime("%Y%m%d-%H%M%S")
        self.kept: list[str] = []
        self.goes_on = is_unfinished(data)

    def move(self, file: Path) -> None:
        """Move a file away, if it is there."""
        if not file.exists():
            return
        target = self._folder / file.relative_to(self._data)
        number = 0
        while target.exists():
            number += 1
            target = target.with_name(f"{file.name}.{number}")
        target.parent.mkdir(parents=True, exist_ok=True)
        (self._folder / _UNFINISHED).touch()
        # The mark is durable before the file goes: else a power failure hides that rows were lost.
        self._sync(target.parent)
        file.rename(target)
        sync_folder(target.parent)
        sync_folder(file.parent)
        self.kept.append(str(target))

    def finish(self) -> None:
        """All that follows from the loss is stored."""
        for mark in (self._data / DAMAGED).glob(f"*/{_UNFINISHED}"):
            mark.unlink()
            sync_folder(mark.parent)

    def _sync(self, folder: Path) -> None:
        """A folder's own name is in the one above it, so all of them up to the data folder."""
        for above in (folder, *folder.parents):
            sync_folder(above)
            if above == self._data:
                return


def is_unfinished(data: Path) -> bool:
    """True when a recovery of this data folder was cut short."""
    return any((data / DAMAGED).glob(f"*/{_UNFINISHED}"))
