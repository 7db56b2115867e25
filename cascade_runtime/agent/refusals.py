"""Why ranks ended early, told once a reason and not once a rank.

Where only some ranks are refused the others go on, for hours perhaps, so a reason does not wait for the
job's end: it is told soon, when the ranks that are refused for the same one have ended too.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from cascade_runtime.agent.config import JobConfig
from cascade_runtime.agent.rank_process import describe_status
from cascade_runtime.vocabulary.identity import Actor

TELL_AFTER_S = 1.0


class Refusals:
    """Reasons, with the ranks that gave them."""

    def __init__(self, config: JobConfig) -> None:
        self._config = config
        self._ranks: dict[str, list[Actor]] = {}
        self._told: set[str] = set()

    def note(self, actor: Actor) -> bool:
        """Take in the sentence that an ended rank left; False when it left none."""
        try:
            why = self._config.refusal_path(actor).read_text()
        except OSError:
            return False
        self._add(why, actor)
        return True

    def note_lost(self, actor: Actor) -> bool:
        """As ``note``, of a rank that the job may go on without."""
        if not self.note(actor):
            return False
        asyncio.get_running_loop().call_later(TELL_AFTER_S, self.tell)
        return True

    def in_a_row(self, actor: Actor) -> int:
        """How many incarnations up to this one ended with such a sentence, without one between."""
        number = 0
        while number <= actor.incarnation and self._note_of(actor, number).exists():
            number += 1
        return number

    def _note_of(self, actor: Actor, before: int) -> Path:
        return self._config.refusal_path(Actor(actor.rank, actor.incarnation - before))

    def note_early_end(self, actor: Actor, status: int) -> None:
        """A rank ended before the job had formed, with or without a sentence."""
        if not self.note(actor):
            self._add(
                f"it ended with {describe_status(status)} before all ranks had attached, so the "
                "job never formed; its own output says why",
                actor,
            )

    def _add(self, why: str, actor: Actor) -> None:
        told = self._ranks.setdefault(why, [])
        if actor not in told:
            told.append(actor)

    def tell(self) -> None:
        """Print those that were not told yet."""
        for why, actors in self._ranks.items():
            if why in self._told:
                continue
            self._told.add(why)
            names = ", ".join(str(a) for a in sorted(actors))
            word = "rank" if len(actors) == 1 else "ranks"
            sys.stderr.write(f"cascade: {word} {names}: {why}\n")
