"""A member's parameters are not what the others have, or are not numbers.

In STRONG all members hold the same bytes after every decided step, and each tells the digest of one
object a step, in turn. Whoever differs from more than half of those that told is corrupt. Where no
majority agrees nobody can say whose bytes are right: then it concerns all.

It fires at the first differing digest, or when a member has a NaN in its parameters (which nothing tells
it so far, docs/detectors.md); equal bytes have equal digests, so there is nothing to wait for. It clears
only when the member was resynchronised. It
cannot tell a flipped bit from a program that computes differently on one host, and it sees an object
only when its turn comes.
"""

from __future__ import annotations

from collections import Counter

from cascade_runtime.detectors._base import News, Spec, Verdict
from cascade_runtime.detectors._steps import WholeStep
from cascade_runtime.vocabulary.fault import FaultEvent
from cascade_runtime.vocabulary.identity import Actor

NAME = "checksum"


class Checksum:
    """Judges digests of decided versions."""

    def __init__(self, limits: None = None) -> None:
        del limits  # equal or not: there is nothing to set
        self._news = News()

    def feed_step(self, step: WholeStep, now_s: float) -> None:
        """A decided step, as all members told it."""
        del now_s  # it is so or not, at any time
        told = Counter(step.digests.values())
        if len(told) < 2:
            return
        (digest, most), *_ = told.most_common(1)
        if 2 * most <= len(step.digests):
            self._begin(None, len(told), f"after step {step.step} no majority of members agrees")
            return
        for actor, other in step.digests.items():
            if other != digest:
                self._begin(
                    actor,
                    len(told),
                    f"after step {step.step} rank {actor} holds other bytes than {most} others",
                )

    def feed_nan(self, actor: Actor, step: int) -> None:
        """The member found a NaN in its parameters after ``step``."""
        self._begin(actor, 1, f"after step {step} rank {actor} has NaN in its parameters")

    def _begin(self, subject: Actor | None, num_digests: int, why: str) -> None:
        if subject in self._news:
            return  # the first sentence stays: later ones follow from it
        self._news.begin(
            Verdict(
                detector=NAME,
                signal="digests",
                fault=FaultEvent.STATE_CORRUPTION,
                subject=subject,
                value=float(num_digests),
                threshold=1.0,
                unit="different digests",
                why=why,
            )
        )

    def feed_resynchronised(self, actor: Actor | None) -> None:
        """The member's parameters were replaced by those of the others (None: everybody's)."""
        whose = "all parameters" if actor is None else f"rank {actor}'s parameters"
        self._news.end(actor, 1.0, f"{whose} were replaced")

    def decide(self, now_s: float) -> list[Verdict]:
        """What began and what ended since the last call."""
        del now_s  # it is so or not, at any time
        return self._news.take()

    @property
    def standing(self) -> list[Verdict]:
        """Who is corrupt."""
        return self._news.standing

    def forget(self, actor: Actor) -> None:
        """The rank is gone, and its bytes with it."""
        self._news.forget(actor)


PLUGIN = Spec(NAME, frozenset({FaultEvent.STATE_CORRUPTION}), None, Checksum)
