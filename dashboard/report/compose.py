"""Makes the file of what was gathered, as fine as fits."""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec

from dashboard.report.gather import Gathered, Say
from dashboard.report.page import packed, page
from dashboard.report.regimes import columns_of, kept_of
from dashboard.report.states import states_of
from dashboard.report.tiles import COLUMNS, sums_of_run, tiles_of_run, whole_sums
from dashboard.story.model import Regimes, Story

MOST_BYTES = 2_000_000
"""What a file is to stay below; only a run of very many ranks does not."""

MOST_CELLS = 4_000_000
"""Ranks times columns of a lane, before it is looked whether they fit."""


class Composed(NamedTuple):
    """A report's text, and what is worth telling about it."""

    text: bytes
    story: Story
    columns: int
    column_ns: float
    merged_ns: int


def composed(found: Gathered, version: str, say: Say) -> Composed:
    """The report.

    Args:
        found: the run.
        version: of the distribution, told in the file.
        say: told what is being done.
    """
    say("packing the story", None)
    story = found.told.story
    kept = kept_of(story.regimes, story.t1_ns)
    names, regimes = columns_of(kept)
    state_head, states = states_of(found.told.facts, story, found.told.index)
    sum_head, sums = sums_of_run(found.tiles, story)
    blocks = {"regimes": regimes.body, "states": states.body, "sums": sums.body}
    head: dict[str, Any] = {
        "made_by": f"cascade-timelines {version}",
        # Versions differ from one making to the next; the same run is to make the same file.
        "story": msgspec.structs.replace(story, regimes=Regimes(), version="report"),
        "regimes": {
            "groups": names,
            "unit_ns": kept.unit_ns,
            "merged_ns": kept.merged_ns,
            "num_merged": len(story.regimes.rank) - len(kept.rows),
            "columns": regimes.head,
        },
        "states": state_head,
        "sums": sum_head,
        "wait_sums": whole_sums(found.tiles, story),
    }
    title = f"{story.run.name} - CASCADE Timelines"
    sentence = story.verdict.sentence
    without = len(page(title, sentence, blocks | {"story": msgspec.json.encode(head)}))
    for num in COLUMNS:
        if num != COLUMNS[-1] and num * len(story.ranks) > MOST_CELLS:
            continue
        say("packing the lanes", None)
        tiles, body = tiles_of_run(found.tiles, story, num)
        if num == COLUMNS[-1] or without + len(packed(body)) + 2000 <= MOST_BYTES:
            break
    head["tiles"] = tiles
    blocks |= {"tiles": body, "story": msgspec.json.encode(head)}
    return Composed(
        page(title, sentence, blocks), story, num, (tiles["b"] - tiles["a"]) / num, kept.merged_ns
    )
