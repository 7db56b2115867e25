"""What lies in a spool, by name."""

from __future__ import annotations

import contextlib
from pathlib import Path

from cascade_runtime.vocabulary.identity import Actor
from cascade_runtime.vocabulary.spool_format import ACTOR_DIR, SEGMENT_FILE


def actor_folders(spool: Path) -> list[tuple[Actor, Path]]:
    """The folders of actors in it; none when there is no spool."""
    with contextlib.suppress(FileNotFoundError):
        matches = ((ACTOR_DIR.fullmatch(path.name), path) for path in spool.iterdir())
        return [(Actor(int(m[1]), int(m[2])), path) for m, path in matches if m]
    return []


def segment_numbers(folder: Path) -> list[int]:
    """Of an actor's segments, lowest first; none when there is no such folder."""
    with contextlib.suppress(FileNotFoundError):
        matches = (SEGMENT_FILE.fullmatch(path.name) for path in folder.iterdir())
        return sorted(int(match[1]) for match in matches if match)
    return []


def bytes_left(spool: Path) -> int:
    """Size of the segments in a spool in bytes, those that were set aside as damaged not counted."""
    total = 0
    for _, folder in actor_folders(spool):
        for number in segment_numbers(folder):
            with contextlib.suppress(FileNotFoundError):
                total += (folder / f"{number}.seg").stat().st_size
    return total


def is_whole(spool: Path) -> bool:
    """Whoever has segments in here has the first one: nothing of theirs was taken out."""
    return all(
        numbers[0] == 0
        for _, folder in actor_folders(spool)
        if (numbers := segment_numbers(folder))
    )
