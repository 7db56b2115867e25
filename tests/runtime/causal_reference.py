"""CAUSAL with several cohorts in one process: every cohort's training, its sums, and who tells whom when.

All members of a cohort compute the same bytes, so a cohort has one replica here. ``Replay`` is the
definition in numpy and shares nothing with the runtime's own sums.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable

import numpy as np
import torch
from torch import nn

from cascade_runtime.delivery import Snapshot, Step, foldable, in_order
from cascade_runtime.rank.objects import raw_bytes
from cascade_runtime.rank.sums import Own, Sums, Told
from cascade_runtime.vocabulary.identity import Actor, Clock, Dot

Batches = Callable[[int, int], tuple[torch.Tensor, torch.Tensor]]
"""(rank, number of its step) to inputs and labels."""


def values_of(model: nn.Module) -> list[np.ndarray]:
    return [p.detach().numpy().copy() for p in model.parameters()]


class Replay:
    """base, then each origin's deltas added up in counter order, added in (rank, incarnation) order."""

    def __init__(self, base: list[np.ndarray]) -> None:
        self.base = base
        self.deltas: dict[Actor, list[list[np.ndarray]]] = {}

    def add(self, origin: Actor, delta: list[np.ndarray]) -> None:
        self.deltas.setdefault(origin, []).append(delta)

    def fold(self, counts: dict[Actor, int]) -> list[np.ndarray]:
        """With so many updates of each origin."""
        folded = [b.copy() for b in self.base]
        for origin in sorted(self.deltas):
            sums = [np.zeros_like(b) for b in self.base]
            for delta in self.deltas[origin][: counts.get(origin, 0)]:
                for total, part in zip(sums, delta, strict=True):
                    np.add(total, part, out=total)
            if counts.get(origin, 0):
                for value, total in zip(folded, sums, strict=True):
                    np.add(value, total, out=value)
        return folded


class Cohort:
    """One replica, its optimizer, and what it knows of the others."""

    def __init__(self, ranks, members, build, optimize, stride=3) -> None:
        self.ranks, self.author = sorted(ranks), Actor(min(ranks))
        self.weight = len(ranks) / members
        self.model = build()
        self.optimizer = optimize(self.model)
        self.sums = Sums(self.model.parameters())
        self.stride = stride
        self.frontier = Clock()
        self.steps: list[Step] = []
        self.needs: list[Dot] = []
        self.inbox: dict[Actor, tuple[Snapshot, bytes]] = {}
        self.acked: dict[Actor, int] = {}
        self.rows: list[tuple[Actor, int]] = []
        self._deps_told = Clock()

    @property
    def issued(self) -> int:
        return self.frontier.upto(self.author)

    @property
    def num_steps(self) -> int:
        return self.issued // self.stride

    def gradients(self, batches: Batches) -> float:
        """The mean over the cohort's ranks; answers their mean loss."""
        loss_of, losses = nn.CrossEntropyLoss(), []
        self.optimizer.zero_grad()
        for rank in self.ranks:
            inputs, labels = batches(rank, self.num_steps + 1)
            loss = loss_of(self.model(inputs), labels)
            (loss / len(self.ranks)).backward()
            losses.append(float(loss.detach()))
        return sum(losses) / len(losses)

    def step(self, batches: Batches, replay: Replay | None = None) -> float:
        """A step of the cohort, and at its end the fold of what has come."""
        loss = self.gradients(batches)
        others = [d for d in self.frontier.dots() if d.actor != self.author]
        deps = [d for d in others if d.counter > self._deps_told.upto(d.actor)]
        self._deps_told, upto = Clock(self.frontier.dots()), self.issued + self.stride
        before = values_of(self.model)
        self.optimizer.step()
        if replay is not None:
            weight = before[0].dtype.type(self.weight)
            pairs = zip(values_of(self.model), before, strict=True)
            replay.add(self.author, [(a - b) * weight for a, b in pairs])
        self.steps.append(Step(upto, deps))
        self.needs = others
        self.frontier.cover(Dot(self.author.rank, 0, upto))
        self.fold(Own(self.author, upto, self.weight))
        return loss

    def fold(self, own: Own | None = None) -> list[Snapshot]:
        """Take over what may be folded."""
        chosen = foldable(self.frontier, [s for s, _ in self.inbox.values()])
        for origin, step in in_order(self.frontier, chosen):
            assert all(self.frontier.covers(d) for d in step.deps), "effect before its cause"
            self.frontier.cover(Dot(origin.rank, origin.incarnation, step.upto))
            self.rows.append((origin, step.upto))
        told = [Told(s.origin, s.upto, self.inbox.pop(s.origin)[1]) for s in chosen]
        self.sums.advance(own, told)
        return chosen

    def snapshot(self, receiver: Actor) -> tuple[Snapshot, bytes]:
        """The newest sum, for whom it is."""
        steps = [s for s in self.steps if s.upto > self.acked.get(receiver, 0)]
        told = Snapshot(self.author, self.issued, self.needs, steps)
        return told, bytes(self.sums.payload(self.author))

    @property
    def bytes(self) -> bytes:
        return b"".join(bytes(raw_bytes(p)) for p in self.model.parameters())


class World:
    """All cohorts of a job."""

    def __init__(self, cohorts, build, optimize, batches: Batches) -> None:
        members = sum(map(len, cohorts))
        self.cohorts = [Cohort(c, members, build, optimize) for c in cohorts]
        self.batches = batches
        self.replay = Replay(values_of(self.cohorts[0].model))

    def step(self, i: int) -> float:
        return self.cohorts[i].step(self.batches, self.replay)

    def deliver(self, source: int, target: int) -> None:
        """The newest sum arrives; it is folded at the target's next step."""
        if not self.cohorts[source].steps:
            return
        told = self.cohorts[source].snapshot(self.cohorts[target].author)
        if told[0].upto > self.cohorts[target].frontier.upto(told[0].origin):
            self.cohorts[target].inbox[told[0].origin] = told

    def level(self) -> None:
        """As a walk does: everybody takes everybody's sum."""
        told = [Told(c.author, c.issued, bytes(c.sums.payload(c.author)))
                for c in self.cohorts if c.issued]  # fmt: skip
        for cohort in self.cohorts:
            cohort.inbox.clear()
            cohort.sums.advance(None, [t for t in told if t.origin != cohort.author])
            for t in told:
                cohort.frontier.cover(Dot(t.origin.rank, 0, t.upto))

    def expected(self, cohort: Cohort) -> bytes:
        """What the definition says of the cohort's frontier."""
        counts = {d.actor: d.counter // cohort.stride for d in cohort.frontier.dots()}
        return b"".join(v.tobytes() for v in self.replay.fold(counts))


class Timeline:
    """A world in time: steps take as long as the cohort's slowest rank, messages take ``latency_s``.

    One snapshot at a time for each pair, the newest wins, folds are acknowledged, and nobody issues a
    step that is more than ``bound`` ahead of what another cohort has folded.
    """

    def __init__(self, world: World, step_s: list[float], bound: int, latency_s: float = 0.01):
        self.world, self.step_s, self.bound, self.latency_s = world, step_s, bound, latency_s
        self.now, self.num_samples, self.furthest = 0.0, 0, 0
        self.curve: list[tuple[int, float]] = []
        self._events: list[tuple[float, int, str, int, int, object]] = []
        self._under_way: set[tuple[int, int]] = set()
        self._waits: set[int] = set()
        self._count = 0
        self._random = random.Random(1)
        for i in range(len(step_s)):
            self._begin(i)

    def _at(self, after_s: float, kind: str, i: int, j: int = 0, what: object = None) -> None:
        self._count += 1
        heapq.heappush(self._events, (self.now + after_s, self._count, kind, i, j, what))

    def _begin(self, i: int) -> None:
        cohort = self.world.cohorts[i]
        others = [c.author for c in self.world.cohorts if c is not cohort]
        least = min((cohort.acked.get(a, 0) for a in others), default=cohort.issued)
        ahead = (cohort.issued + cohort.stride - least) // cohort.stride
        if ahead > self.bound:
            self._waits.add(i)
            return
        self.furthest = max(self.furthest, ahead)
        self._waits.discard(i)
        self._at(self.step_s[i], "step", i)

    def run(self, num_samples: int, batch: int) -> None:
        """Until so many samples are trained on, over all ranks."""
        cohorts = self.world.cohorts
        while self.num_samples < num_samples:
            self.now, _, kind, i, j, what = heapq.heappop(self._events)
            if kind == "step":
                before = Clock(cohorts[i].frontier.dots())
                loss = self.world.step(i)
                self.num_samples += batch * len(cohorts[i].ranks)
                self.curve.append((self.num_samples, loss))
                for source, other in enumerate(cohorts):
                    upto = cohorts[i].frontier.upto(other.author)
                    if source != i and upto > before.upto(other.author):
                        self._at(self.latency_s, "folded", source, i, upto)
                    if source != i:
                        self._send(i, source)
                self._begin(i)
            elif kind == "arrives":
                cohorts[j].inbox[cohorts[i].author] = what
            else:  # i's sum is folded at j
                cohorts[i].acked[cohorts[j].author] = what
                self._under_way.discard((i, j))
                self._send(i, j)
                if i in self._waits:
                    self._begin(i)

    def _send(self, i: int, j: int) -> None:
        source, target = self.world.cohorts[i], self.world.cohorts[j].author
        if (i, j) not in self._under_way and source.issued > source.acked.get(target, 0):
            self._under_way.add((i, j))
            after_s = self.latency_s * (1 + self._random.random())
            self._at(after_s, "arrives", i, j, source.snapshot(target))
