"""Every rank at one moment."""

from __future__ import annotations

from collections import Counter
from typing import Any

from dashboard.story.facts import Facts
from dashboard.story.model import Actor, Debt, Story
from dashboard.story.state_index import StateIndex, cohort_of, regime_word
from dashboard.story.state_rows import Progress, Receiver, devices_at, rows_at


def state_at(facts: Facts, story: Story, index: StateIndex, t_ns: int) -> dict[str, Any]:
    """The state of every rank, in ns since t0.

    ``clock``: the newest update of each author that the rank had issued, applied or read by then.
    ``num_in_flight``: updates that it had issued and that some member of their group, there since
    before they were issued and a holder of the object, had neither applied nor discarded by then.
    """
    actors = [actor for rank in story.ranks if (actor := index.actor(rank, t_ns)) is not None]
    presence = {actor.rank: index.presence(actor, t_ns) for actor in actors}
    live = [actor for actor in actors if presence[actor.rank] in ("present", "silent")]
    wall_ns = facts.t0_ns + t_ns
    groups = index.groups(t_ns)
    progress, clocks, flying = rows_at(facts, wall_ns, _receivers(facts, index, groups, live))
    gpu, cpu = devices_at(facts, story, wall_ns)
    at = {a.rank: progress.get((a.rank, a.incarnation), Progress(None, None)) for a in actors}
    steps = [step for actor in live if (step := at[actor.rank].step) is not None]
    furthest = max(steps, default=None)
    open_debts = Counter(debt.rank for debt in story.debts if _is_open(debt, t_ns))
    ranks = []
    for actor in actors:
        key, here = (actor.rank, actor.incarnation), at[actor.rank]
        is_live = presence[actor.rank] in ("present", "silent")
        lag = None if furthest is None or here.step is None else furthest - here.step
        ranks.append(
            {
                "rank": actor.rank,
                "incarnation": actor.incarnation,
                "state": presence[actor.rank],
                "end": actor.end if presence[actor.rank] == "gone" else None,
                **_regime(index, actor, t_ns, presence[actor.rank]),
                "cohort": cohort_of(actor.rank, groups),
                "step": here.step,
                "seq": here.seq,
                "lag_steps": lag if is_live else None,
                "clock": clocks.get(key, []),
                "num_in_flight": flying.get(key, 0),
                "open_debt": open_debts[actor.rank],
                "gpu": gpu.get(actor.rank) if is_live else None,
                "cpu": cpu.get(actor.rank) if is_live else None,
            }
        )
    return {"t_ns": t_ns, "ranks": ranks, "groups": groups, "last_walk": index.last_walk(t_ns)}


def _receivers(
    facts: Facts, index: StateIndex, groups: list[dict[str, Any]], live: list[Actor]
) -> list[Receiver]:
    """The members of each group who are there; everybody where no view says who they are."""
    members = {group["group"]: group["members"] for group in groups}
    return [
        Receiver(name, actor.rank, facts.t0_ns + actor.first_ns)
        for name, shown in index.group_names.items()
        for actor in live
        if not members.get(shown) or actor.rank in members[shown]
    ]


def _regime(index: StateIndex, actor: Actor, t_ns: int, presence: str) -> dict[str, Any]:
    held = None if presence in ("not_yet", "gone") else index.held(actor, t_ns)
    if held is None:
        return {"regime": None, "since_ns": None, "epoch": None}
    return {"regime": regime_word(held.regime), "since_ns": held.since_ns, "epoch": held.epoch}


def _is_open(debt: Debt, t_ns: int) -> bool:
    return debt.opened_ns <= t_ns and (debt.closed_ns is None or debt.closed_ns > t_ns)
