"""Every rank at one moment."""

from __future__ import annotations

from typing import Any

from dashboard.story.facts import Facts
from dashboard.story.model import Actor, Story
from dashboard.story.state_index import StateIndex, cohort_of, regime_word
from dashboard.story.state_rows import Progress, devices_at, rows_at


def state_at(facts: Facts, story: Story, index: StateIndex, t_ns: int) -> dict[str, Any]:
    """The state of every rank, in ns since t0.

    ``clock``: the newest update of each author that the rank had issued, applied or read by then.
    ``num_in_flight``: updates that it had issued and that some live member had neither applied nor
    discarded by then.
    """
    actors = [actor for rank in story.ranks if (actor := index.actor(rank, t_ns)) is not None]
    presence = {actor.rank: index.presence(actor, t_ns) for actor in actors}
    live = [actor for actor in actors if presence[actor.rank] in ("present", "silent")]
    wall_ns = facts.t0_ns + t_ns
    progress, clocks, flying = rows_at(facts, wall_ns, [actor.rank for actor in live])
    gpu, cpu = devices_at(facts, story, wall_ns)
    groups = index.groups(t_ns)
    at = {a.rank: progress.get((a.rank, a.incarnation), Progress(None, None)) for a in actors}
    steps = [step for actor in live if (step := at[actor.rank].step) is not None]
    furthest = max(steps, default=None)
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
                "open_debt": sum(_is_open(debt, actor, t_ns) for debt in story.debts),
                "gpu": gpu.get(actor.rank) if is_live else None,
                "cpu": cpu.get(actor.rank) if is_live else None,
            }
        )
    return {"t_ns": t_ns, "ranks": ranks, "groups": groups, "last_walk": index.last_walk(t_ns)}


def _regime(index: StateIndex, actor: Actor, t_ns: int, presence: str) -> dict[str, Any]:
    held = None if presence in ("not_yet", "gone") else index.held(actor, t_ns)
    if held is None:
        return {"regime": None, "since_ns": None, "epoch": None}
    return {"regime": regime_word(held.regime), "since_ns": held.since_ns, "epoch": held.epoch}


def _is_open(debt: Any, actor: Actor, t_ns: int) -> bool:
    opened = debt.rank == actor.rank and debt.opened_ns <= t_ns
    return opened and (debt.closed_ns is None or debt.closed_ns > t_ns)
