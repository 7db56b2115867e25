"""Which view comes next: a pure function of the current view, the facts and the pending triggers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from cascade_runtime.agent.plan_cohorts import (
    is_apart,
    is_refused,
    parted,
    plan_apart,
    why_bound,
)
from cascade_runtime.agent.plan_joins import plan_join
from cascade_runtime.agent.plan_parts import (
    Awaits,
    Drains,
    Plan,
    evidence_of,
    how_lost,
    in_flight_of,
    judged,
    ranks_of,
    source_of,
    voided_of,
    was_stopped,
)
from cascade_runtime.agent.protocol import Facts, Level, Trigger, View
from cascade_runtime.vocabulary.fault import FaultEvent
from cascade_runtime.vocabulary.identity import Actor, EventRef
from cascade_runtime.vocabulary.policy import Policy
from cascade_runtime.vocabulary.regime import Regime

__all__ = ["Awaits", "Drains", "Plan", "judged", "plan_next"]


def plan_next(
    current: View,
    facts: Mapping[Actor, Facts],
    triggers: Sequence[Trigger],
    open_debts: Iterable[Regime],
    policy: Policy,
    proposer: Actor,
    newcomers: Sequence[Level] = (),
) -> Plan | Drains | Awaits:
    """The next view, or whom to drain or wait for first.

    ``facts`` holds every member of ``current`` that answered, certified deaths among them; a member
    that is not in it did not answer in time and counts as lost. A death goes before a leaving, a
    leaving before a change of regime, that before a joining. ``newcomers`` stand in this epoch by the
    log of a member; who is at the cut joins, who is a step behind is waited for. When nothing needs
    to change any more, the same view is given again under the next epoch: members have halted and
    only a commit lets them go on.
    """
    if is_apart(current, facts):
        return plan_apart(current, facts, triggers, open_debts, policy, proposer)
    # Who said LEAVE and then ended has left; nobody died.
    dead = [
        m for m in current.members if m not in facts or (facts[m].dead and not facts[m].leaving)
    ]
    alive = [m for m in current.members if m not in dead]
    if dead:
        return _after_deaths(current, facts, triggers, policy, proposer, alive, dead)
    cut = max((facts[m].decided for m in alive), default=current.cut_step)
    late = [m for m in alive if facts[m].decided < cut]
    if late and cut > current.cut_step and not any(facts[m].broken for m in late):
        return Drains(cut, late)
    # Whoever is late otherwise was to be rolled forward in this epoch and was not: nothing that it
    # could wait for is under way, so the next view rolls it forward.
    leaving = [m for m in alive if facts[m].leaving]
    staying = [m for m in alive if not facts[m].leaving]
    stuck = bool(staying) and source_of(staying, facts, cut) is None
    debts = list(open_debts)
    # The last to leave settle what stands open first; they are let go once more to report for it.
    owing = not staying and bool(debts)
    if leaving and not owing and not (stuck and current.regime is not Regime.EVENTUAL):
        if stuck:  # nobody is rolled forward in EVENTUAL, so those who know the step just go
            cut = max(facts[m].decided for m in staying)
        behind = [m for m in staying if facts[m].decided < cut]
        view = View(
            epoch=current.epoch + 1,
            regime=current.regime,
            from_regime=current.regime,
            members=staying,
            cohorts=[staying] if staying else [],
            reason=f"{ranks_of(leaving)} finished",
            proposer=proposer,
            departed=leaving,
            member_reason="finished",
            cut_step=cut,
            source=source_of(staying, facts, cut) if behind else None,
            behind=behind,
        )
        return Plan(view, None, None)
    answered: list[EventRef] = []
    bound: list[Actor] = []
    for trigger in triggers:
        # A member that answered and has ended since: the facts are older, and the death is judged by
        # the view that removes it.
        if trigger.fault is None or (trigger.certified and trigger.subject in alive):
            continue
        decision = policy.decide(current.regime, trigger.fault, debts)
        if not decision.changed and trigger.fault is FaultEvent.GPU_FAIL_STOP:
            answered += trigger.evidence
        cohorts = parted(current, facts, trigger, decision.to, policy, late)
        if is_refused(trigger, decision, policy) and not (cohorts or late):
            answered += trigger.evidence  # nor is it walked for again
            bound = [m for m in alive if facts[m].is_bound]
        # In CAUSAL already, a straggler is set apart by a walk that changes nothing else.
        moves = decision.changed or (cohorts and current.regime is Regime.CAUSAL)
        if moves and not (late and decision.to is Regime.STRONG):  # its fold comes later
            view = View(
                epoch=current.epoch + 1,
                regime=decision.to,
                from_regime=current.regime,
                members=list(current.members),
                cohorts=cohorts or [list(current.members)],
                fault=trigger.fault if decision.changed else None,
                reason=trigger.reason,
                proposer=proposer,
                evidence=evidence_of(trigger, triggers),
                cut_step=cut,
                source=source_of(alive, facts, cut) if late else None,
                behind=late,
                # The climb's fold takes the author's next dots, so open ones are void: the step is
                # issued again, in the new regime.
                voided=in_flight_of(current, facts, cut) if decision.to > current.regime else [],
                in_flight=in_flight_of(current, facts, cut),
            )
            return Plan(view, trigger, decision) if decision.changed else Plan(view, None, None)
    # Nobody joins over a member that is to be rolled forward: the cut is where all of them stand.
    near = [n for n in newcomers if n.decided in (cut - 1, cut) and not (late or leaving)]
    if coming := [n.actor for n in near if n.decided < cut]:
        return Awaits(cut, coming)
    if near:
        new = [n.actor for n in near]
        return Plan(plan_join(current, facts, new, cut, policy, proposer), None, None)
    same = View(
        epoch=current.epoch + 1,
        regime=current.regime,
        from_regime=current.regime,
        members=list(current.members),
        cohorts=list(current.cohorts),
        reason=_why_same(late, bound),
        proposer=proposer,
        evidence=answered,  # deaths that the policy has no move for: judged all the same
        cut_step=cut,
        source=source_of(alive, facts, cut) if late else None,
        behind=late,
        in_flight=in_flight_of(current, facts, cut),
    )
    return Plan(same, None, None)


def _why_same(late: list[Actor], bound: list[Actor]) -> str:
    if late:
        return f"{ranks_of(late)} to be rolled forward"
    return f"all stay together: {why_bound(bound)}" if bound else "nothing to change"


def _after_deaths(
    current: View,
    facts: Mapping[Actor, Facts],
    triggers: Sequence[Trigger],
    policy: Policy,
    proposer: Actor,
    alive: list[Actor],
    dead: list[Actor],
) -> Plan:
    # One event an actor: this walk answers the first death; the others are judged after it.
    told = [t for t in triggers if t.fault is FaultEvent.GPU_FAIL_STOP and t.subject in dead]
    trigger = told[0] if told else None
    decision = policy.decide(current.regime, FaultEvent.GPU_FAIL_STOP)
    cut = max((facts[m].decided for m in alive), default=current.cut_step)
    behind = [m for m in alive if facts[m].decided < cut]
    view = View(
        epoch=current.epoch + 1,
        regime=decision.to,
        from_regime=current.regime,
        members=alive,
        cohorts=[alive] if alive else [],
        fault=FaultEvent.GPU_FAIL_STOP if decision.changed else None,
        reason=trigger.reason if trigger else how_lost(dead, facts),
        proposer=proposer,
        evidence=evidence_of(trigger, triggers) if trigger else [],
        departed=dead,
        member_reason="stopped" if all(was_stopped(m, facts) for m in dead) else "failed",
        cut_step=cut,
        source=source_of(alive, facts, cut) if behind else None,
        behind=behind,
        voided=voided_of(current, facts, alive, cut),
        in_flight=in_flight_of(current, facts, cut),
    )
    return Plan(view, trigger, decision)
