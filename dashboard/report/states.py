"""How far each rank had come, at moments as far apart as the file has room for."""

from __future__ import annotations

from typing import Any

import numpy as np

from cascade_runtime.vocabulary.schema import EVENT_TABLES
from dashboard.report.columns import Columns
from dashboard.story.activity import Activity, look_at
from dashboard.story.facts import Facts
from dashboard.story.model import Story
from dashboard.story.state_index import StateIndex

MOMENTS = 512
CELLS = 262_144
"""Ranks times moments, at most; but no fewer than FEWEST moments."""

FEWEST = 16
EXACT_ROWS = 3_000_000
"""Smaller runs are looked at once more, in buckets of the distance between two moments."""

_SHORTEST_NS = 1_000_000


def states_of(facts: Facts, story: Story, index: StateIndex) -> tuple[dict[str, Any], Columns]:
    """Step and seq of every rank: ``rank_step`` and ``rank_seq``, moments in a row for each rank.

    -1 where nothing is known: before its first row, or a row without a step.
    """
    num = max(FEWEST, min(MOMENTS, CELLS // max(1, len(story.ranks))))
    activity, every_ns = _activity(facts, max(_SHORTEST_NS, -(-max(1, story.t1_ns) // num)))
    # Between two buckets everything before is known exactly, so all ranks are as of one moment.
    first_ns = -(facts.t0_ns % activity.bucket_ns)
    at = first_ns + np.arange((story.t1_ns - first_ns) // every_ns + 1, dtype=np.int64) * every_ns
    step = np.full((len(story.ranks), len(at)), -1, dtype=np.int64)
    seq = step.copy()
    for row, rank in enumerate(story.ranks):
        lives = sorted((a for a in story.actors if a.rank == rank), key=lambda a: a.first_ns)
        for life in lives:
            span = activity.spans.get((rank, life.incarnation))
            if span is None:
                continue
            order = np.argsort(span.last, kind="stable")
            done = np.searchsorted(span.last[order], facts.t0_ns + at, side="left")
            here = (at >= life.first_ns) & (done > 0)
            step[row, here] = np.maximum.accumulate(span.step[order])[done[here] - 1]
            seq[row, here] = np.maximum.accumulate(span.seq[order])[done[here] - 1]
    columns = Columns()
    for name, values in (("step", step), ("seq", seq)):
        columns.add(name, values.reshape(-1), delta=True)
    head = {
        "first_ns": first_ns,
        "every_ns": every_ns,
        "num": len(at),
        "groups_before": index.groups(min(-1, _first(story) - 1)),
        "columns": columns.head,
    }
    return head, columns


def _first(story: Story) -> int:
    return min((walk.at_ns for walk in story.walks), default=0)


def _activity(facts: Facts, every_ns: int) -> tuple[Activity, int]:
    """Rows by buckets, and a distance of moments that is a whole number of buckets.

    The story's own where they are fine enough, or the run is large.
    """
    known = facts.activity
    if known is not None and (known.bucket_ns <= every_ns or facts.num_rows > EXACT_ROWS):
        return known, -(-every_ns // known.bucket_ns) * known.bucket_ns
    tables = [table for table in EVENT_TABLES if table in facts.rows.counts]
    return Activity(look_at(facts.source, tables, every_ns).spans, every_ns), every_ns
