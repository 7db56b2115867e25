"""Exact numbers of a window of time, for the table beside the picture."""

from __future__ import annotations

from typing import Any

import numpy as np

from dashboard.story.facts import Facts
from dashboard.story.model import REGIME_CODES, Story
from dashboard.story.provisional_waits import ALL_WAIT

BEFORE_NS = 60_000_000_000
"""A wait that began longer before the window than this is not looked for."""

_WORDS = tuple(REGIME_CODES)


def window(facts: Facts, story: Story, a_ns: int, b_ns: int) -> dict[str, Any]:
    """Waits, regime shares and devices by rank between two times, in ns since t0.

    Seconds are clipped to the window. Shares are of the time in which anything is known.
    """
    a, b = facts.t0_ns + a_ns, facts.t0_ns + b_ns
    waited, caused = _waits(facts, a, b)
    held, whole = _regimes(story, a_ns, b_ns)
    gpu = _devices(facts, story, "gpu", a, b)
    cpu = _devices(facts, story, "cpu", a, b)
    return {
        "by_rank": [
            {
                "rank": rank,
                "waited_s": waited.get(rank, 0.0),
                "caused_s": caused.get(rank, 0.0),
                "regimes": _shares(held.get(rank, {})),
                "gpu_median": gpu.get(rank, (None, None))[0],
                "gpu_min": gpu.get(rank, (None, None))[1],
                "cpu_median": cpu.get(rank, (None, None))[0],
            }
            for rank in story.ranks
        ],
        "regime_share": _shares(whole),
        "source": None if story.waits is None else story.waits.source,
    }


def _regimes(
    story: Story, a_ns: int, b_ns: int
) -> tuple[dict[int, dict[int, int]], dict[int, int]]:
    """Time in each regime, by rank and in all."""
    regimes = story.regimes
    start = np.array(regimes.start_ns, dtype=np.int64)
    end = np.array(regimes.end_ns, dtype=np.int64)
    length = np.minimum(end, b_ns) - np.maximum(start, a_ns)
    by_rank: dict[int, dict[int, int]] = {}
    whole: dict[int, int] = {}
    for at in np.flatnonzero(length > 0).tolist():
        held, code = by_rank.setdefault(regimes.rank[at], {}), regimes.regime[at]
        held[code] = held.get(code, 0) + int(length[at])
        whole[code] = whole.get(code, 0) + int(length[at])
    return by_rank, whole


def _shares(held: dict[int, int]) -> dict[str, float]:
    whole = sum(held.values())
    return {_WORDS[code]: held[code] / whole for code in sorted(held)} if whole else {}


def _waits(facts: Facts, a: int, b: int) -> tuple[dict[int, float], dict[int, float]]:
    """Seconds waited and caused in the window, by rank."""
    entries = f"""
        entries AS (
            SELECT comm_id, cseq, rank, incarnation, op, completed,
                coalesce(start_ns, enter_ns, wall_ns) AS came
            FROM collectives WHERE wall_ns BETWEEN {a - BEFORE_NS} AND {b}
        )
    """  # noqa: S608  # numbers
    if facts.judged is not None:
        judged = """
            waits_here AS (
                SELECT e.rank, e.came, e.came + w.wait_ns AS until, w.root_rank AS cause
                FROM entries AS e JOIN waits AS w USING (comm_id, cseq, rank, incarnation)
            )
        """
    else:
        judged = f"""
            waits_here AS (
                SELECT rank, came, max(came) OVER whole AS until,
                    arg_max(rank, (came, -rank)) OVER whole AS cause
                FROM entries
                WHERE completed AND op IN ({ALL_WAIT})
                WINDOW whole AS (PARTITION BY comm_id, cseq)
            )
        """  # noqa: S608
    rows = facts.source.query(
        f"""
        WITH {entries}, {judged}
        SELECT rank, cause, sum(least(until, {b}) - greatest(came, {a})) / 1e9 AS wait_s
        FROM waits_here WHERE until > {a} AND came < {b} AND until > came
        GROUP BY rank, cause
        """  # noqa: S608
    )
    waited: dict[int, float] = {}
    caused: dict[int, float] = {}
    for row in rows.to_pylist():
        waited[row["rank"]] = waited.get(row["rank"], 0.0) + row["wait_s"]
        if row["cause"] is not None:
            caused[row["cause"]] = caused.get(row["cause"], 0.0) + row["wait_s"]
    return waited, caused


def _devices(
    facts: Facts, story: Story, which: str, a: int, b: int
) -> dict[int, tuple[float | None, float | None]]:
    """(median, minimum) of the samples in the window, by rank."""
    if story.measured[which]["state"] != "measured":
        return {}
    table = {
        "gpu": "SELECT rank, wall_ns, util_pct AS value FROM gpu_utilisation",
        "cpu": "SELECT subject_rank AS rank, wall_ns, value FROM health "
        "WHERE detector = 'cpu' AND signal = 'cpu_busy'",
    }[which]
    rows = facts.source.query(
        f"SELECT rank, median(value) AS middle, min(value) AS least FROM ({table}) "  # noqa: S608
        f"WHERE wall_ns BETWEEN {a} AND {b} AND value IS NOT NULL AND rank IS NOT NULL GROUP BY rank"
    )
    return {r["rank"]: (round(r["middle"], 1), round(r["least"], 1)) for r in rows.to_pylist()}
