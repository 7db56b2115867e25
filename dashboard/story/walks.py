"""Committed walks, each told once."""

from __future__ import annotations

from typing import Any

from dashboard.story.facts import Facts
from dashboard.story.model import Walk
from dashboard.story.names import GroupNames
from dashboard.story.words import number_spans, plain, sentence, who

_FEW = 4
"""So many cohorts are named."""

_Actors = frozenset[tuple[int, int]]


def walks_of(facts: Facts, names: GroupNames) -> list[Walk]:
    """All committed views in time.

    ``missing``: ranks of the last STRONG view (the first view counts) that are not in this one, in
    whatever incarnation.
    """
    whole: dict[str, frozenset[int]] = {
        row["group_id"]: frozenset(_ranks(_actors(row["members"]))) for row in facts.rows.views
    }
    present = {group: sorted(ranks) for group, ranks in whole.items()}
    found = []
    for row in facts.rows.walks:  # by group and epoch
        members, group = _ranks(_actors(row["members"])), row["group_id"]
        strong = row["to_regime"] == "STRONG"
        gone = frozenset() if strong else whole.get(group, frozenset()) - {*members}
        if strong or group not in whole:
            whole[group] = frozenset(members)
        found.append(_walk(facts, row, names(group), members, sorted(gone)))
        found[-1].sentence = _sentence(found[-1], members != present.get(group))
        present[group] = members
    found.sort(key=lambda walk: (walk.at_ns, walk.group, walk.epoch, walk.members))
    _name(found)
    return found


def _name(walks: list[Walk]) -> None:
    """Sides that cannot reach each other walk to one epoch number."""
    seen: set[str] = set()
    for walk in walks:
        if walk.id in seen and walk.members:
            walk.id = f"{walk.id}:{walk.members[0]}"
        seen.add(walk.id)


def is_end(walk: Walk) -> bool:
    """The last view: whoever was in it has left in order."""
    return not walk.members and walk.fault is None


def _walk(
    facts: Facts, row: dict[str, Any], group: str, members: list[int], gone: list[int]
) -> Walk:
    proposer = row["proposer"]
    return Walk(
        id=f"{group}:{row['epoch']}",
        group=group,
        epoch=row["epoch"],
        at_ns=facts.since(row["wall_ns"]),
        from_regime=row["from_regime"],
        to_regime=row["to_regime"],
        fault=row["fault"],
        reason=plain(row["reason"], 300) or None,
        members=members,
        missing=gone,
        cohorts=[_ranks(_actors(cohort)) for cohort in row["cohorts"] or ()],
        proposer=None if proposer is None else proposer["rank"],
        sentence="",
    )


def _sentence(walk: Walk, members_change: bool) -> str:
    came, to = walk.from_regime or "an unknown regime", walk.to_regime or "an unknown regime"
    if is_end(walk):
        why = f" ({walk.reason})" if walk.reason else ""
        return sentence(f"epoch {walk.epoch}: the job ended in {to}{why}")
    on = f" on {walk.fault}" if walk.fault else ""
    said = f"epoch {walk.epoch}: {came} to {to}{on}"
    if came == to:
        why = f" ({walk.reason})" if walk.reason else ""
        said = f"epoch {walk.epoch}: stays {to}{on}{', the members change' * members_change}{why}"
    said += f"; members {number_spans(walk.members) or 'nobody'}"
    if walk.missing:
        said += f", without {who(walk.missing)}"
    if len(walk.cohorts) > 1:
        said += f", in {len(walk.cohorts)} cohorts"
        if len(walk.cohorts) <= _FEW:
            said += f": {' and '.join(map(number_spans, walk.cohorts))}"
    return sentence(said)


def _actors(items: list[dict[str, int] | None] | None) -> _Actors:
    return frozenset((a["rank"], a["incarnation"] or 0) for a in items or () if a is not None)


def _ranks(actors: _Actors) -> list[int]:
    return sorted({rank for rank, _ in actors})
