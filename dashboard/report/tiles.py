"""The busy lanes of a whole run in as many columns as are asked for."""

from __future__ import annotations

from typing import Any

import msgspec

from dashboard.story.model import Story
from dashboard.tiles import RunTiles
from dashboard.tiles.content import LANES

COLUMNS = (8192, 4096, 2048, 1024, 512, 256)
"""Finest first."""


def tiles_of_run(tiles: RunTiles, story: Story, num: int) -> tuple[dict[str, Any], bytes]:
    """What the tile route answers for the whole run: its head and its layers' bytes."""
    body = tiles.tile(0, max(1, story.t1_ns), num, LANES, story.ranks)
    length = int.from_bytes(body[:4], "little")
    head: dict[str, Any] = msgspec.json.decode(body[4 : 4 + length])
    return head, body[4 + length :]
