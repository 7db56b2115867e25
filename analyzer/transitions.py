"""Committed walks for the report: from, to, why, and who is missing."""

from __future__ import annotations

from analyzer.history import History
from analyzer.rows import LEVELS, REGIMES
from cascade_runtime.vocabulary.report import TransitionSummary


def transition_summaries(history: History) -> list[TransitionSummary]:
    """One entry a committed view, in order of group and epoch.

    ``missing`` are the members of the last view that was STRONG (the first view counts) which are
    not in this one: a climb to STRONG on a smaller view misses nobody any more.
    """
    rows = history.rows
    whole: dict[int, tuple[int, ...]] = {}
    found = []
    for walk in history.walks.walks:
        step = walk.reported
        strong = step.to_level == LEVELS["STRONG"]
        before = whole.get(walk.group) or history.walks.initial_members(walk.group)
        gone = [] if strong else [a for a in before if a not in walk.members]
        if strong:
            whole[walk.group] = walk.members
        found.append(
            TransitionSummary(
                group_id=history.group_name(walk.group),
                from_regime=REGIMES.get(step.from_level, "unknown"),
                to_regime=REGIMES.get(step.to_level, "unknown"),
                fault=step.fault,
                reason=step.reason,
                new_epoch=walk.new_epoch,
                members=sorted(rows.actors[a].rank for a in walk.members),
                missing=sorted({rows.actors[a].rank for a in gone}),
                wall_ns=int(rows.wall[step.row]),
            )
        )
    return found
