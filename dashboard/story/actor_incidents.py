"""Incidents of ranks and host agents that go, come, or say nothing."""

from __future__ import annotations

import msgspec

from dashboard.story.model import Incident, Silence
from dashboard.story.returns import newcomers_of, returns_of
from dashboard.story.seen import Seen, incident
from dashboard.story.stuck import stuck_of
from dashboard.story.words import duration, moment


def actor_incidents(seen: Seen) -> list[Incident]:
    """All of them, in no order."""
    return [*_silences(seen), *_returns(seen), *_newcomers(seen), *_agents(seen)]


def _silences(seen: Seen) -> list[Incident]:
    found = []
    by_rank: dict[int, list[Silence]] = {}
    stuck = stuck_of(seen.facts)
    for silence in seen.silent:
        to = seen.last_ns if silence.to_ns is None else silence.to_ns
        if stuck and silence.rank in (*stuck.by, *stuck.held) and to >= stuck.end_ns:
            continue  # what holds it up is told, and who is held
        by_rank.setdefault(silence.rank, []).append(silence)
    for rank, those in by_rank.items():
        spans = [(s.from_ns, seen.last_ns if s.to_ns is None else s.to_ns) for s in those]
        at, end = max(spans, key=lambda span: span[1] - span[0])
        times = "" if len(those) == 1 else f" {len(those):,} times, longest"
        goes_on = any(s.to_ns is None for s in those)
        said = f"Rank {rank} left no row{times} for {duration(end - at)} from {moment(at)} on" + (
            ", and has left none since." if goes_on else "."
        )
        title = f"Rank {rank} silent for {duration(end - at)}"
        found.append(
            incident(
                seen, "silent", str(rank), "warning", at, max(at, end), title, said, f"rank:{rank}"
            )
        )
    return found


def _returns(seen: Seen) -> list[Incident]:
    """Each at the time when it was back, in a window that shows how long it was away."""
    found = [
        incident(
            seen, "return", f"{one.rank}.{one.incarnation}", "info", one.lost_ns, one.back_ns,
            f"Rank {one.rank} came back", one.words(), f"rank:{one.rank}",
        )
        for one in returns_of(seen.facts)
    ]  # fmt: skip
    return [msgspec.structs.replace(one, at_ns=one.end_ns) for one in found]


def _newcomers(seen: Seen) -> list[Incident]:
    """Ranks that were no members before; one window for each, as for who comes back."""
    return [
        incident(
            seen, "join", str(one.rank), "info", one.at_ns, one.at_ns,
            f"Rank {one.rank} joined", one.words(), f"rank:{one.rank}",
        )
        for one in newcomers_of(seen.facts)
    ]  # fmt: skip


def _agents(seen: Seen) -> list[Incident]:
    """Host agents that ended and were started again: no view tells of them."""
    agents = {(a.rank, a.incarnation): a for a in seen.cast.actors if a.kind == "agent"}
    found = []
    for (rank, incarnation), actor in agents.items():
        before = agents.get((rank, incarnation - 1))
        if before is None:
            continue
        name = f"agent of {actor.host}" if actor.host else "host's agent"
        at, end = before.last_ns, max(before.last_ns, actor.first_ns)
        said = (
            f"The {name} ended at {moment(at)} and was there again after {duration(end - at)}; "
            "ranks go on without it."
        )
        found.append(
            incident(
                seen, "agent", f"{rank}.{incarnation}", "info", at, end,
                f"The {name} was started again", said, None,
            )
        )  # fmt: skip
    return found
