"""How many of a run's actors are ranks, and how many host agents: trace.json counts them together."""

from __future__ import annotations

import threading
import weakref

from cascade_runtime.vocabulary.errors import CascadeError
from collector.storage._interface import EventStore, RunSummary
from dashboard.story.actor_names import party

_SQL = """
SELECT run_id, count(DISTINCT rank)::BIGINT AS num FROM actors WHERE kind = 'agent' GROUP BY run_id
"""

_known: weakref.WeakKeyDictionary[EventStore, dict[str, int]] = weakref.WeakKeyDictionary()
_asking = threading.Lock()


def parties(store: EventStore, runs: list[RunSummary]) -> dict[str, str]:
    """``4 ranks and 1 agent`` of each run; where that cannot be found out, how many they are together.

    Args:
        store: where the runs are.
        runs: of that store.
    """
    try:
        agents = _agents(store, runs)
    except CascadeError:
        return {run.run_id: f"{run.world_size:,} ranks and agents" for run in runs}
    return {run.run_id: _party(run, agents.get(run.run_id, 0)) for run in runs}


def _party(run: RunSummary, num_agents: int) -> str:
    if not run.num_rows:  # who of them is an agent, rows tell
        return f"{run.world_size:,} expected"
    return party(max(0, run.world_size - num_agents), num_agents)


def _agents(store: EventStore, runs: list[RunSummary]) -> dict[str, int]:
    """Of runs that have ended it is asked once."""
    with _asking:
        known = _known.setdefault(store, {})
        if any(run.run_id not in known for run in runs):
            found = store.query(_SQL, max_age_s=1.0).to_pylist()
            now = {row["run_id"]: row["num"] for row in found}
            ended = {run.run_id: now.get(run.run_id, 0) for run in runs if run.state != "live"}
            known.update(ended)
            return known | now
        return dict(known)
