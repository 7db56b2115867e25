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
"""Of a long witness the first two events are steps, and the last three."""


def counts(violation: Violation) -> bool:
    """Whether it makes a verdict: neither inferred nor only about the evidence."""
    return not violation.inferred and violation.code not in NEVER_VIOLATED


def in_order(report: Report) -> list[Violation]:
    """Those that count first, then in time."""
    return sorted(
        report.violations,
        key=lambda v: (not counts(v), v.wall_ns, v.rank, v.incarnation, v.seq, v.code),
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
        steps=_steps(facts, violation.witness),
        witness=[_event(facts, event) for event in violation.witness[:MAX_WITNESS]],
    )


def _event(facts: Facts, event: dict[str, Any]) -> dict[str, Any]:
    """A witness event as in the report, with its time on the story's scale too."""
    wall = event.get("wall_ns")
    shown = {k: plain(v, 300) if isinstance(v, str) else v for k, v in event.items()}
    shown.pop("wall_ns", None)  # too large for a JavaScript number
    return shown | {"at_ns": None if wall is None else facts.since(wall)}


def _steps(facts: Facts, witness: list[dict[str, Any]]) -> list[Step]:
    if len(witness) <= MAX_STEPS:
        return [_step(facts, event, event.get("edge")) for event in witness]
    last = MAX_STEPS - _FIRST
    left_out = len(witness) - MAX_STEPS
    steps = [_step(facts, event, event.get("edge")) for event in witness[:_FIRST]]
    for number, event in enumerate(witness[-last:]):
        edge = event.get("edge") if number else f"{left_out:,} more events between"
        steps.append(_step(facts, event, edge))
    return steps


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
