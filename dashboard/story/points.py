"""Where an actor's (epoch, regime) is seen to change, in the tables that have few rows."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from collector.schema.arrow import arrow_schema

POINT_TABLES = ("actors", "groups", "objects", "transitions", "debt", "membership", "decisions")

_COLUMNS = ("rank", "incarnation", "seq", "group_id", "epoch", "regime", "wall_ns")
_EACH = " UNION ALL ".join(
    f"SELECT {', '.join(_COLUMNS)} FROM {table} "  # noqa: S608
    "WHERE regime IS NOT NULL AND epoch IS NOT NULL"
    for table in POINT_TABLES
)
POINTS = f"""
WITH points AS ({_EACH}),
changes AS (
    SELECT *, lag((epoch, regime)) OVER life AS was,
        max(seq) OVER (PARTITION BY rank, incarnation, group_id) AS upto
    FROM points WINDOW life AS (PARTITION BY rank, incarnation, group_id ORDER BY seq)
)
SELECT {", ".join(_COLUMNS)}, upto FROM changes
WHERE was IS DISTINCT FROM (epoch, regime)
"""  # noqa: S608
"""``upto``: the highest seq of the actor in the group."""

_SORTED = [(name, "ascending") for name in ("group_id", "rank", "incarnation", "seq")]


class TooLate(Exception):
    """Rows came that lie before others which are known already: all of them must be read again."""


class Points:
    """Changes in the order of each actor's rows. Rows that are the same as those before are not kept."""

    columns = _COLUMNS

    def __init__(self) -> None:
        schema = arrow_schema("actors")
        fields = [schema.field(name) for name in _COLUMNS]
        self._known = pa.schema(fields).empty_table()
        self._upto: dict[tuple[Any, ...], tuple[int, tuple[int, str]]] = {}
        """By actor and group: the last row's seq, and what it says."""

    def add(self, rows: pa.Table) -> None:
        """Rows of any of the tables, or the changes with ``upto``.

        Raises:
            TooLate: nothing here may be used any more.
        """
        rows = rows.filter(pc.and_(pc.is_valid(rows["regime"]), pc.is_valid(rows["epoch"])))
        rows = _sorted(rows)
        upto = rows["upto" if "upto" in rows.column_names else "seq"].to_pylist()
        names = ("rank", "incarnation", "group_id", "seq", "epoch", "regime")
        columns = (rows[name].to_pylist() for name in names)
        keep = []
        is_first = not self._upto
        for at, (*actor, seq, epoch, regime) in enumerate(zip(*columns, strict=True)):
            key, says = tuple(actor), (epoch, regime)
            last, said = self._upto.get(key, (-1, None))
            if seq <= last and not is_first:
                raise TooLate
            if said != says:
                keep.append(at)
            self._upto[key] = (max(last, upto[at]), says)
        fresh = rows.select(_COLUMNS).take(pa.array(keep, pa.int64())).cast(self._known.schema)
        self._known = _sorted(pa.concat_tables([self._known, fresh])).combine_chunks()

    def rows(self) -> pa.Table:
        """By (group, rank, incarnation, seq)."""
        return self._known


def _sorted(rows: pa.Table) -> pa.Table:
    """In this thread: ``Table.sort_by`` hands the work to others, and waits for each."""
    return rows.take(pc.sort_indices(rows, sort_keys=_SORTED))
