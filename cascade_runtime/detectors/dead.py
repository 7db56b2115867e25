"""An actor is gone: the kernel says so, or it has been silent for far longer than it ever was.

A death is certified by the kernel of the actor's own host, which tells the exit status. Of an actor
of another host only beats are heard: it is suspected when none came for ``silent_s`` and for
``times_longest`` times the longest of its last gaps, which is the deadline learnt from it.

Either is told once an actor. A suspicion clears when a beat comes after all; a death never does. It
cannot tell a dead host from one that cannot be reached.
"""

from __future__ import annotations

from collections import deque

from cascade_runtime.detectors._base import News, Spec, Verdict
from cascade_runtime.vocabulary.fault import FaultEvent
from cascade_runtime.vocabulary.identity import Actor
from cascade_runtime.vocabulary.policy import DeadLimits

NAME = "dead"
_GAPS = 64
"""Gaps between beats that the deadline is learnt from."""


class Dead:
    """Judges exit statuses and beats.

    Args:
        limits: the policy's ``[dead]``.
    """

    def __init__(self, limits: DeadLimits) -> None:
        self._limits = limits
        self._beats: dict[Actor, float] = {}
        self._gaps: dict[Actor, deque[float]] = {}
        self._exited: set[Actor] = set()
        self._news = News()

    def feed_exit(self, actor: Actor, status: int | None, how: str) -> None:
        """The kernel tells that it ended.

        Args:
            actor: who.
            status: exit status, minus the signal where one ended it; None when nobody knows.
            how: the same in words.
        """
        self._stop_listening(actor)
        if actor in self._exited:
            return
        self._exited.add(actor)
        self._news.forget(actor)  # a suspicion has become certain
        self._news.begin(
            Verdict(
                detector=NAME,
                signal="dead",
                fault=FaultEvent.GPU_FAIL_STOP,
                subject=actor,
                value=float("nan") if status is None else float(status),
                threshold=0.0,
                unit="exit status",
                why=f"rank {actor} died ({how})",
            )
        )

    def feed_beat(self, actor: Actor, now_s: float) -> None:
        """Something was heard of it."""
        if actor in self._exited:
            return
        before = self._beats.get(actor)
        self._beats[actor] = now_s
        for other in [a for a in self._beats if a.rank == actor.rank and a < actor]:
            self.forget(other)  # this is its successor
        if before is None:
            return
        if actor in self._news:
            self._news.end(actor, 0.0, f"{actor} is heard again after {now_s - before:.1f} s")
            return  # what made it silent says nothing of how it usually beats
        self._gaps.setdefault(actor, deque(maxlen=_GAPS)).append(now_s - before)

    def decide(self, now_s: float) -> list[Verdict]:
        """Who is dead or suspected since the last call, and who is heard again."""
        for actor, beat_s in self._beats.items():
            deadline_s = self.deadline_s(actor)
            silent_s = now_s - beat_s
            if silent_s > deadline_s:
                self._news.begin(
                    Verdict(
                        detector=NAME,
                        signal="silent",
                        fault=FaultEvent.GPU_FAIL_STOP,
                        subject=actor,
                        value=silent_s,
                        threshold=deadline_s,
                        unit="s",
                        why=(
                            f"nothing was heard of {actor} for {silent_s:.1f} s, "
                            f"and {deadline_s:.1f} s is long for it"
                        ),
                    )
                )
        return self._news.take()

    def deadline_s(self, actor: Actor) -> float:
        """How long it may be silent, by what was seen of it."""
        longest = max(self._gaps.get(actor, ()), default=0.0)
        return max(self._limits.silent_s, self._limits.times_longest * longest)

    @property
    def standing(self) -> list[Verdict]:
        """Who is dead or suspected."""
        return self._news.standing

    def _stop_listening(self, actor: Actor) -> None:
        self._beats.pop(actor, None)
        self._gaps.pop(actor, None)

    def forget(self, actor: Actor) -> None:
        """A view without it is in force."""
        self._stop_listening(actor)
        self._news.forget(actor)


PLUGIN = Spec(NAME, frozenset({FaultEvent.GPU_FAIL_STOP}), "dead", Dead)
