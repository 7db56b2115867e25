"""Which updates of other origins may be folded now, and in which order their rows are written.

An origin tells its newest running sum, not single updates, so what arrives is a jump: from the counter
that is folded here to the one in the snapshot. A set of snapshots may be folded when everything that
their authors had folded before is folded here or in the set. The largest such set is what is left when
those that miss something are taken out, again and again.

No torch and no waiting here: the clock's arithmetic alone.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from cascade_runtime.vocabulary.identity import Actor, Clock, Dot
from cascade_runtime.vocabulary.scalars import Counter


class Step(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The update of one decided step of an origin: one dot an object, all with the same deps.

    Attributes:
        upto: counter of its last dot.
        deps: nearest dots of other origins that its author had folded since the step before.
    """

    upto: Counter
    deps: list[Dot]


class Snapshot(msgspec.Struct, frozen=True, array_like=True):
    """What an origin's running sum holds.

    Attributes:
        origin: its author.
        upto: counter of the last dot in it.
        needs: the author's clock of other origins when it issued that dot.
        steps: those that the receiver has not acknowledged, in counter order; the last one ends with
            ``upto``.
    """

    origin: Actor
    upto: Counter
    needs: list[Dot]
    steps: list[Step]


class NotCausal(ValueError):
    """Steps that depend on each other in a circle, or on what nobody has told."""


def foldable(frontier: Clock, newest: Iterable[Snapshot]) -> list[Snapshot]:
    """The largest set of snapshots that may be folded together, in (rank, incarnation) order.

    Args:
        frontier: what is folded here, the own updates among it.
        newest: of each origin at most one; those that say nothing new are left out.
    """
    upto = _counters(frontier)
    told = {s.origin: s for s in newest if s.upto > upto.get(s.origin, 0)}
    needs = {o: [(d.actor, d.counter) for d in s.needs] for o, s in told.items()}
    while True:
        missing = [
            origin
            for origin in told
            if any(
                upto.get(actor, 0) < counter and (actor not in told or told[actor].upto < counter)
                for actor, counter in needs[origin]
            )
        ]
        if not missing:
            return [told[origin] for origin in sorted(told)]
        for origin in missing:
            del told[origin]


def in_order(frontier: Clock, chosen: Iterable[Snapshot]) -> list[tuple[Actor, Step]]:
    """The steps that folding ``chosen`` applies, each after all that it depends on.

    Steps of one origin stay in counter order. The order is the same wherever frontier and snapshots
    are.

    Raises:
        NotCausal: there is no such order.
    """
    upto = _counters(frontier)
    waiting = {
        s.origin: [
            (step, [(d.actor, d.counter) for d in step.deps])
            for step in reversed(s.steps)
            if step.upto > upto.get(s.origin, 0)
        ]
        for s in sorted(chosen, key=lambda s: s.origin)
    }
    ordered: list[tuple[Actor, Step]] = []
    left = sum(map(len, waiting.values()))
    while left:
        for origin, steps in waiting.items():
            while steps and all(upto.get(a, 0) >= c for a, c in steps[-1][1]):
                step, _ = steps.pop()
                upto[origin] = step.upto
                ordered.append((origin, step))
        still = sum(map(len, waiting.values()))
        if still == left:
            where = ", ".join(f"{o}:{s[-1][0].upto}" for o, s in waiting.items() if s)
            raise NotCausal(f"updates {where} depend on what cannot come before them")
        left = still
    return ordered


def dots_of(origin: Actor, step: Step, num_objects: int) -> list[Dot]:
    """A step's dots, one an object, in the order of the objects."""
    first = step.upto - num_objects + 1
    return [Dot(origin.rank, origin.incarnation, first + i) for i in range(num_objects)]


def _counters(clock: Clock) -> dict[Actor, int]:
    return {d.actor: d.counter for d in clock.dots()}
