"""Who stepped apart from the others: members of the smaller cohorts, and for how long."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from dashboard.story.model import Walk
from dashboard.story.words import duration, who

MAX_SPANS = 3
"""So many lengths are told, the longest first."""


def apart_words(walks: Sequence[Walk], end_ns: int) -> list[str]:
    """``rank 2 stepped by itself for 3.2 s``, one text a length of time, the longest first.

    The largest cohort counts as the others, of equal ones that of the lowest rank.

    Args:
        walks: of one group, in time.
        end_ns: when the last view of them ended, or what is known of it.
    """
    for_ns: Counter[int] = Counter()
    alone: dict[int, bool] = {}
    ends = [walk.at_ns for walk in walks[1:]] + [end_ns]
    for walk, end in zip(walks, ends, strict=True):
        members = set(
            walk.members
        )  # a newcomer on its way is a cohort on record, and steps not yet
        for cohort in _smaller([one for one in walk.cohorts if members.issuperset(one)]):
            for rank in cohort:
                for_ns[rank] += max(0, end - walk.at_ns)
                alone[rank] = alone.get(rank, True) and len(cohort) == 1
    ranks: dict[tuple[int, bool], list[int]] = {}
    for rank, ns in for_ns.items():
        ranks.setdefault((ns, alone[rank]), []).append(rank)
    told = sorted(ranks.items(), key=lambda item: (-item[0][0], min(item[1])))[:MAX_SPANS]
    return [
        f"{who(of)} {_how(of, is_alone=is_alone)} for {duration(ns)}" for (ns, is_alone), of in told
    ]


def _how(ranks: Sequence[int], *, is_alone: bool) -> str:
    if not is_alone:
        return "stepped apart from the others"
    return "stepped by itself" if len(ranks) == 1 else "each stepped by itself"


def _smaller(cohorts: Sequence[Sequence[int]]) -> list[Sequence[int]]:
    """All cohorts but the main one."""
    known = [cohort for cohort in cohorts if cohort]
    if len(known) < 2:
        return []
    main = min(range(len(known)), key=lambda at: (-len(known[at]), min(known[at])))
    return [cohort for at, cohort in enumerate(known) if at != main]
