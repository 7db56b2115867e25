"""The few rows that a story is told from: who took part, walks, views, debts, faults, gaps.

Rows that every member writes of one thing are made one in SQL: with many ranks they are many.
"""

from __future__ import annotations

from typing import Any

import msgspec
import pyarrow as pa

from cascade_runtime.vocabulary.schema import EVENT_TABLES
from dashboard.story.source import RunSource

MAX_FAULTS = 20_000
MAX_GAPS = 2_000
MAX_DEBTS = 20_000

Row = dict[str, Any]

_NUMBER = "rank, incarnation, seq"

_ACTORS = """
SELECT rank, incarnation, any_value(kind ORDER BY seq) AS kind, any_value(host ORDER BY seq) AS host,
    any_value(name ORDER BY seq) AS name, bool_or(device_uuid IS NOT NULL) AS has_device,
    count(*)::BIGINT AS num
FROM actors GROUP BY rank, incarnation ORDER BY rank, incarnation
"""
_WALKS = f"""
SELECT group_id, coalesce(new_epoch, epoch) AS epoch, wall_ns, rank, from_regime, to_regime, fault,
    reason, list_sort(list_distinct(coalesce(members, []))) AS members, cohorts, proposer
FROM transitions
WHERE phase = 'committed' AND coalesce(new_epoch, epoch) IS NOT NULL
QUALIFY row_number() OVER (
    PARTITION BY group_id, coalesce(new_epoch, epoch), list_sort(list_distinct(coalesce(members, [])))
    ORDER BY coalesce(proposer.rank = rank AND proposer.incarnation = incarnation, false) DESC,
        {_NUMBER}
) = 1
ORDER BY group_id, 2, {_NUMBER}
"""  # noqa: S608
_VIEWS = f"""
SELECT group_id, list_sort(list_distinct(members)) AS members
FROM membership WHERE len(members) > 0
QUALIFY row_number() OVER (PARTITION BY group_id ORDER BY coalesce(epoch, 0), {_NUMBER}) = 1
ORDER BY group_id
"""  # noqa: S608
_CHANGES = f"""
WITH told AS (
    SELECT 'departed' AS what, unnest(departed) AS actor, group_id, epoch, wall_ns, reason, {_NUMBER}
    FROM membership
    UNION ALL
    SELECT 'joined', unnest(joined), group_id, epoch, wall_ns, reason, {_NUMBER} FROM membership
)
SELECT what, actor.rank AS rank, actor.incarnation AS incarnation, group_id, epoch, wall_ns, reason
FROM told
WHERE actor IS NOT NULL
QUALIFY row_number() OVER (
    PARTITION BY what, actor, group_id, epoch ORDER BY wall_ns, told.rank, told.incarnation
) = 1
ORDER BY wall_ns, rank, incarnation
"""  # noqa: S608
_DEBTS = f"""
WITH first AS (
    SELECT *, coalesce(debt_id, concat('unnamed ', rank, ':', incarnation, ':', seq)) AS id
    FROM debt
),
opened AS (
    SELECT * FROM first WHERE action = 'opened'
    QUALIFY row_number() OVER (PARTITION BY id ORDER BY {_NUMBER}) = 1
),
closed AS (
    SELECT * FROM first WHERE action IN ('settled', 'written_off')
    QUALIFY row_number() OVER (PARTITION BY id ORDER BY {_NUMBER}) = 1
)
SELECT o.id, o.group_id, o.relaxed, o.object, coalesce(o.new_epoch, o.epoch) AS epoch,
    o.wall_ns AS opened_ns, c.wall_ns AS closed_ns, c.action AS fate, c.resolution,
    coalesce(len(o.in_flight), 0) AS num_in_flight, o.in_flight[1:3] AS in_flight,
    c.drift_l2, c.drift_max, o.rank
FROM opened AS o LEFT JOIN closed AS c USING (id)
ORDER BY opened_ns, o.rank, o.seq
LIMIT {MAX_DEBTS}
"""  # noqa: S608
_FAULTS = f"""
SELECT wall_ns, coalesce(subject_rank, rank) AS rank, epoch, group_id, fault, signal, value, unit,
    CASE WHEN subject_rank IS NULL THEN incarnation ELSE coalesce(subject_incarnation, 0) END
        AS incarnation
FROM health WHERE fault IS NOT NULL ORDER BY wall_ns LIMIT {MAX_FAULTS}
"""  # noqa: S608
_GAPS = f"""
SELECT rank, incarnation, wall_ns, num_events, reason FROM gaps ORDER BY wall_ns, rank LIMIT {MAX_GAPS}
"""  # noqa: S608

_TABLES = ("actors", "groups", "objects", "transitions", "debt", "membership", "decisions")
_EACH = " UNION ALL ".join(
    f"SELECT {_NUMBER}, group_id, epoch, regime, wall_ns FROM {table} "  # noqa: S608
    "WHERE regime IS NOT NULL AND epoch IS NOT NULL"
    for table in _TABLES
)
_POINTS = f"""
WITH points AS ({_EACH}),
changes AS (
    SELECT *, lag((epoch, regime)) OVER (PARTITION BY rank, incarnation, group_id ORDER BY seq) AS was
    FROM points
)
SELECT rank, incarnation, group_id, epoch, regime, wall_ns FROM changes
WHERE was IS DISTINCT FROM (epoch, regime)
ORDER BY group_id, rank, incarnation, seq
"""  # noqa: S608
"""Where an actor's (epoch, regime) is seen to change, in the tables that have few rows."""


class SmallRows(msgspec.Struct, kw_only=True):
    """What was read; ``points`` stays in columns.

    Attributes:
        counts: rows of each event table that has any.
    """

    counts: dict[str, int]
    actors: list[Row]
    walks: list[Row]
    views: list[Row]
    changes: list[Row]
    debts: list[Row]
    faults: list[Row]
    gaps: list[Row]
    points: pa.Table


_PARTS: dict[str, tuple[str, tuple[str, ...]]] = {
    "actors": (_ACTORS, ("actors",)),
    "walks": (_WALKS, ("transitions",)),
    "views": (_VIEWS, ("membership",)),
    "changes": (_CHANGES, ("membership",)),
    "debts": (_DEBTS, ("debt",)),
    "faults": (_FAULTS, ("health",)),
    "gaps": (_GAPS, ("gaps",)),
    "points": (_POINTS, _TABLES),
}
"""Each part's statement, and the tables that it reads."""

_EVERY = ", ".join(f"(SELECT count(*) FROM {t})::BIGINT AS {t}" for t in EVENT_TABLES)  # noqa: S608
_COUNTS = f"SELECT {_EVERY}"


def read_small_rows(
    source: RunSource, known: SmallRows | None = None, counts: dict[str, int] | None = None
) -> SmallRows:
    """Ask for what has changed since ``known``: rows are only ever added to a table.

    Args:
        source: the run.
        known: what was read before.
        counts: rows of each table that has any, when they are known already.
    """
    if counts is None:
        (counted,) = source.query_whole(_COUNTS).to_pylist()
        counts = {table: number for table, number in counted.items() if number}
    was = {} if known is None else known.counts
    parts: dict[str, Any] = {}
    for name, (sql, tables) in _PARTS.items():
        if known is not None and all(was.get(t, 0) == counts.get(t, 0) for t in tables):
            parts[name] = getattr(known, name)
        elif name == "points":
            parts[name] = source.query_whole(sql)
        else:
            empty = not any(t in counts for t in tables)
            parts[name] = [] if empty else source.query_whole(sql).to_pylist()
    return SmallRows(counts=counts, **parts)
