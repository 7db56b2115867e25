"""Shared state by definition: every update knows all that happened before it, as a set of names."""

from __future__ import annotations

from dataclasses import dataclass, field

from cascade_runtime.state.replica import Replica, Stand, Update
from cascade_runtime.vocabulary.identity import Actor, Dot

STATE = "s"


@dataclass
class Process:
    """A replica beside what it should hold."""

    actor: Actor
    replica: Replica
    applied: list[Dot] = field(default_factory=list)
    """In the order in which they were applied; what a stand brought comes in no order."""
    offered: set[Dot] = field(default_factory=set)
    """What has arrived, applied or not."""


class World:
    """Processes, the bag of what is on its way, and the past of each update."""

    def __init__(self, size: int) -> None:
        self.processes = [Process(Actor(r), Replica(causal=True)) for r in range(size)]
        self.updates: dict[Dot, Update] = {}
        self.past: dict[Dot, frozenset[Dot]] = {}
        """All that happened before it, without itself."""
        self.on_the_way: list[tuple[int, Update]] = []

    def put(self, who: int, key: str) -> None:
        process = self.processes[who]
        before = frozenset(process.applied)
        update = process.replica.put(process.actor, STATE, key, b"%d" % len(self.updates))
        assert update.dot not in self.updates
        assert update.version == 1 + max(
            (self.updates[d].version for d in before if self.updates[d].key == key), default=0
        )
        self.updates[update.dot] = update
        self.past[update.dot] = before
        process.applied.append(update.dot)
        process.offered.add(update.dot)
        assert self.told_past(update) == before
        own = Dot(process.actor.rank, 0, update.counter - 1) if update.counter > 1 else None
        known = self.past[own] if own is not None else frozenset()
        assert not known.intersection(update.deps), "known before its author's last one"
        self.on_the_way += [(o, update) for o in range(len(self.processes)) if o != who]

    def told_past(self, update: Update) -> frozenset[Dot]:
        """What its deps and its author's order say happened before it."""
        found: set[Dot] = set()
        waiting = [update]
        while waiting:
            one = waiting.pop()
            needs = list(one.deps)
            if one.counter > 1:
                needs.append(Dot(one.author.rank, one.author.incarnation, one.counter - 1))
            for dot in needs:
                if dot not in found:
                    found.add(dot)
                    waiting.append(self.updates[dot])
        return frozenset(found)

    def deliver(self, who: int, update: Update) -> None:
        process = self.processes[who]
        process.offered.add(update.dot)
        for applied in process.replica.receive(update):
            assert applied.dot not in process.applied, "applied twice"
            assert self.past[applied.dot] <= set(process.applied), "before its cause"
            process.applied.append(applied.dot)

    def sync(self, who: int, source: int) -> None:
        """As after a connection that broke: the clock one way, what is lacking the other way."""
        process, other = self.processes[who], self.processes[source]
        lacking = other.replica.since(process.replica.clock())
        if lacking is not None:
            for update in lacking:
                self.deliver(who, update)
        else:
            self.take(who, other.replica.stand("stand"))
        assert set(other.applied) <= set(process.applied)

    def take(self, who: int, stand: Stand) -> None:
        process = self.processes[who]
        ready = process.replica.take(stand) or []
        covered = {
            Dot(d.rank, d.incarnation, n) for d in stand.clock for n in range(1, d.counter + 1)
        }
        process.applied += sorted(covered - set(process.applied))
        process.offered |= covered
        for applied in ready:
            assert self.past[applied.dot] <= set(process.applied), "before its cause"
            process.applied.append(applied.dot)

    def check(self) -> None:
        """Everything that can be applied is, nothing else, and of each key the right one stands."""
        for process in self.processes:
            applied = set(process.applied)
            held = process.offered - applied
            assert not [d for d in held if self.past[d] <= applied], "held back for nothing"
            assert {u.dot for u, _ in process.replica.waiting()} == held
            for update, missing in process.replica.waiting():
                assert missing and set(missing) <= self.past[update.dot] - applied
            counts: dict[Actor, int] = {}
            for dot in applied:
                counts[dot.actor] = counts.get(dot.actor, 0) + 1
            assert {d.actor: d.counter for d in process.replica.clock()} == counts
            stands: dict[str, Update] = {}
            for dot in applied:
                update = self.updates[dot]
                best = stands.get(update.key)
                if best is None or (best.version, best.author) < (update.version, update.author):
                    stands[update.key] = update
            assert process.replica.entries(STATE) == stands
            assert process.replica.num_bytes == sum(len(u.value) for u in stands.values())
            for key, update in stands.items():  # the order of versions follows cause and effect
                for dot in applied:
                    if self.updates[dot].key == key:
                        assert update.dot not in self.past[dot]
