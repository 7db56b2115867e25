"""What incidents are made of, and how one is made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dashboard.story.actors import Cast
from dashboard.story.excursions import Excursion
from dashboard.story.facts import Facts
from dashboard.story.model import Gap, Incident, Silence, ViolationPart, WaitsPart

LEAST_PAD_NS = 50_000_000
_PAD = 0.5


@dataclass(frozen=True)
class Seen:
    """What incidents are made of."""

    facts: Facts
    cast: Cast
    violations: Sequence[ViolationPart]
    excursions: Sequence[Excursion]
    silent: Sequence[Silence]
    gaps: Sequence[Gap]
    waits: WaitsPart | None

    @property
    def last_ns(self) -> int:
        """The run's last row."""
        return self.facts.since(self.facts.t1_ns)


def incident(
    seen: Seen, kind: str, name: str, severity: str, at_ns: int, end_ns: int, title: str,
    said: str, sel: str | None,
) -> Incident:  # fmt: skip
    """One, with a window around it that shows it."""
    pad = max(int(_PAD * (end_ns - at_ns)), LEAST_PAD_NS)
    a, b = max(min(0, at_ns), at_ns - pad), min(max(seen.last_ns, end_ns), end_ns + pad)
    return Incident(
        id=f"{kind}:{name}",
        at_ns=at_ns,
        end_ns=end_ns,
        severity=severity,
        title=title,
        sentence=said,
        kind=kind,
        sel=sel,
        a_ns=a,
        b_ns=max(b, a + 1),
    )
