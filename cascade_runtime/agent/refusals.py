"""Why ranks ended early, told once a reason and not once a rank."""

from __future__ import annotations

import sys

from cascade_runtime.agent.config import JobConfig
from cascade_runtime.agent.rank_process import describe_status
from cascade_runtime.vocabulary.identity import Actor


class Refusals:
    """Reasons, with the ranks that gave them."""

    def __init__(self, config: JobConfig) -> None:
        self._config = config
        self._ranks: dict[str, list[Actor]] = {}

    def note(self, actor: Actor) -> bool:
        """Take in the sentence that an ended rank left; False when it left none."""
        try:
            why = self._config.refusal_path(actor).read_text()
        except OSError:
            return False
        self._add(why, actor)
        return True

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
        """Print them."""
        for why, actors in self._ranks.items():
            names = ", ".join(str(a) for a in sorted(actors))
            word = "rank" if len(actors) == 1 else "ranks"
            sys.stderr.write(f"cascade: {word} {names}: {why}\n")
