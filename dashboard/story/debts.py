"""Debts: what was relaxed, and what became of it."""

from __future__ import annotations

from typing import Any

from dashboard.story.facts import Facts
from dashboard.story.model import Debt
from dashboard.story.names import GroupNames
from dashboard.story.words import count, plain


def debts_of(facts: Facts, names: GroupNames) -> list[Debt]:
    """All debts that were opened, in time."""
    return [
        Debt(
            id=plain(row["id"]),
            group=names(row["group_id"]),
            relaxed=row["relaxed"],
            object=plain(row["object"]) or None,
            epoch=row["epoch"],
            opened_ns=facts.since(row["opened_ns"]),
            closed_ns=None if row["closed_ns"] is None else facts.since(row["closed_ns"]),
            fate=row["fate"],
            resolution=row["resolution"],
            num_in_flight=row["num_in_flight"],
            drift_l2=row["drift_l2"],
            drift_max=row["drift_max"],
            rank=row["rank"],
            waits_for="" if row["fate"] else _waits_for(row),
        )
        for row in facts.rows.debts
    ]


def _waits_for(row: dict[str, Any]) -> str:
    """What an open debt waits for, in words."""
    number = row["num_in_flight"]
    if not number:
        about = f"of {plain(row['object'], 40)}" if row["object"] else "of every object"
        return f"rank {row['rank']} to settle it: the state {about}"
    named = [d for d in row["in_flight"] or () if d is not None]
    dots = ", ".join(f"{d['rank']}:{d['counter']}" for d in named)
    more = f" and {number - len(named):,} more" if number > len(named) else ""
    return f"the fate of {count(number, 'update')} in flight: {dots}{more}"
