"""Whether and when a rank that ended is started again. Pure; the numbers are the launcher's."""

from __future__ import annotations

from cascade_runtime.vocabulary.identity import Actor

MAX_DELAY_S = 60.0


class Respawn:
    """The rule of ``cascade run --respawn K``.

    Args:
        times: how often a rank may be started again.
        delay_s: before the first time; each next one waits twice as long.
    """

    def __init__(self, times: int, delay_s: float) -> None:
        self._times = times
        self._delay_s = delay_s

    def after(self, actor: Actor) -> tuple[Actor, float] | None:
        """Who comes after ``actor``, and after how many seconds; None when its times are used up."""
        if actor.incarnation >= self._times:
            return None
        delay = min(MAX_DELAY_S, self._delay_s * 2.0**actor.incarnation)
        return Actor(actor.rank, actor.incarnation + 1), delay
