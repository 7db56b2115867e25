"""What every part of the walk knows: the agreed views, what was promised and accepted, who stands still."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

from cascade_runtime.agent.protocol import NO_BALLOT, Ballot, Facts, Message, View
from cascade_runtime.agent.walk_effects import Effect, Send
from cascade_runtime.vocabulary.identity import Actor


class WalkState(ABC):
    """One agent's knowledge of the walk, and its way to say something to an agent."""

    def __init__(self, index: int, num_agents: int, host_of: Callable[[Actor], int]) -> None:
        self.index = index
        self.num_agents = num_agents
        self.log: list[View] = []
        self.promised = NO_BALLOT
        self.accepted: tuple[Ballot, View] | None = None
        self.halted: dict[Actor, Facts] = {}
        """Facts of the local members that stand still."""
        self.dead: dict[Actor, Facts] = {}
        """Local members certified dead."""
        self._host_of = host_of
        self._effects: list[Effect] = []

    @property
    def epoch(self) -> int:
        """Of the newest committed view; -1 before the first."""
        return len(self.log) - 1

    @property
    def view(self) -> View:
        """The newest committed view."""
        return self.log[-1]

    def local_members(self) -> list[Actor]:
        """Members of the current view on this host."""
        return [m for m in self.view.members if self._host_of(m) == self.index]

    def take(self) -> list[Effect]:
        """The effects since the last call, in order."""
        effects, self._effects = self._effects, []
        return effects

    @abstractmethod
    def on_message(self, sender: int, message: Message) -> None:
        """A message of the walk from another agent (or from this one)."""

    @abstractmethod
    def _install(self, view: View) -> None:
        """The next view is committed."""

    def _send(self, to: int, message: Message) -> None:
        if to == self.index:
            self.on_message(to, message)
        else:
            self._effects.append(Send(to, message))
