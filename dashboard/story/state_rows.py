"""What the state at a moment needs of rows: asked with bounds on time, so that few are read."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dashboard.story.activity import Key
from dashboard.story.facts import Facts
from dashboard.story.model import Story
from dashboard.story.sample_keeper import CPU_SAMPLE

EXACT_ROWS = 20_000_000
"""Of larger runs step and seq are as of the bucket that ended last (see activity)."""

LOOK_BACK_ROWS = 150_000
"""About so many rows before t are looked at for clocks and updates in flight."""

MAX_CLOCK = 64
SAMPLE_NS = 10_000_000_000
"""An older device sample says nothing about now."""

_BUSY_NS = 1_000_000_000

_PROGRESS, _CLOCK, _IN_FLIGHT = range(3)
"""What a row of the answer is."""


class Progress(NamedTuple):
    """How far an actor had come."""

    seq: int | None
    step: int | None


class Moment(NamedTuple):
    """What rows say of one moment, by actor.

    Attributes:
        progress: seq and step of the last row up to then.
        clocks: the newest update of each author that the actor had issued, applied or read.
        in_flight: how many of its updates somebody who is to have them had neither applied nor
            discarded; those that the author itself discarded are void.
    """

    progress: dict[Key, Progress]
    clocks: dict[Key, list[list[int]]]
    in_flight: dict[Key, int]


class Receiver(NamedTuple):
    """Who is to have the updates of a group that are issued from a moment on."""

    group: str
    rank: int
    since_ns: int


def rows_at(facts: Facts, wall_ns: int, receivers: list[Receiver]) -> Moment:
    """All of it in one statement: each costs a live store the same again.

    Args:
        facts: what is known of the run.
        wall_ns: the moment.
        receivers: members of each group who are there then.
    """
    found, begin = _progress_by_bucket(facts, wall_ns)
    moment = Moment(found, {}, {})
    parts = []
    if begin is not None and facts.num_rows <= EXACT_ROWS:
        parts.append(_progress_sql(facts, begin, wall_ns))
    if facts.rows.counts.keys() & {"updates", "reads"}:
        parts.append(_clocks_sql(facts, wall_ns))
    if receivers and "updates" in facts.rows.counts:
        parts.append(_in_flight_sql(facts, wall_ns, receivers))
    if not parts:
        return moment
    rows = facts.source.query(" UNION ALL ".join(f"({part})" for part in parts))
    columns = (rows[name].to_pylist() for name in ("what", "rank", "incarnation", "a", "b", "c"))
    for what, rank, incarnation, a, b, c in zip(*columns, strict=True):
        key = (rank, incarnation)
        if what == _PROGRESS:
            before = found.get(key, Progress(None, None))
            found[key] = Progress(_max(before.seq, a), _max(before.step, b))
        elif what == _CLOCK:
            moment.clocks.setdefault(key, []).append([a, b, c])
        else:
            moment.in_flight[key] = a
    for clock in moment.clocks.values():
        clock.sort(key=lambda dot: -dot[2])
        del clock[MAX_CLOCK:]
        clock.sort()
    return moment


def _progress_by_bucket(facts: Facts, wall_ns: int) -> tuple[dict[Key, Progress], int | None]:
    """From whole buckets before; and where the rows begin that tell the rest."""
    found: dict[Key, Progress] = {}
    begins = []
    for key, span in (facts.activity.spans if facts.activity is not None else {}).items():
        done = int(np.searchsorted(span.last, wall_ns, side="right"))
        if done:
            step = int(span.step[:done].max())
            found[key] = Progress(int(span.seq[:done].max()), step if step >= 0 else None)
        if done < len(span.first) and span.first[done] <= wall_ns:
            begins.append(int(span.first[done]))
    return found, min(begins, default=None)


def _progress_sql(facts: Facts, since: int, until: int) -> str:
    each = " UNION ALL ".join(
        f"SELECT rank, incarnation, seq, step FROM {table} "  # noqa: S608
        f"WHERE wall_ns BETWEEN {since} AND {until}"
        for table in facts.rows.counts
    )
    return f"""
        SELECT {_PROGRESS} AS what, rank, incarnation, max(seq) AS a, max(step) AS b,
            NULL::BIGINT AS c
        FROM ({each}) GROUP BY rank, incarnation
    """  # noqa: S608  # numbers and tables of the schema


def _clocks_sql(facts: Facts, wall_ns: int) -> str:
    known = f"{_within(facts, wall_ns)} AND counter IS NOT NULL AND origin_rank IS NOT NULL"
    names = "rank, incarnation, origin_rank, coalesce(origin_incarnation, 0) AS again, counter"
    return f"""
        SELECT {_CLOCK} AS what, rank, incarnation, origin_rank::BIGINT AS a, again::BIGINT AS b,
            max(counter) AS c
        FROM (
            SELECT {names} FROM updates WHERE action IN ('issued', 'applied') AND {known}
            UNION ALL
            SELECT {names} FROM reads WHERE {known}
        )
        GROUP BY rank, incarnation, origin_rank, again
    """  # noqa: S608


def _in_flight_sql(facts: Facts, wall_ns: int, receivers: list[Receiver]) -> str:
    values = ", ".join(f"({_text(r.group)}, {r.rank}, {r.since_ns})" for r in receivers)
    return f"""
        SELECT {_IN_FLIGHT} AS what, author AS rank, again AS incarnation,
            count(DISTINCT counter)::BIGINT AS a, NULL::BIGINT AS b, NULL::BIGINT AS c
        FROM (
            SELECT origin_rank AS author, coalesce(origin_incarnation, 0) AS again, counter, object,
                any_value(group_id) AS group_id, list(DISTINCT rank) AS knows,
                min(wall_ns) FILTER (action = 'issued') AS issued_ns,
                bool_or(action = 'discarded' AND rank = origin_rank) AS is_void
            FROM updates
            WHERE {_within(facts, wall_ns)} AND counter IS NOT NULL AND origin_rank IS NOT NULL
            GROUP BY author, again, counter, object
        ) AS dots
        JOIN (VALUES {values}) AS receivers(name, receiver, since_ns)
            ON dots.group_id = receivers.name AND since_ns <= issued_ns
        LEFT JOIN (
            SELECT object, arg_max(holders, wall_ns) AS holders FROM objects GROUP BY object
        ) AS held ON dots.object = held.object
        WHERE issued_ns IS NOT NULL AND NOT is_void AND NOT list_contains(knows, receiver)
            AND (holders IS NULL OR list_contains(holders, receiver))
        GROUP BY author, again
    """  # noqa: S608


def _text(words: str) -> str:
    """A text of the trace as SQL."""
    return "'" + words.replace("'", "''") + "'"


def devices_at(
    facts: Facts, story: Story, wall_ns: int
) -> tuple[dict[int, float], dict[int, float]]:
    """(GPU, CPU) utilisation in percent by rank: the last samples within ten seconds."""
    since = f"wall_ns BETWEEN {wall_ns - SAMPLE_NS} AND {wall_ns}"
    gpu: dict[int, float] = {}
    cpu: dict[int, float] = {}
    if story.measured["gpu"]["state"] == "measured":
        gpu = _by_rank(
            facts,
            "SELECT rank, arg_max(util_pct, wall_ns) AS value FROM gpu_utilisation "  # noqa: S608
            f"WHERE {since} AND util_pct IS NOT NULL GROUP BY rank",
        )
    if story.measured["cpu"]["state"] == "measured":
        cpu = _by_rank(
            facts,
            "SELECT subject_rank AS rank, least(arg_max(value, wall_ns), 100) AS value FROM health "  # noqa: S608
            f"WHERE {since} AND {CPU_SAMPLE} AND value IS NOT NULL "
            "AND subject_rank IS NOT NULL GROUP BY subject_rank",
        )
        cpu = cpu or _by_rank(facts, _busy(wall_ns))
    return gpu, cpu


def _busy(wall_ns: int) -> str:
    """Share of the last second that each rank was busy, from spans of work that importers know."""
    begin = wall_ns - _BUSY_NS
    return f"""
        SELECT rank, least(100, 100.0 * sum(
            least(end_ns, {wall_ns}) - greatest(start_ns, {begin})) / {_BUSY_NS}) AS value
        FROM compute WHERE start_ns < {wall_ns} AND end_ns > {begin} GROUP BY rank
    """  # noqa: S608


def _by_rank(facts: Facts, sql: str) -> dict[int, float]:
    return {row["rank"]: round(row["value"], 1) for row in facts.source.query(sql).to_pylist()}


def _within(facts: Facts, wall_ns: int) -> str:
    """The time before t that holds about LOOK_BACK_ROWS; all of it in small runs."""
    if facts.num_rows <= LOOK_BACK_ROWS:
        return f"wall_ns <= {wall_ns}"
    span = (facts.t1_ns - facts.t0_ns) * LOOK_BACK_ROWS // max(facts.num_rows, 1)
    return f"wall_ns BETWEEN {wall_ns - max(span, _BUSY_NS)} AND {wall_ns}"


def _max(a: int | None, b: int | None) -> int | None:
    known = [value for value in (a, b) if value is not None]
    return max(known, default=None)
