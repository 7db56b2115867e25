"""Exact numbers of a window of time, for the table beside the picture."""

from __future__ import annotations

from typing import Any

import numpy as np

from dashboard.story.facts import Facts
from dashboard.story.model import REGIME_CODES, Story
from dashboard.story.sample_keeper import CPU_SAMPLE
from dashboard.tiles.run_tiles import WindowSums

_WORDS = tuple(REGIME_CODES)


def window(
    facts: Facts, story: Story, waits: WindowSums, a_ns: int, b_ns: int, group: str | None = None
) -> dict[str, Any]:
    """Waits, regime shares and devices by rank between two times, in ns since t0.

    Seconds are those of the lanes, clipped to the window; null where waits were not measured. Shares
    are of the time in which anything is known, in one group.

    Args:
        facts: what is known of the run.
        story: told from them.
        waits: of the same window.
        a_ns: where it begins.
        b_ns: where it ends.
        group: shown name of the group that regimes are of; where there is none
            of that name ``world``, else the first.
    """
    shown = group if group in story.groups else _default_group(story.groups)
    held, whole = _regimes(story, shown, a_ns, b_ns)
    a, b = facts.t0_ns + a_ns, facts.t0_ns + b_ns
    gpu = _devices(facts, story, "gpu", a, b)
    cpu = _devices(facts, story, "cpu", a, b)
    measured = story.measured["waits"]["state"] == "measured"
    nothing = (0.0, 0.0) if measured else (None, None)
    sums = waits.by_rank if measured else {}
    return {
        "group": shown,
        "by_rank": [
            {
                "rank": rank,
                "waited_s": sums.get(rank, nothing)[0],
                "caused_s": sums.get(rank, nothing)[1],
                "regimes": _shares(held.get(rank, {})),
                "gpu_median": gpu.get(rank, (None, None))[0],
                "gpu_min": gpu.get(rank, (None, None))[1],
                "cpu_median": cpu.get(rank, (None, None))[0],
            }
            for rank in story.ranks
        ],
        "regime_share": _shares(whole),
        "source": waits.kind if measured else None,
        "waits_upto_ns": waits.upto_ns,
        "building": None if waits.building is None else waits.building._asdict(),
    }


def _default_group(groups: list[str]) -> str | None:
    return "world" if "world" in groups else next(iter(groups), None)


def _regimes(
    story: Story, group: str | None, a_ns: int, b_ns: int
) -> tuple[dict[int, dict[int, int]], dict[int, int]]:
    """Time in each regime, by rank and in all."""
    spans = story.regimes.spans
    by_rank: dict[int, dict[int, int]] = {}
    whole: dict[int, int] = {}
    if group not in spans.groups:
        return by_rank, whole
    length = np.minimum(spans.end, b_ns) - np.maximum(spans.start, a_ns)
    at = np.flatnonzero((length > 0) & (spans.group == spans.groups.index(group)))
    if not len(at):
        return by_rank, whole
    rank, code, length = spans.rank[at], spans.regime[at], length[at]
    firsts = np.concatenate(([0], np.flatnonzero(np.diff(rank)) + 1))  # they are sorted by rank
    for held in range(len(_WORDS)):
        sums = np.add.reduceat(np.where(code == held, length, 0), firsts)
        for one, time_ns in zip(rank[firsts].tolist(), sums.tolist(), strict=True):
            if time_ns:
                by_rank.setdefault(one, {})[held] = time_ns
                whole[held] = whole.get(held, 0) + time_ns
    return by_rank, whole


def _shares(held: dict[int, int]) -> dict[str, float]:
    whole = sum(held.values())
    return {_WORDS[code]: held[code] / whole for code in sorted(held)} if whole else {}


def _devices(
    facts: Facts, story: Story, which: str, a: int, b: int
) -> dict[int, tuple[float | None, float | None]]:
    """(median, minimum) of the samples in the window, by rank."""
    if story.measured[which]["state"] != "measured":
        return {}
    table = {
        "gpu": "SELECT rank, wall_ns, util_pct AS value FROM gpu_utilisation",
        "cpu": "SELECT subject_rank AS rank, wall_ns, least(value, 100) AS value FROM health "  # noqa: S608
        f"WHERE {CPU_SAMPLE}",
    }[which]
    rows = facts.source.query(
        f"SELECT rank, median(value) AS middle, min(value) AS least FROM ({table}) "  # noqa: S608
        f"WHERE wall_ns BETWEEN {a} AND {b} AND value IS NOT NULL AND rank IS NOT NULL GROUP BY rank"
    )
    return {r["rank"]: (round(r["middle"], 1), round(r["least"], 1)) for r in rows.to_pylist()}
