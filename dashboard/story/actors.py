"""Who took part, who is missing, and why who left."""

from __future__ import annotations

from dataclasses import dataclass

from dashboard.story.activity import Key
from dashboard.story.facts import Facts
from dashboard.story.model import Actor
from dashboard.story.words import plain

MAX_MISSING = 4096


@dataclass(frozen=True)
class Departure:
    """When an actor was first said to have left, and why."""

    wall_ns: int
    reason: str | None


@dataclass(frozen=True)
class Cast:
    """The actors of a run.

    Attributes:
        actors: those with rows, by (rank, incarnation).
        agents: host agents among them.
        ends: wall clock of each actor's last row.
        left: those that a view says have left.
        ranks: that have a lane; agents have none.
        missing: ranks of the job without a row besides its actors row.
    """

    actors: list[Actor]
    agents: frozenset[Key]
    ends: dict[Key, int]
    left: dict[Key, Departure]
    ranks: list[int]
    missing: list[int]


def cast_of(facts: Facts) -> Cast:
    """Everybody that left a row, and who should have."""
    known = {(row["rank"], row["incarnation"]): row for row in facts.rows.actors}
    left = departures(facts)
    first, last = _ends(facts, left)
    keys = sorted(known.keys() | first.keys())
    actors = [
        Actor(
            rank=key[0],
            incarnation=key[1],
            kind=(known[key]["kind"] if key in known else None) or "rank",
            host=plain(known[key]["host"]) or None if key in known else None,
            name=plain(known[key]["name"]) or None if key in known else None,
            first_ns=facts.since(first.get(key, facts.t0_ns)),
            last_ns=facts.since(last.get(key, facts.t0_ns)),
            end=plain(left[key].reason, 40) or "left" if key in left else None,
        )
        for key in keys
    ]
    agents = frozenset((a.rank, a.incarnation) for a in actors if a.kind == "agent")
    ranks = sorted({a.rank for a in actors if a.kind != "agent"})
    present = {key[0] for key in keys if _left_more(facts, key)}
    return Cast(actors, agents, last, left, ranks, _missing(facts, present))


def _left_more(facts: Facts, key: Key) -> bool:
    """Whether an actor has rows besides those that introduce it, which nobody can judge by.

    A rank of a run that goes on may have come just now.
    """
    if facts.state == "live" or facts.activity is None:
        return True
    span = facts.activity.spans.get(key)
    known = next((r for r in facts.rows.actors if (r["rank"], r["incarnation"]) == key), None)
    return span is None or known is None or int(span.num.sum()) > known["num"]


def departures(facts: Facts) -> dict[Key, Departure]:
    """The first departure of each actor."""
    found: dict[Key, Departure] = {}
    for row in facts.rows.changes:
        if row["what"] == "departed":
            key = (row["rank"], row["incarnation"])
            found.setdefault(key, Departure(row["wall_ns"], row["reason"]))
    return found


def _ends(facts: Facts, left: dict[Key, Departure]) -> tuple[dict[Key, int], dict[Key, int]]:
    """Wall clocks of each actor's first and last row."""
    if facts.activity is not None:
        spans = facts.activity.spans
        firsts = {key: span.first_ns for key, span in spans.items()}
        return firsts, {key: span.last_ns for key, span in spans.items()}
    # Not known yet: from what is seen of it until it left, or until now.
    first: dict[Key, int] = {}
    points = facts.rows.points
    for rank, incarnation, wall in zip(
        *(points[c].to_pylist() for c in ("rank", "incarnation", "wall_ns")), strict=True
    ):
        first[rank, incarnation] = min(wall, first.get((rank, incarnation), wall))
    return first, {k: left[k].wall_ns if k in left else facts.t1_ns for k in first}


def _missing(facts: Facts, present: set[int]) -> list[int]:
    """Ranks that trace.json or a view counts, and that left no row besides their introduction."""
    counted = {rank for rank in range(min(facts.meta.world_size, 1 << 20)) if rank not in present}
    for row in (*facts.rows.views, *facts.rows.walks):
        counted.update(m["rank"] for m in row["members"] if m and m["rank"] not in present)
    return sorted(counted)[:MAX_MISSING] if facts.num_rows else []
