"""What a detector file defines, ``PLUGIN = Spec(...)``, and what its detector gives back.

A detector is an object that is fed signals and asked to decide. It never asks for the time, reads no
file and keeps a bounded memory. ``decide`` answers what is new: a verdict where something began and
one where it ended; while all is well, and while nothing changes, it answers nothing. What has begun
and not ended is in ``standing``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import msgspec

from cascade_runtime.vocabulary.fault import FaultEvent
from cascade_runtime.vocabulary.identity import Actor
from cascade_runtime.vocabulary.policy import Policy


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """What a detector found (``what``) and the sentence that says why.

    Attributes:
        detector: name of the detector.
        signal: what was measured.
        fault: the fault event that it is taken for; None when it is named and nothing follows.
        subject: whom it concerns; None when it concerns all.
        value: in ``unit``.
        threshold: the limit that ``value`` was held against, in ``unit``.
        unit: of both.
        why: one sentence for a person.
        cleared: it is over.
    """

    detector: str
    signal: str
    fault: FaultEvent | None
    subject: Actor | None
    value: float
    threshold: float
    unit: str
    why: str
    cleared: bool = False

    @property
    def key(self) -> tuple[str, str, Actor | None]:
        """The same key: the same thing, begun or over."""
        return self.detector, self.signal, self.subject


class Detector(Protocol):
    """What all detectors have in common; each has its own ``feed``."""

    def decide(self, now_s: float) -> list[Verdict]:
        """What began and what ended since the last call, in that order of time."""
        ...

    @property
    def standing(self) -> list[Verdict]:
        """What has begun and has not ended."""
        ...

    def forget(self, actor: Actor) -> None:
        """The actor has left: nothing of it is kept, and nothing about it stands any more."""
        ...


@runtime_checkable
class Measures(Protocol):
    """A detector whose newest measured values are worth a row now and then, also when all is well."""

    @property
    def readings(self) -> list[Verdict]:
        """The newest value of each signal, with the limit that it is held against; no fault."""
        ...


@dataclass(frozen=True)
class Spec:
    """A detector as the folder knows it.

    Attributes:
        name: of the detector, as in ``health.detector``.
        faults: the fault events that it may answer; empty: it names, and nothing follows.
        limits: name of the policy's section with its limits; None when it has none.
        make: a new detector from those limits.
    """

    name: str
    faults: frozenset[FaultEvent]
    limits: str | None
    make: Callable[[Any], Detector]

    def under(self, policy: Policy) -> Detector:
        """A new detector with this policy's limits."""
        return self.make(None if self.limits is None else getattr(policy, self.limits))


class News:
    """Keeps what stands and what is to be told of it."""

    def __init__(self) -> None:
        self._standing: dict[Actor | None, Verdict] = {}
        self._new: list[Verdict] = []

    def __contains__(self, subject: Actor | None) -> bool:
        return subject in self._standing

    def begin(self, verdict: Verdict) -> None:
        """It began: told once; while it stands only its figures are renewed."""
        if verdict.subject not in self._standing:
            self._new.append(verdict)
        self._standing[verdict.subject] = verdict

    def end(self, subject: Actor | None, value: float, why: str) -> None:
        """It is over; ``value`` is what is measured now."""
        begun = self._standing.pop(subject, None)
        if begun is not None:
            self._new.append(
                msgspec.structs.replace(begun, value=value, why=why, cleared=True),
            )

    def forget(self, subject: Actor) -> None:
        """Nothing about it stands or is told any more."""
        self._standing.pop(subject, None)
        self._new = [v for v in self._new if v.subject != subject]

    def take(self) -> list[Verdict]:
        """What is new since the last call."""
        new, self._new = self._new, []
        return new

    @property
    def standing(self) -> list[Verdict]:
        """What stands, in the order in which it began."""
        return list(self._standing.values())
