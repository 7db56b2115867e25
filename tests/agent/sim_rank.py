"""A modelled rank: what rank/member.py and rank/reducer.py do, as far as the walk can see it."""

from __future__ import annotations

from collections import deque

from cascade_runtime.agent.protocol import (
    Acked,
    Commit,
    Drain,
    Facts,
    Halt,
    Halted,
    Hello,
    Leave,
    Message,
    Proposed,
    View,
    Welcome,
)
from cascade_runtime.vocabulary.identity import Actor, Clock, Dot
from cascade_runtime.vocabulary.regime import Regime
from tests.agent.sim_fabric import NEVER, Fabric, Line


class Rank:
    """One rank. ``moves`` says what it could do now; ``move`` does it."""

    def __init__(self, actor: Actor, fabric: Fabric, ranks: dict[Actor, Rank]) -> None:
        self.actor = actor
        self.view = NEVER
        self.alive = True
        self.frozen = False
        self.fenced = False
        """Its agent put the fence up: what it sees of it is up to ``_sees_fence``."""
        self.certified: Facts | None = None
        """What its agent found after it had put up the fence."""
        self.claimed = 0
        self.left = False
        self.leaving = False
        self.halted = True
        self.entered = False
        self.launched = False
        self.draining: int | None = None
        self.decided = 0
        self.issued = 0
        self.frontier = Clock()
        self.applied: dict[tuple[Line, int], Dot] = {}
        """Whose step, and its number -> the dot that it applied."""
        self.line: Line = (0, None)
        """Whose steps it counts: those of the one cohort, or of a cohort since they parted."""
        self.is_apart = False
        self.sums: dict[Actor, int] = {}
        self.inbox: deque[tuple[Message, int]] = deque()
        self.outbox: deque[tuple[Message, int]] = deque()
        """Messages, each with the number of the ask that it is or answers."""
        self._ask = 0
        self._fabric = fabric
        self._ranks = ranks

    @property
    def cohort(self) -> list[Actor]:
        return next(c for c in self.view.cohorts if self.actor in c)

    @property
    def author(self) -> Actor:
        return min(self.cohort)

    def connect(self) -> None:
        """A new connection to the agent; what was sent on the old one and not read is lost."""
        self.outbox.clear()
        self._say(Hello(self.actor, 1, self.view.epoch))
        if self.leaving:
            self._say(Leave(self.actor, self.decided))

    def hear(self, message: Message, ask: int = 0) -> None:
        self.inbox.append((message, ask))

    def _say(self, message: Message) -> None:
        self.outbox.append((message, self._ask))

    def leave(self) -> None:
        self.leaving = True
        self._say(Leave(self.actor, self.decided))

    def can_leave(self) -> bool:
        running = self.alive and not self.frozen and not self.fenced and self.entered
        return running and not (self.halted or self.launched or self.leaving)

    # ---- moves -----------------------------------------------------------------------------------

    def moves(self) -> list[str]:
        if not self.alive or self.left or self.frozen:
            return []
        if self.claimed > self.decided:
            return ["decide"]  # it has looked at the fence already
        able = ["read"] if self.inbox else []
        running = not self.halted
        if running and self._may_enter():
            able.append("enter")
        between_steps = running and self.entered and not (self.launched or self.holds)
        if between_steps and not self.leaving and self.decided < self._fabric.limit:
            able.append("launch")
        if (running or self.draining is not None) and self._may_decide():
            able.append("claim")
        return able

    def move(self, what: str) -> None:
        if what != "decide" and self._sees_fence():
            return
        {
            "read": self._read,
            "enter": self._enter,
            "launch": self._launch,
            "claim": self._claim,
            "decide": self._decide,
        }[what]()

    def _sees_fence(self) -> bool:
        if self.fenced:
            self.left = True
        return self.left

    def _claim(self) -> None:
        self.claimed = self.decided + 1
        self._sees_fence()

    @property
    def holds(self) -> bool:
        return self.view.regime is Regime.EVENTUAL

    def _may_enter(self) -> bool:
        view = self.view
        if self.entered or view.epoch < 0 or (self.holds and not view.cuts):
            return False
        if any((view.epoch, m) not in self._fabric.arrived for m in view.members):
            return False
        if any(not self._ranks[level.source].alive for level in view.levels):
            return False  # a broadcast that never ends
        cut = view.cut_of(self.actor)
        return self.actor not in cut.behind or (view.epoch, cut.source) in self._fabric.entered

    def _enter(self) -> None:
        view = self.view
        self.entered = True
        cut = view.cut_of(self.actor)
        if self.actor in cut.behind and self.decided < cut.step:
            assert cut.source is not None
            source = self._ranks[cut.source]
            assert cut.step == self.decided + 1, "more than one step behind: nobody kept it"
            self._apply(source.applied[self.line, cut.step])
        self._become_level(view)
        self._fabric.entered.add((view.epoch, self.actor))
        if self.launched and not self.holds:
            self._under_way()

    def _become_level(self, view: View) -> None:
        if not self.is_apart:
            return
        for level in view.levels:
            source = self._ranks[level.source]
            assert source.sums[level.origin] >= level.upto, "a source that has not what it gives"
            self._take_sum(level.origin, level.upto)
        for other in view.members:
            if not self._ranks[other].is_apart and len(view.cohorts) == 1:
                assert self._ranks[other].sums == self.sums, "level, and yet not equal"
        if len(view.cohorts) == 1:
            self.is_apart = False
            self.decided = self.claimed = view.cut_step
            self.line = (view.epoch, None)

    def _take_sum(self, origin: Actor, upto: int) -> None:
        self.sums[origin] = max(self.sums.get(origin, 0), upto)
        self.frontier.cover(Dot(origin.rank, origin.incarnation, upto))

    def _launch(self) -> None:
        self.launched = True
        self._under_way()

    def _under_way(self) -> None:
        if self.actor == self.author and self.issued <= self.frontier.upto(self.actor):
            self.issued += 1  # the word, then the look at the fence, then the rows
            if self._sees_fence():
                return
            self._acts()
        if self.actor == self.author and self.is_apart:
            others = [min(c) for c in self.view.cohorts if self.actor not in c]
            told = {o: self._ranks[o].sums.get(o, 0) for o in others if self._ranks[o].alive}
            key = (self.view.epoch, self.actor, self.decided + 1)
            self._fabric.folds.setdefault(key, told)
        self._fabric.launched.add((self.view.epoch, self.decided + 1, self.actor))

    def _may_decide(self) -> bool:
        step = (self.view.epoch, self.decided + 1)
        whole = self.view.epoch not in self._fabric.broken
        return (
            whole
            and self.launched
            and all((*step, m) in self._fabric.launched for m in self.cohort)
        )

    def _decide(self) -> None:
        author = self.author
        dot = Dot(author.rank, author.incarnation, self.frontier.upto(author) + 1)
        made = self._fabric.content.setdefault(dot, set())
        made.add((self.decided + 1, tuple(self.cohort)))
        folds = self._fabric.folds.get((self.view.epoch, author, self.decided + 1), {})
        self._apply(dot)
        if self.is_apart:
            for origin, upto in folds.items():
                if upto:
                    self._take_sum(origin, upto)
        if self.draining is not None:
            self._answer()

    def _acts(self) -> None:
        """Law: after the agent has read, a fenced rank does nothing that it did not find."""
        told = self.certified
        assert told is None or self.decided <= told.decided, (
            f"{self.actor} decided behind the fence"
        )
        assert told is None or self.issued <= told.issued, f"{self.actor} issued behind the fence"

    def _apply(self, dot: Dot) -> None:
        self.decided += 1
        self._acts()
        self.applied[self.line, self.decided] = dot
        self.frontier.cover(dot)
        if self.is_apart:
            self.sums[dot.actor] = dot.counter
        elif len(self.view.cohorts) == 1:
            self.sums = {}
        self.launched = False

    # ---- the walk --------------------------------------------------------------------------------

    def _read(self) -> None:
        message, ask = self.inbox.popleft()
        self._ask = ask or self._ask
        match message:
            case Halt():
                self.halted = True
                self._answer()
            case Drain(step=step) if self.halted:
                if self.decided < step and self.launched:
                    self.draining = step
                else:
                    self._answer()
            case Proposed(view=view, ballot=ballot):
                self.halted, self.draining = True, None
                if view.epoch == self.view.epoch + 1:
                    self._fabric.acknowledged.append((self.actor, view))
                    self._say(Acked(view.epoch, ballot))
            case Welcome(view=view) if self.view.epoch < 0:
                self._install(view)
            case Commit(view=view) if view.epoch == self.view.epoch + 1:
                assert not self.fenced
                self._install(view)
            case _:
                pass

    def _answer(self) -> None:
        self.draining = None
        facts = Facts(
            decided=self.decided,
            issued=self.issued,
            frontier=self.frontier.dots(),
            launched_all=self.launched,
            leaving=self.leaving,
            is_apart=self.is_apart,
            sums=[Dot(o.rank, o.incarnation, c) for o, c in self.sums.items()],
            is_bound=bool(self.sums) and not self.is_apart,
        )
        self._say(Halted(facts))

    def _install(self, view: View) -> None:
        self.view = view
        self.entered = self.halted = False
        self.draining = None
        for dot in view.voided:
            if dot.actor in view.members:
                self.frontier.cover(dot)
        if self.actor in view.members:
            if len(view.cohorts) > 1 and not self.is_apart:
                self.is_apart, self.sums = True, {}
                self.line = (view.epoch, self.author)
            self._fabric.arrived.add((view.epoch, self.actor))
        else:
            self.left = True
