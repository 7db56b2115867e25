"""A modelled newcomer: what rank/joining.py does, as far as the walk can see it.

Snapshot and log are one move, ``take``: the state of its source as it is now, or, once, as it was when
the source died (what had been sent is still in the socket).
"""

from __future__ import annotations

from cascade_runtime.agent.protocol import (
    Acked,
    Commit,
    Hello,
    Level,
    Message,
    Proposed,
    View,
    Welcome,
)
from cascade_runtime.vocabulary.identity import Actor, Clock
from tests.agent.sim_rank import Fabric, Rank


class Newcomer(Rank):
    """A rank of a later incarnation; a member once a view with it is committed."""

    def __init__(self, actor: Actor, fabric: Fabric, ranks: dict[Actor, Rank]) -> None:
        super().__init__(actor, fabric, ranks)
        self.is_member = False
        self.source: Actor | None = None
        self._epoch = -1
        """The source's, when the state was taken."""
        self._agreed: View | None = None
        self._drained: set[Actor] = set()
        """Dead sources of which nothing more comes."""

    def connect(self) -> None:
        if self.is_member:
            super().connect()
            return
        self.outbox.clear()
        self._say(Hello(self.actor, 1, self.view.epoch))
        self._tell_level()

    def _tell_level(self) -> None:
        if self.source is not None:
            self._say(Level(self.actor, self.source, self._epoch, self.decided))

    def moves(self) -> list[str]:
        if self.is_member:
            return super().moves()
        if not self.alive or self.left or self.frozen:
            return []
        able = ["read"] if self.inbox else []
        if self.fenced:  # it looks wherever it waits, for its first view too
            able.append("look")
        return able + [f"take {a}" for a in self._sources()]

    def _sources(self) -> list[Actor]:
        if self._agreed is not None:
            return []  # everybody has halted: nothing more is to come
        able = [self.source] if self.source is not None else self.view.members
        return [a for a in able if self._has_news(self._ranks[a])]

    def _has_news(self, rank: Rank) -> bool:
        if rank.view.epoch < 0 or rank.left or rank.fenced or rank.actor in self._drained:
            return False
        if rank.frozen or (not rank.alive and self.source != rank.actor):
            return False
        if isinstance(rank, Newcomer) and not rank.is_member:
            return False
        return (rank.view.epoch, rank.decided, rank.actor) != (
            self._epoch,
            self.decided,
            self.source,
        )

    def move(self, what: str) -> None:
        if what == "look":
            self._sees_fence()
            return
        if not what.startswith("take "):
            super().move(what)
            return
        if self._sees_fence():
            return
        (source,) = [self._ranks[a] for a in self._sources() if f"take {a}" == what]
        self.source, self._epoch = source.actor, source.view.epoch
        self.decided, self.frontier = source.decided, Clock(source.frontier.dots())
        self.applied = dict(source.applied)
        if not source.alive:
            self._drained.add(source.actor)
        self._tell_level()

    def _read(self) -> None:
        if self.is_member:
            super()._read()
            return
        message, ask = self.inbox.popleft()
        self._ask = ask or self._ask
        self._on(message)

    def _on(self, message: Message) -> None:
        match message:
            case Proposed(view=view, ballot=ballot) if self.actor in view.members:
                if not self._is_level(view):
                    self.alive = False  # it ends rather than say that it is there
                    return
                self._agreed = view
                self._fabric.acknowledged.append((self.actor, view))
                self._say(Acked(view.epoch, ballot))
            case Welcome(view=view) | Commit(view=view) if view.epoch > self.view.epoch:
                if self.actor in view.members:
                    if not self._is_level(view):
                        self.alive = False
                        return
                    self.is_member = True
                    self.claimed = self.decided
                    self._install(view)
                    return
                self.view = view
                self.left = not view.members
                if self._agreed is not None or self.source not in (None, *view.members):
                    if self.source is not None:
                        self._say(Level(self.actor, None, -1, -1))
                    self.source, self._epoch, self._agreed = None, -1, None
            case _:
                pass

    def _is_level(self, view: View) -> bool:
        return (
            self.source is not None
            and self._epoch + 1 == view.epoch
            and self.decided == view.cut_step
        )
