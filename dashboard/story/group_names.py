"""The groups of a run, by the names they are shown by."""

from __future__ import annotations

from dashboard.story.facts import Facts
from dashboard.story.names import GroupNames


def group_names(facts: Facts) -> GroupNames:
    """The names of all groups that hold a regime, walk or owe."""
    rows = facts.rows
    others = [row["group_id"] for part in (rows.walks, rows.debts) for row in part]
    return GroupNames([*rows.points["group_id"].unique().to_pylist(), *others])
