"""Which other hosts are out of reach, from what their agents and ranks stop doing. Clock passed in.

An agent that ended alone is started again within a second, and its ranks go on meanwhile, so its end
is no reason to act. But each rank keeps a connection that says nothing, a *lifeline*, to the agents of
the next hosts. Where an agent has ended and so have the lifelines of all its host's members, the host
is lost, and that is known at once. What neither ends nor speaks is given the long patience.
"""

from __future__ import annotations

from collections.abc import Iterable

from cascade_runtime.vocabulary.identity import Actor

SUSPECT_S = 10.0
"""An agent that is away, or says nothing, for so long is not waited for any more."""

SILENT_S = 3.0
"""An agent that has said nothing for so long does not lead."""

BEAT_S = 1.0
"""How often an agent says something to each other one."""

NUM_LIFELINES = 2


def lifeline_hosts(index: int, num_hosts: int) -> list[int]:
    """The hosts that the ranks of host ``index`` keep lifelines to: the next ones in the ring."""
    return [(index + k) % num_hosts for k in range(1, min(NUM_LIFELINES, num_hosts - 1) + 1)]


class HostWatch:
    """What one agent knows of the other hosts."""

    def __init__(self) -> None:
        self._heard: dict[int, float] = {}
        self._down: dict[int, float] = {}
        self._open: dict[Actor, bool] = {}
        self._told: set[int] = set()

    def up(self, index: int, now_s: float) -> None:
        """The agent can be reached (again)."""
        self._down.pop(index, None)
        self._told.discard(index)
        self._heard[index] = now_s

    def down(self, index: int, now_s: float) -> None:
        """The connection to the agent ended."""
        self._down.setdefault(index, now_s)

    def heard(self, index: int, now_s: float) -> None:
        """The agent said something."""
        self._heard[index] = now_s

    def slept(self) -> None:
        """This agent did not run itself for a while: what it did not hear says nothing."""
        self._heard.clear()

    def lifeline(self, actor: Actor, is_open: bool) -> None:
        """The lifeline of a rank began or ended."""
        self._open[actor] = is_open

    def told_lost(self, index: int) -> None:
        """Another agent saw the end of the host; it counts if the agent is away from here too."""
        if index in self._down:
            self._told.add(index)

    def away_s(self, index: int, now_s: float) -> float:
        """How long the agent has been away or silent."""
        since = self._down.get(index, self._heard.get(index, now_s))
        return max(0.0, now_s - since)

    def is_silent(self, index: int, now_s: float) -> bool:
        """It is connected and says nothing (stopped, or cut off without an end of file)."""
        return index not in self._down and self.away_s(index, now_s) > SILENT_S

    def is_lost(self, index: int, members: Iterable[Actor]) -> bool:
        """The agent and all of ``members``, which are its host's, have ended."""
        if index not in self._down:
            return False
        seen = [self._open.get(member) for member in members]
        return index in self._told or (bool(seen) and all(is_open is False for is_open in seen))

    def is_gone(self, index: int, members: Iterable[Actor], now_s: float) -> bool:
        """Not to be waited for."""
        return self.away_s(index, now_s) > SUSPECT_S or self.is_lost(index, members)
