"""Who somebody is, in words: host agents are numbered among the ranks, and are none."""

from __future__ import annotations

from dashboard.story.actors import Cast
from dashboard.story.words import count


class ActorNames:
    """Names of a run's actors, for sentences.

    Args:
        cast: the actors.
    """

    def __init__(self, cast: Cast) -> None:
        self._hosts = {
            (one.rank, one.incarnation): one.host for one in cast.actors if one.kind == "agent"
        }
        self._ranks = {rank for rank, _ in self._hosts}
        self._are_apart = len(set(self._hosts.values())) == len(self._hosts)

    def __call__(self, rank: int, incarnation: int = 0) -> str:
        """``rank 2``, ``rank 2.1``, ``the host agent``; of several ``the agent of host-b``, else ``agent 5``."""
        again = f".{incarnation}" if incarnation else ""
        if rank not in self._ranks:
            return f"rank {rank}{again}"
        if len(self._ranks) == 1:
            return "the host agent"
        host = self._hosts.get((rank, incarnation))
        return f"the agent of {host}" if host and self._are_apart else f"agent {rank}{again}"

    def is_agent(self, rank: int) -> bool:
        """Whether that number is an agent's."""
        return rank in self._ranks


def party(num_ranks: int, num_agents: int) -> str:
    """``4 ranks and 1 agent``."""
    ranks = count(num_ranks, "rank")
    return f"{ranks} and {count(num_agents, 'agent')}" if num_agents else ranks
