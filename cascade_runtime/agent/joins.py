"""Newcomers on their way into the job: who serves them, and which of them stand level.

Pure bookkeeping, kept alike by every agent from the same broadcast messages.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence

from cascade_runtime.agent.protocol import Level, View
from cascade_runtime.vocabulary.identity import Actor
from cascade_runtime.vocabulary.regime import Regime

PATIENCE_S = 2.0
"""So long a walk that has halted everybody waits for newcomers to reach the cut."""

TRIES = 3
"""A newcomer that was waited for in vain so often is not waited for again."""


class Joins:
    """What newcomers have told."""

    def __init__(self) -> None:
        self._levels: dict[Actor, Level] = {}
        self._given_up: set[tuple[Actor, int]] = set()
        self._held_up: Counter[Actor] = Counter()
        self._held_back: set[tuple[Actor, int]] = set()
        """Newcomers that were told of to wait for all to step together, and in which epoch."""

    def on_level(self, level: Level) -> None:
        """A newcomer told where it stands, or takes back what it told."""
        if level.source is None:
            self._levels.pop(level.actor, None)
        else:
            # Of an earlier incarnation that has ended, the news may have been lost with an agent.
            for actor in [a for a in self._levels if a.rank == level.actor.rank]:
                if actor > level.actor:
                    return
                del self._levels[actor]
            self._levels[level.actor] = level

    def ended(self, actor: Actor) -> None:
        """The newcomer's process ended."""
        self._levels.pop(actor, None)
        self._held_up.pop(actor, None)

    def told(self) -> list[Level]:
        """Everything told and not taken back."""
        return list(self._levels.values())

    def install(self, view: View) -> None:
        """A view was committed; members are newcomers no more."""
        for actor in view.members:
            self._levels.pop(actor, None)
        self._given_up = {(a, epoch) for a, epoch in self._given_up if epoch >= view.epoch}

    def give_up(self, actors: Collection[Actor], epoch: int) -> None:
        """Wait for these no longer in the walk from this epoch."""
        self._given_up.update((actor, epoch) for actor in actors)
        self._held_up.update(actors)

    def held_back(self, actor: Actor, view: View) -> str | None:
        """Why no member serves this newcomer: cohorts are apart. Told once a view."""
        told = (actor, view.epoch)
        if len(view.cohorts) < 2 or told in self._held_back:
            return None
        self._held_back = {t for t in self._held_back if t[1] == view.epoch} | {told}
        return _why_held_back(actor, view)

    def ready(self, view: View, lost: Collection[Actor]) -> list[Level]:
        """Newcomers that the walk from ``view`` may let in.

        Each stands by the log of a member of this view, in this view's epoch: what a lost source had
        told last may be a step that the others have made void.
        """
        if view.regime is Regime.EVENTUAL or len(view.cohorts) > 1:
            return []
        taken = {member.rank for member in view.members}
        return [
            level
            for actor, level in sorted(self._levels.items())
            if actor.rank not in taken
            and level.epoch == view.epoch
            and level.source in view.members
            and level.source not in lost
            and (actor, view.epoch) not in self._given_up
            and self._held_up[actor] < TRIES
        ]


def _why_held_back(actor: Actor, view: View) -> str:
    alone = sorted(m for c in sorted(view.cohorts, key=len)[:-1] for m in c)
    names = ", ".join(map(str, alone))
    who = (
        f"rank {names} steps by itself" if len(alone) == 1 else f"ranks {names} step by themselves"
    )
    return f"rank {actor} waits to join: {who}, and nobody joins before all step together"


def source_for(view: View, lost: Collection[Actor], attempt: int) -> Actor | None:
    """Which member serves a newcomer: not the author while another is there; another each time."""
    able: Sequence[Actor] = [m for m in sorted(view.members) if m not in lost]
    if not able or len(view.cohorts) > 1:  # while cohorts are apart nobody's log is everybody's
        return None
    others = able[1:] or able
    return others[attempt % len(others)]
