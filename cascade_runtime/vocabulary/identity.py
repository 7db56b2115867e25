"""Who did it, and which update it was: actors, dots, event references, clocks.

An actor is (rank, incarnation): a restarted rank is another actor. A dot names one update of one
object by one actor. A clock (version vector, also called a frontier) says which updates are covered.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from cascade_runtime.vocabulary.scalars import Counter, Incarnation, Rank, Seq


class Actor(msgspec.Struct, frozen=True, array_like=True, order=True, gc=False):
    """(rank, incarnation); ranks count all actors of a job, host agents after the ranks."""

    rank: Rank
    incarnation: Incarnation = 0

    def __str__(self) -> str:
        return f"{self.rank}" if self.incarnation == 0 else f"{self.rank}.{self.incarnation}"


class Dot(msgspec.Struct, frozen=True, array_like=True, order=True, gc=False):
    """The name of one update: counters of one actor run from 1 over all objects, without holes."""

    rank: Rank
    incarnation: Incarnation
    counter: Counter

    @property
    def actor(self) -> Actor:
        """The update's author."""
        return Actor(self.rank, self.incarnation)


class EventRef(msgspec.Struct, frozen=True, array_like=True, order=True, gc=False):
    """The address of one recorded row."""

    rank: Rank
    incarnation: Incarnation
    seq: Seq


class Clock:
    """A version vector: per actor, all of its updates up to a counter are covered."""

    __slots__ = ("_upto",)

    def __init__(self, dots: Iterable[Dot] = ()) -> None:
        self._upto: dict[Actor, int] = {}
        for dot in dots:
            self.cover(dot)

    def cover(self, dot: Dot) -> None:
        """Extend the clock to cover ``dot`` and everything its author did before it."""
        if dot.counter > self._upto.get(dot.actor, 0):
            self._upto[dot.actor] = dot.counter

    def covers(self, dot: Dot) -> bool:
        """True when ``dot`` is among the covered updates."""
        return dot.counter <= self._upto.get(dot.actor, 0)

    def upto(self, actor: Actor) -> int:
        """The highest covered counter of ``actor``; 0 when none is."""
        return self._upto.get(actor, 0)

    def merge(self, other: Clock) -> Clock:
        """The least clock that covers both (a new object)."""
        return Clock([*self.dots(), *other.dots()])

    def dots(self) -> list[Dot]:
        """The clock as the schema's ``clock`` type: one dot an actor, in actor order."""
        return [Dot(a.rank, a.incarnation, c) for a, c in sorted(self._upto.items())]

    def __le__(self, other: Clock) -> bool:
        return all(counter <= other.upto(actor) for actor, counter in self._upto.items())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Clock) and self._upto == other._upto

    __hash__ = None  # type: ignore[assignment]  # mutable

    def concurrent(self, other: Clock) -> bool:
        """True when neither covers the other."""
        return not (self <= other or other <= self)

    def __repr__(self) -> str:
        return "Clock(" + ", ".join(f"{a}:{c}" for a, c in sorted(self._upto.items())) + ")"
