"""The statements that bring rows to the tiles, and their answers as arrays.

All tables come in one statement, so that one look at the store sees one state of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from analyzer.instances import N_TO_N, N_TO_ONE, ONE_TO_N
from cascade_runtime.vocabulary.schema import EVENT_TABLES
from cascade_runtime.vocabulary.trace_meta import TraceMeta
from collector.storage._interface import News
from dashboard.tiles.edges_native import Ints
from dashboard.tiles.source import RowSource

COLLECTIVES, GROUPS, GPU, CPU, COMPUTE, ACTORS = range(6)
"""What a row is, column ``what``."""

ROWS_A_PART = 2_000_000
"""Of a saved run that are read at a time."""

HOUR_NS = 3600 * 10**9
NONE = -1
"""A number that is null."""


def _listed(words: frozenset[str]) -> str:
    return ", ".join(f"'{word}'" for word in sorted(words))


_KIND = f"""CASE WHEN op IN ({_listed(N_TO_N)}) THEN 0 WHEN op IN ({_listed(ONE_TO_N)}) THEN 1
    WHEN op IN ({_listed(N_TO_ONE)}) THEN 2 END"""
_NUMBER = "rank, incarnation, seq, wall_ns"
_PARTS = {
    "collectives": f"""SELECT {COLLECTIVES} AS what, {_NUMBER}, comm_id, cseq, {_KIND} AS kind, root,
        coalesce(start_ns, enter_ns, wall_ns) AS begin_ns, complete_ns AS end_ns FROM collectives""",  # noqa: S608
    "groups": f"""SELECT {GROUPS} AS what, {_NUMBER}, comm_id, len(members) AS cseq FROM groups""",  # noqa: S608
    "gpu": f"SELECT {GPU} AS what, {_NUMBER}, util_pct AS value FROM gpu",  # noqa: S608
    "health": f"""SELECT {CPU} AS what, {_NUMBER}, value FROM health
        WHERE detector = 'cpu' AND signal = 'cpu_busy' AND unit = 'percent'""",  # noqa: S608
    "compute": f"SELECT {COMPUTE} AS what, {_NUMBER}, start_ns AS begin_ns, end_ns FROM compute",  # noqa: S608
    "actors": f"""SELECT {ACTORS} AS what, {_NUMBER}, CASE kind WHEN 'agent' THEN 1 ELSE 0 END AS kind
        FROM actors""",  # noqa: S608
}  # numbers and words of ours
_COLUMNS = """what::INTEGER AS what, r.rank::BIGINT AS rank, r.incarnation::BIGINT AS incarnation,
    seq::BIGINT AS seq, wall_ns::BIGINT AS wall_ns, comm_id, cseq::BIGINT AS cseq,
    kind::INTEGER AS kind, root::BIGINT AS root, begin_ns::BIGINT AS begin_ns,
    end_ns::BIGINT AS end_ns, value::DOUBLE AS value"""


class Rows(NamedTuple):
    """Rows of several tables, by column; -1 (NaN for ``value``, UNKNOWN for times) where null."""

    what: Ints
    rank: Ints
    incarnation: Ints
    seq: Ints
    wall_ns: Ints
    cseq: Ints
    kind: Ints
    root: Ints
    begin_ns: Ints
    end_ns: Ints
    value: npt.NDArray[np.float64]
    comm: Any
    """pyarrow strings."""

    def only(self, what: int) -> Rows:
        """The rows of one table."""
        return self.where(self.what == what)

    def and_all(self, others: Iterable[Rows]) -> Rows:
        """These rows and those."""
        every = [self, *others]
        columns: dict[str, Any] = {
            name: np.concatenate([getattr(rows, name) for rows in every])
            for name in self._fields[:-1]
        }
        chunks = [chunk for rows in every for chunk in _chunks(rows.comm)]
        return Rows(**columns, comm=pa.chunked_array(chunks, pa.string()).combine_chunks())

    def where(self, keep: npt.NDArray[np.bool_]) -> Rows:
        """Some of the rows."""
        some: dict[str, Any] = {name: getattr(self, name)[keep] for name in self._fields[:-1]}
        return Rows(**some, comm=self.comm.filter(pa.array(keep)))


UNKNOWN = np.iinfo(np.int64).min
"""A time that is null."""


def _chunks(words: Any) -> list[Any]:
    return list(words.chunks) if isinstance(words, pa.ChunkedArray) else [words]


def _statement(parts: list[str]) -> str:
    return " UNION ALL BY NAME ".join(parts)


def _rows(answer: Any) -> Rows:
    def ints(name: str, null: int) -> Ints:
        found: Ints = pc.fill_null(answer[name], null).to_numpy().astype(np.int64)
        return found

    columns: dict[str, Any] = {name: ints(name, NONE) for name in Rows._fields[:8]}
    columns |= {name: ints(name, int(UNKNOWN)) for name in ("begin_ns", "end_ns")}
    columns["value"] = pc.fill_null(answer["value"], np.nan).to_numpy()
    return Rows(**columns, comm=answer["comm_id"].combine_chunks())


def rows_beyond(
    source: RowSource,
    seen: Iterable[tuple[int, int, int]],
    missed: Iterable[tuple[int, int, int]],
    since: int | None,
) -> tuple[Rows, News]:
    """The rows of a run that grows beyond those that were read, and the news as of them.

    Collectives that have not completed are in the news alone.

    Args:
        source: the run.
        seen: (rank, incarnation, highest seq that was read); of other actors all rows come.
        missed: (rank, incarnation, seq) of rows up to there that were not read.
        since: wall clock of the earliest; any when not given.
    """
    bound = "" if since is None else f" AND wall_ns >= {since}"
    parts = _PARTS | {"collectives": f"{_PARTS['collectives']} WHERE {_CLOSED}"}
    answer, news = source.query_at(
        f"WITH seen(rank, incarnation, upto) AS (VALUES {_values(seen)}), "  # noqa: S608
        f"missed(rank, incarnation, mine) AS (VALUES {_values(missed)}), "
        f"r AS ({_statement(list(parts.values()))}) SELECT {_COLUMNS} FROM r LEFT JOIN seen AS s "
        "ON r.rank = s.rank AND r.incarnation = s.incarnation LEFT JOIN missed AS m "
        "ON r.rank = m.rank AND r.incarnation = m.incarnation AND r.seq = m.mine "
        f"WHERE (seq > coalesce(upto, -1) OR mine IS NOT NULL){bound}"
    )
    assert news is not None  # rows come
    rows, lost = _rows(answer), news.open()
    lost = lost.filter(pc.is_null(lost["completed"]))
    if lost.num_rows:  # open, though no column says so
        names = ("rank", "incarnation", "seq")
        keys = set(zip(*(lost[name].to_pylist() for name in names), strict=True))
        mine = zip(*(getattr(rows, name).tolist() for name in names), strict=True)
        rows = rows.where(np.fromiter((key not in keys for key in mine), np.bool_))
    return rows, news


def _values(keys: Iterable[tuple[int, int, int]]) -> str:
    return ", ".join(f"({r}, {i}, {s})" for r, i, s in keys) or "(-1, -1, -1)"


_CLOSED = "(done_seq IS NOT NULL OR completed IS DISTINCT FROM false)"
"""Of a live run: what is at an end, as far as the row says."""


def parts_of_saved(source: RowSource, *, collectives: bool) -> Iterator[tuple[float, Rows]]:
    """All rows of a run that does not grow: (share read, rows), in parts of time.

    Args:
        source: the run.
        collectives: the collectives and groups too.
    """
    tables = ["gpu", "health", "compute", "actors"]
    if collectives:
        yield 0.0, _rows(source.query(f"SELECT {_COLUMNS} FROM ({_nulls()}) AS r"))  # noqa: S608
        tables.append("collectives")
    sizes = " UNION ALL ".join(
        f"SELECT count(*) AS n, min(wall_ns) AS a, max(wall_ns) AS b FROM {table}"  # noqa: S608
        for table in tables
    )
    answer = source.query(f"SELECT sum(n)::BIGINT AS n, min(a) AS a, max(b) AS b FROM ({sizes})")  # noqa: S608
    num, first, last = (answer[name][0].as_py() for name in ("n", "a", "b"))
    if not num:
        return
    num_parts = -(-num // ROWS_A_PART)
    cuts = [first + (last + 1 - first) * i // num_parts for i in range(num_parts + 1)]
    union = f"{_statement([_PARTS[table] for table in tables])} UNION ALL BY NAME {_nulls('false')}"
    for i, (a, b) in enumerate(pairwise(cuts)):
        inside = f"wall_ns >= {a} AND wall_ns < {b}"
        sql = f"SELECT {_COLUMNS} FROM ({union}) AS r WHERE {inside}"  # noqa: S608
        yield (i + 1) / num_parts, _rows(source.query(sql))


def _nulls(where: str = "true") -> str:
    """The groups, with every column there is."""
    return (
        f"SELECT *, NULL AS kind, NULL AS root, NULL AS begin_ns, NULL AS end_ns, NULL AS value "  # noqa: S608
        f"FROM ({_PARTS['groups']}) WHERE {where}"
    )


def first_ns(source: RowSource) -> int | None:
    """Wall clock of the run's first row."""
    each = " UNION ALL ".join(f"SELECT min(wall_ns) AS a FROM {table}" for table in EVENT_TABLES)  # noqa: S608
    found: int | None = source.query(f"SELECT min(a) AS a FROM ({each})")["a"][0].as_py()  # noqa: S608
    return found


def last_ns(source: RowSource) -> int | None:
    """Wall clock of the run's last row."""
    each = " UNION ALL ".join(f"SELECT max(wall_ns) AS a FROM {table}" for table in EVENT_TABLES)  # noqa: S608
    found: int | None = source.query(f"SELECT max(a) AS a FROM ({each})")["a"][0].as_py()  # noqa: S608
    return found


def t0_of(meta: TraceMeta, first: int) -> int:
    """The wall clock that times count from: the job's start where it is known, else the first row."""
    fits = meta.mode != "imported" and 0 <= first - meta.created_ns <= HOUR_NS
    return meta.created_ns if fits else first


def run_t0(source: RowSource) -> int:
    """The wall clock that a run's times count from, everywhere."""
    meta, first = source.meta(), first_ns(source)
    return t0_of(meta, meta.created_ns if first is None else first)


def judged_parts(source: RowSource) -> Iterator[tuple[float, Any]]:
    """(share read, waits of some ranks: rank, incarnation, begin_ns, wait_ns, by; in their order)."""
    counts = source.query(
        "SELECT rank::BIGINT AS rank, count(*)::BIGINT AS n FROM waits WHERE wait_ns > 0 "
        "GROUP BY rank ORDER BY rank"
    )
    ranks, num = counts["rank"].to_pylist(), counts["n"].to_pylist()
    total, done, begin = sum(num), 0, 0
    while begin < len(ranks):
        end, size = begin, 0
        while end < len(ranks) and (end == begin or size + num[end] <= ROWS_A_PART):
            size += num[end]
            end += 1
        inside = f"BETWEEN {ranks[begin]} AND {ranks[end - 1]}"
        done, begin = done + size, end
        yield done / total, source.query(_JUDGED.format(inside=inside))


_JUDGED = """
SELECT c.rank::BIGINT AS rank, c.incarnation::BIGINT AS incarnation,
    coalesce(c.start_ns, c.enter_ns, c.wall_ns)::BIGINT AS begin_ns, w.wait_ns,
    coalesce(w.root_rank, -1)::BIGINT AS by
FROM (SELECT * FROM collectives WHERE rank {inside}) AS c
JOIN (SELECT * FROM waits WHERE rank {inside} AND wait_ns > 0) AS w
    ON c.rank = w.rank AND c.incarnation = w.incarnation AND c.comm_id = w.comm_id
    AND c.cseq = w.cseq
"""
