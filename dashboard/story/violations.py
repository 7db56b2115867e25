"""Broken promises, each with at most five steps that show how it came about."""

from __future__ import annotations

from typing import Any

from analyzer.codes import NEVER_VIOLATED
from cascade_runtime.vocabulary.report import Report, Violation
from dashboard.story.facts import Facts
from dashboard.story.model import Step, ViolationPart
from dashboard.story.names import GroupNames
from dashboard.story.words import plain

MAX_VIOLATIONS = 500
MAX_STEPS = 5
MAX_WITNESS = 40

_FIRST = 2
"""Of a long witness the first two events are steps, the last ones, and the row that is reported."""


def counts(violation: Violation) -> bool:
    """Whether it makes a verdict: neither inferred nor only about the evidence."""
    return not violation.inferred and violation.code not in NEVER_VIOLATED


def in_order(report: Report) -> list[Violation]:
    """Those that count first, then in time."""
    return sorted(
        report.violations,
        key=lambda v: (not counts(v), v.wall_ns, v.rank, v.incarnation, v.seq, v.code, v.sentence),
    )


def violations_of(facts: Facts, names: GroupNames) -> list[ViolationPart]:
    """The first MAX_VIOLATIONS."""
    if facts.report is None:
        return []
    seen: dict[str, int] = {}
    found = []
    for violation in in_order(facts.report)[:MAX_VIOLATIONS]:
        name = f"{violation.code}:{violation.rank}:{violation.incarnation}:{violation.seq}"
        seen[name] = seen.get(name, 0) + 1
        again = f":{seen[name]}" if seen[name] > 1 else ""
        found.append(_part(facts, violation, name + again, names(violation.group_id)))
    return found


def _part(facts: Facts, violation: Violation, name: str, group: str) -> ViolationPart:
    return ViolationPart(
        id=name,
        code=violation.code,
        name=violation.name,
        severity=violation.severity,
        rank=violation.rank,
        incarnation=violation.incarnation,
        seq=violation.seq,
        group=group,
        epoch=violation.epoch,
        regime=violation.regime,
        at_ns=facts.since(violation.wall_ns),
        sentence=plain(violation.sentence, 600),
        inferred=violation.inferred,
        steps=_steps(facts, violation),
        witness=[_event(facts, event) for event in violation.witness[:MAX_WITNESS]],
    )


def _event(facts: Facts, event: dict[str, Any]) -> dict[str, Any]:
    """A witness event as in the report, with its time on the story's scale too."""
    wall = event.get("wall_ns")
    shown = {k: plain(v, 300) if isinstance(v, str) else v for k, v in event.items()}
    shown.pop("wall_ns", None)  # too large for a JavaScript number
    return shown | {"at_ns": None if wall is None else facts.since(wall)}


def _steps(facts: Facts, violation: Violation) -> list[Step]:
    witness = violation.witness
    steps: list[Step] = []
    before = -1
    for place in _places(violation):
        left_out = place - before - 1
        edge = witness[place].get("edge")
        if left_out:
            edge = "1 more event between" if left_out == 1 else f"{left_out:,} more events between"
        steps.append(_step(facts, witness[place], edge))
        before = place
    return steps


def _places(violation: Violation) -> list[int]:
    """Which of the witness's events are steps: MAX_STEPS at most, the reported row among them."""
    num = len(violation.witness)
    if num <= MAX_STEPS:
        return list(range(num))
    places = [*range(_FIRST), *range(num - (MAX_STEPS - _FIRST), num)]
    reported = (violation.rank, violation.incarnation, violation.seq)
    at = [i for i, event in enumerate(violation.witness) if _row(event) == reported]
    if at and not set(at) & set(places):
        places[_FIRST] = at[-1]
    return places


def _row(event: dict[str, Any]) -> tuple[Any, Any, Any]:
    return event.get("rank"), event.get("incarnation"), event.get("seq")


def _step(facts: Facts, event: dict[str, Any], edge: str | None) -> Step:
    wall = event.get("wall_ns")
    return Step(
        text=plain(str(event.get("what", "")), 300),
        rank=event.get("rank", -1),
        incarnation=event.get("incarnation", 0),
        seq=event.get("seq", -1),
        at_ns=None if wall is None else facts.since(wall),
        edge=plain(edge) or None,
    )
