"""Members come and go so often that agreeing on who is there costs more than stepping.

It fires at ``changes`` joins or losses within ``window_s``, and while a newcomer is not level yet; it
clears when nobody came, went or was catching up for ``quiet_s``. Members that come or go in one view (the ranks of a host) are one change, and a member that
finished its job is none. It cannot tell a bad node from a scheduler that moves jobs about.
"""

from __future__ import annotations

from collections import deque

from cascade_runtime.detectors._base import News, Spec, Verdict
from cascade_runtime.vocabulary.fault import FaultEvent
from cascade_runtime.vocabulary.identity import Actor
from cascade_runtime.vocabulary.policy import NodeChurnLimits

NAME = "churn"


class Churn:
    """Judges joins, losses and newcomers.

    Args:
        limits: the policy's ``[node_churn]``.
    """

    def __init__(self, limits: NodeChurnLimits) -> None:
        self._limits = limits
        self._changes: deque[tuple[float, str]] = deque(maxlen=limits.changes)
        self._catching_up: set[Actor] = set()
        self._last_s = 0.0
        self._news = News()

    def feed_joined(self, actor: Actor, now_s: float) -> None:
        """A member came, and is level with it."""
        self._catching_up.discard(actor)
        self._change(f"rank {actor} joined", now_s)

    def feed_lost(self, actor: Actor, now_s: float) -> None:
        """A member went without having finished."""
        self._catching_up.discard(actor)
        self._change(f"rank {actor} was lost", now_s)

    def feed_level(self, actor: Actor, level: bool, now_s: float) -> None:
        """A newcomer takes snapshot and log (not ``level``), or has caught up, or went meanwhile."""
        if not level:
            self._catching_up.add(actor)
            self._last_s = now_s
        elif actor in self._catching_up:
            self._catching_up.remove(actor)
            self._last_s = now_s

    def _change(self, what: str, now_s: float) -> None:
        if self._changes and self._changes[-1][0] == now_s:
            what = f"{self._changes.pop()[1]}, {what}"
        self._changes.append((now_s, what))
        self._last_s = now_s

    def decide(self, now_s: float) -> list[Verdict]:
        """What began and what ended since the last call."""
        limits = self._limits
        while self._changes and self._changes[0][0] < now_s - limits.window_s:
            self._changes.popleft()
        if self._catching_up or len(self._changes) >= limits.changes:
            self._news.begin(self._verdict())
        if None in self._news and not self._catching_up:
            quiet_s = now_s - self._last_s
            if quiet_s >= limits.quiet_s:
                self._changes.clear()  # they are answered: another fault takes new ones
                self._news.end(None, 0.0, f"nobody came or went for {quiet_s:.0f} s")
        return self._news.take()

    def _verdict(self) -> Verdict:
        told = [what for _, what in self._changes]
        told += [f"rank {actor} is not level yet" for actor in sorted(self._catching_up)]
        return Verdict(
            detector=NAME,
            signal="changes",
            fault=FaultEvent.NODE_CHURN_HIGH,
            subject=None,
            value=float(len(told)),
            threshold=0.0 if self._catching_up else float(self._limits.changes),
            unit="changes",
            why=f"within {self._limits.window_s:.0f} s: {', '.join(told)}",
        )

    @property
    def standing(self) -> list[Verdict]:
        """The churn, while it goes on."""
        return self._news.standing

    def forget(self, actor: Actor) -> None:
        """The newcomer is gone; that it came and went stays a change."""
        self._catching_up.discard(actor)


PLUGIN = Spec(NAME, frozenset({FaultEvent.NODE_CHURN_HIGH}), "node_churn", Churn)
