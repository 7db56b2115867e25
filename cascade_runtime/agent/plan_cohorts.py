"""Plans where cohorts part, and where there are several: re-cut, merged, after a loss.

While cohorts are apart each has steps of its own, so each has a cut of its own; and members have
different updates, so every view makes them level first. Whatever changes the view while they are apart
(a rank that keeps the pace again, a death, a leaving, another fault event) brings all into one cohort.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from cascade_runtime.agent.plan_parts import (
    Drains,
    Plan,
    evidence_of,
    how_lost,
    open_dots,
    ranks_of,
    was_stopped,
)
from cascade_runtime.agent.protocol import Cut, Facts, SumLevel, Trigger, View
from cascade_runtime.vocabulary.fault import FaultEvent
from cascade_runtime.vocabulary.identity import Actor, Clock, Dot
from cascade_runtime.vocabulary.policy import Decision, Policy
from cascade_runtime.vocabulary.regime import Regime


def parted(
    current: View,
    facts: Mapping[Actor, Facts],
    trigger: Trigger,
    to: Regime,
    policy: Policy,
    late: Sequence[Actor],
) -> list[list[Actor]]:
    """The cohorts that a straggler makes of one; empty when all are to stay together.

    In CAUSAL only, whatever a policy's rows say: in EVENTUAL members hold until they are equal, and
    those whose cohorts are apart are not. Not where somebody is to be rolled forward: that is of the
    one cohort's step.

    Args:
        to: the regime of the view to come.
    """
    members, slow = current.members, trigger.subject
    able = policy.cohorts.split and trigger.fault is FaultEvent.RANK_SKEW_HIGH
    if to is not Regime.CAUSAL or not able or slow not in members or len(members) < 2 or late:
        return []
    if any(facts[m].is_bound or facts[m].leaving for m in members):
        return []
    return sorted([[slow], [m for m in members if m != slow]])


def is_refused(trigger: Trigger, decision: Decision, policy: Policy) -> bool:
    """In CAUSAL, a straggler that is not set apart where the policy has nothing else for it."""
    skew = trigger.fault is FaultEvent.RANK_SKEW_HIGH and policy.cohorts.split
    return skew and not decision.changed and decision.to is Regime.CAUSAL


def why_bound(bound: list[Actor]) -> str:
    """Of members that must not be apart from the others."""
    return f"{ranks_of(bound)} cannot step by {'itself' if len(bound) == 1 else 'themselves'}"


def is_apart(current: View, facts: Mapping[Actor, Facts]) -> bool:
    """Several cohorts, or members that were not made level since there were several."""
    return len(current.cohorts) > 1 or any(f.is_apart for f in facts.values())


class _Unit(NamedTuple):
    """Members that stepped together, as they stand."""

    alive: list[Actor]
    began: int
    """The step that they stood at when this view began."""
    step: int
    """The last one that any of them decided."""
    late: list[Actor]
    source: Actor | None
    doubt: bool
    """A lost one may have decided the step after that."""


def plan_apart(
    current: View,
    facts: Mapping[Actor, Facts],
    triggers: Sequence[Trigger],
    open_debts: Iterable[Regime],
    policy: Policy,
    proposer: Actor,
) -> Plan | Drains:
    """As ``plan_next``, where cohorts are apart or not level since."""
    lost = [
        m for m in current.members if m not in facts or (facts[m].dead and not facts[m].leaving)
    ]
    # Who said LEAVE and then ended has gone all the same: no sum comes from it.
    gone = [m for m in current.members if m in lost or facts[m].dead]
    alive = [m for m in current.members if m not in gone]
    units = [u for u in _units(current, facts, gone) if u.alive]
    if not gone:
        for unit in units:
            # Whose collective failed is rolled forward by the next view: it would wait for nothing.
            broken = any(facts[m].broken for m in unit.late)
            if unit.late and unit.step > unit.began and not broken:
                return Drains(unit.step, unit.late)
    trigger, decision = _cause(current, facts, triggers, list(open_debts), policy, lost, alive)
    changed = decision is not None and decision.changed
    one = bool(
        gone
        or changed
        or trigger is not None
        or len(current.cohorts) == 1
        or any(facts[m].leaving or facts[m].is_bound for m in alive)
    )
    # Deaths that the policy has no move for are judged all the same.
    answered = [
        ref
        for t in triggers
        if t.fault is FaultEvent.GPU_FAIL_STOP and t.subject not in alive
        for ref in t.evidence
    ]
    voided = _voided(current, facts, units, gone, one)
    view = View(
        epoch=current.epoch + 1,
        regime=decision.to if decision is not None else current.regime,
        from_regime=current.regime,
        members=alive,
        cohorts=([alive] if alive else []) if one else list(current.cohorts),
        fault=_fault(trigger, lost) if changed else None,
        reason=_reason(trigger, facts, lost, gone, alive, one),
        proposer=proposer,
        evidence=evidence_of(trigger, triggers) if trigger is not None else answered,
        departed=gone,
        member_reason=_how_gone(facts, lost, gone),
        cut_step=max(
            [u.step for u in units] + [facts[m].decided for m in alive], default=current.cut_step
        ),
        cuts=[Cut(u.alive, u.step, u.source if u.late else None, u.late) for u in units],
        levels=_levels(facts, alive),
        optim_from=_furthest(facts, units) if one and alive else None,
        cut_version=max((facts[m].version for m in alive), default=0),
        voided=voided,
        in_flight=_in_flight(current, facts, alive),
    )
    return Plan(view, trigger if decision is not None else None, decision)


def _cause(
    current: View,
    facts: Mapping[Actor, Facts],
    triggers: Sequence[Trigger],
    debts: list[Regime],
    policy: Policy,
    lost: list[Actor],
    alive: list[Actor],
) -> tuple[Trigger | None, Decision | None]:
    """What this walk answers; a trigger without a decision is a rank that keeps the pace again."""
    if lost:
        told = [t for t in triggers if t.fault is FaultEvent.GPU_FAIL_STOP and t.subject in lost]
        return (told[0] if told else None), policy.decide(current.regime, FaultEvent.GPU_FAIL_STOP)
    for trigger in triggers:
        if trigger.fault is None or (trigger.certified and trigger.subject in alive):
            continue
        decision = policy.decide(current.regime, trigger.fault, debts)
        if decision.changed and decision.to is not Regime.STRONG:
            return trigger, decision
    lone = [c[0] for c in current.cohorts if len(c) == 1] if len(current.cohorts) > 1 else []
    for trigger in triggers:
        if trigger.fault is None and trigger.subject in lone:
            return trigger, None
    return None, None


def _fault(trigger: Trigger | None, lost: list[Actor]) -> FaultEvent | None:
    if lost:
        return FaultEvent.GPU_FAIL_STOP
    return trigger.fault if trigger is not None else None


def _units(current: View, facts: Mapping[Actor, Facts], gone: list[Actor]) -> list[_Unit]:
    """By cohort; those of the view before where this one made them one and not all are level."""
    if len(current.cohorts) > 1 or not current.cuts:
        return [_unit(c, current.cut_of(min(c)).step, None, facts, gone) for c in current.cohorts]
    return [_unit(c.members, c.step, c.step, facts, gone) for c in current.cuts]


def _unit(
    members: list[Actor],
    began: int,
    level: int | None,
    facts: Mapping[Actor, Facts],
    gone: list[Actor],
) -> _Unit:
    # Who is level already counts the steps of the one cohort, and stands at its unit's cut.
    def step_of(m: Actor) -> int:
        return facts[m].decided if level is None or facts[m].is_apart else level

    alive = [m for m in members if m not in gone]
    step = max((step_of(m) for m in alive), default=began)
    late = [m for m in alive if step_of(m) < step]
    source = min((m for m in alive if step_of(m) == step), default=None)
    unknown = any(m not in facts for m in members)
    ahead = any(m in facts and facts[m].dead and facts[m].decided > step for m in members)
    waits = all(facts[m].launched_all and m not in late for m in alive)
    return _Unit(alive, began, step, late, source, ahead or (unknown and waits))


def _known(facts: Mapping[Actor, Facts], alive: Iterable[Actor]) -> Clock:
    """What any of them has decided or folded."""
    return Clock(d for m in alive for d in [*facts[m].frontier, *facts[m].sums])


def _in_flight(current: View, facts: Mapping[Actor, Facts], alive: list[Actor]) -> list[Dot]:
    known = _known(facts, alive)
    authors = [min(c) for c in current.cohorts if c]
    authors += [min(c.members) for c in current.cuts if c.members]
    return [
        dot
        for author in dict.fromkeys(authors)
        if author in facts
        for dot in open_dots(author, facts[author], known)
    ]


def _voided(
    current: View,
    facts: Mapping[Actor, Facts],
    units: list[_Unit],
    gone: list[Actor],
    one: bool,
) -> list[Dot]:
    """Open dots of who is gone, of who is no author any more, and where it is in doubt what they name.

    What somebody has folded of a lost author is no open dot: all get it by the levels.
    """
    alive = [m for u in units for m in u.alive]
    author = min(alive, default=None)
    in_doubt = {m for u in units if u.doubt for m in u.alive}
    return [
        dot
        for dot in _in_flight(current, facts, alive)
        if alive and (dot.actor in gone or (one and dot.actor != author) or dot.actor in in_doubt)
    ]


def _levels(facts: Mapping[Actor, Facts], alive: list[Actor]) -> list[SumLevel]:
    """Running sums that not all members have alike, each from the member with the most of it."""
    held = {m: Clock(facts[m].sums) for m in alive}
    levels = []
    for origin in sorted({d.actor for m in alive for d in facts[m].sums}):
        has = {m: held[m].upto(origin) for m in alive}
        most, least = max(has.values()), min(has.values())
        if most > least:
            source = min(m for m in alive if has[m] == most)
            levels.append(SumLevel(origin, most, least, source))
    return levels


def _furthest(facts: Mapping[Actor, Facts], units: list[_Unit]) -> Actor | None:
    """Whose frontier covers most updates, not counting who is still to be rolled forward."""
    able = [m for u in units for m in u.alive if m not in u.late]
    return min(able, key=lambda m: (-sum(d.counter for d in facts[m].frontier), m), default=None)


def _how_gone(facts: Mapping[Actor, Facts], lost: list[Actor], gone: list[Actor]) -> str:
    if not gone:
        return ""
    if not lost:
        return "finished"
    return "stopped" if all(was_stopped(m, facts) for m in lost) else "failed"


def _reason(
    trigger: Trigger | None,
    facts: Mapping[Actor, Facts],
    lost: list[Actor],
    gone: list[Actor],
    alive: list[Actor],
    one: bool,
) -> str:
    if trigger is not None:
        return trigger.reason
    if lost:
        return how_lost(lost, facts)
    if gone:
        return f"{ranks_of(gone)} finished"
    leaving = [m for m in alive if facts[m].leaving]
    if leaving:
        return f"{ranks_of(leaving)} about to leave: all step together first"
    if bound := [m for m in alive if facts[m].is_bound]:
        return why_bound(bound)
    return "all step together" if one else "nothing to change"
