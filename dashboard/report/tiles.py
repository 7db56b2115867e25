"""The busy lanes of a whole run in as many columns as are asked for."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np

from dashboard.report.columns import Columns
from dashboard.story.model import Story
from dashboard.tiles import RunTiles
from dashboard.tiles.content import LANES

COLUMNS = (8192, 4096, 2048, 1024, 512, 256)
"""Finest first."""


def tiles_of_run(tiles: RunTiles, story: Story, num: int) -> tuple[dict[str, Any], bytes]:
    """What the tile route answers for the whole run: its head and its layers' bytes."""
    body = tiles.tile(0, max(1, story.t1_ns), num, LANES, story.ranks, int(story.t0_ns))
    length = int.from_bytes(body[:4], "little")
    head: dict[str, Any] = msgspec.json.decode(body[4 : 4 + length])
    head["version"] = "report"
    return head, body[4 + length :]


STRETCHES = 256
"""Of a run: for each, every rank's seconds are held."""

SUM_CELLS = 131_072
"""Ranks times stretches, at most."""


def sums_of_run(tiles: RunTiles, story: Story) -> tuple[dict[str, Any], Columns]:
    """Microseconds waited and caused by each rank in equal stretches of the run.

    A lane's byte is rounded up, so that any wait is seen; sums of bytes would be too large.
    """
    num = max(1, min(STRETCHES, SUM_CELLS // max(1, len(story.ranks))))
    end = max(1, story.t1_ns)
    bounds = [end * n // num for n in range(num + 1)]
    found = np.zeros((2, len(story.ranks), num), dtype=np.int64)
    for n in range(num):
        stretch = bounds[n], max(bounds[n + 1], bounds[n] + 1)
        sums = tiles.window(*stretch, int(story.t0_ns)).by_rank
        for row, rank in enumerate(story.ranks):
            found[:, row, n] = [round(1e6 * s) for s in sums.get(rank, (0.0, 0.0))]
    columns = Columns()
    for name, values in zip(("waited", "caused"), found, strict=True):
        columns.add(name, values.reshape(-1), delta=False)
    return {"num": num, "columns": columns.head}, columns


def whole_sums(tiles: RunTiles, story: Story) -> list[list[float]]:
    """[rank, seconds waited, seconds caused] of the whole run."""
    sums = tiles.window(0, max(1, story.t1_ns), int(story.t0_ns)).by_rank
    return [[rank, *seconds] for rank, seconds in sums.items()]
