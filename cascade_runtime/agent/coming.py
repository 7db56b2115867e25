"""Newcomers on their way, as all agents tell of them: each is on record as a cohort of its own.

It steps with nobody and nobody waits for it; what it takes is a member's snapshot and log. A view names
those that were on their way when it was proposed, where its regime lets cohorts be apart.
"""

from __future__ import annotations

from collections.abc import Collection

import msgspec

from cascade_runtime.agent.plan_parts import ranks_of
from cascade_runtime.agent.protocol import View
from cascade_runtime.vocabulary.identity import Actor
from cascade_runtime.vocabulary.regime import Regime

GONE_S = 1.0
"""A newcomer that nobody has told of for so long is not on its way any more."""

UNCHANGED = "nothing to change"


class Coming:
    """Who is on the way, and was told of when."""

    def __init__(self) -> None:
        self._told_s: dict[Actor, float] = {}

    def look(self, told: Collection[Actor], now_s: float) -> None:
        """These were told of by their agents."""
        self._told_s.update((actor, now_s) for actor in told)
        self._told_s = {a: at for a, at in self._told_s.items() if now_s - at <= GONE_S}

    def forget(self, actors: Collection[Actor]) -> None:
        """They are members now, or their processes ended."""
        for actor in actors:
            self._told_s.pop(actor, None)

    def into(self, view: View) -> list[Actor]:
        """Who is on the way into ``view``."""
        taken = {member.rank for member in view.members}
        newest = {actor.rank: actor for actor in sorted(self._told_s)}
        return sorted(actor for rank, actor in newest.items() if rank not in taken)

    def is_news(self, view: View) -> bool:
        """They are others than ``view`` has on record, and a walk may say so."""
        able = view.regime is Regime.CAUSAL and len(view.cohorts) == 1
        return able and self.into(view) != view.coming

    def named(self, view: View, before: View) -> View:
        """The view to be proposed after ``before``, with who is on the way; STRONG is one cohort alone."""
        coming = self.into(view) if view.regime is Regime.CAUSAL and view.members else []
        reason = _reason(coming, before.coming) if view.reason == UNCHANGED else view.reason
        return msgspec.structs.replace(view, coming=coming, reason=reason)


def _reason(coming: list[Actor], before: list[Actor]) -> str:
    """Of a walk that changes nothing else."""
    if len(coming) > 1:
        return f"{ranks_of(coming)} are on their way, each a cohort of its own"
    if coming:
        return f"{ranks_of(coming)} is on its way, a cohort of its own"
    return f"{ranks_of(before)} will not come" if before else UNCHANGED
