"""What a job says will happen next: ``story`` in its trace.json."""

from __future__ import annotations

from pathlib import Path

import msgspec

MAX_LINES = 50


class _WithStory(msgspec.Struct):
    story: list[str] = []


def plan_of(root: Path) -> list[str]:
    """The lines of ``story``; none where the job tells nothing, or nothing that is a list of texts."""
    try:
        data = (root / "trace.json").read_bytes()
        return msgspec.json.decode(data, type=_WithStory).story[:MAX_LINES]
    except (OSError, msgspec.MsgspecError, RecursionError):
        return []
