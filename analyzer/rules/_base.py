"""What a rule file defines: ``PLUGIN = Rule(...)``, and what its check gives back."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from analyzer.codes import NAMES
from analyzer.history import History
from analyzer.told import Told


@dataclass(frozen=True)
class Finding:
    """One broken promise, as data.

    Attributes:
        row: the row it is reported at.
        sentence: what broke, in words for a person.
        witness: rows that prove it, in order; happens-before paths are put between them.
        inferred: rests on inferred facts, so it never gives more than unknown.
    """

    row: int
    sentence: str
    witness: tuple[int, ...]
    inferred: bool = False


@dataclass(frozen=True)
class Accused:
    """An actor that a check points at without, or beside, a finding."""

    actor: int
    certain: bool
    why: str
    witness: tuple[int, ...] = ()


@dataclass
class Outcome:
    """What a check gives back.

    Attributes:
        findings: broken promises with a complete witness.
        num_checked: how many facts were judged.
        unknown: why the check cannot say ok although it found nothing (or None).
        not_checked: why nothing could be judged at all (or None).
        suspects: actors that the evidence points at.
    """

    findings: list[Finding] = field(default_factory=list)
    num_checked: int = 0
    unknown: str | None = None
    not_checked: str | None = None
    suspects: list[Accused] = field(default_factory=list)

    def cannot_say(self, reason: str | None) -> None:
        """Note why the check is unknown; the first reason stays."""
        if self.unknown is None:
            self.unknown = reason

    def take(self, told: Iterable[Told]) -> None:
        """A finding for each row that breaks the promise; why nobody can say of another."""
        for one in told:
            if one.unknown:
                self.cannot_say(one.unknown)
            else:
                self.findings.append(Finding(one.row, one.sentence, one.witness))


Check = Callable[[History], Outcome]


@dataclass(frozen=True)
class Rule:
    """A rule of the contract (section 4.4).

    Attributes:
        code: as ``L3``; the name follows from it.
        severity: error, warning or info.
        needs: tables that must be recorded, else the check is not_checked; of an inner tuple one
            is enough.
        check: judges a history.
        watches: tables whose loss (a gap, a rank without events) turns ok into unknown; empty for
            rules that accuse by what is there, not by what is absent.
        yields_to: rules that say the same of a row in narrower words; what they report is not
            reported again.
    """

    code: str
    severity: str
    needs: tuple[str | tuple[str, ...], ...]
    check: Check
    watches: tuple[str, ...] = ()
    yields_to: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The rule's name, from the one list of codes."""
        return NAMES[self.code]

    def lacks(self, recorded: frozenset[str]) -> str | None:
        """Why the rule cannot be checked on these recorded tables; None when it can."""
        for need in self.needs:
            either = (need,) if isinstance(need, str) else need
            if recorded.isdisjoint(either):
                return f"{' or '.join(either)} was not recorded"
        return None
