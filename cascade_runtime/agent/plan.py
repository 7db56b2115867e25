"""Which view comes next: a pure function of the current view, the facts and the pending triggers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from cascade_runtime.agent.protocol import LOST, Facts, Level, Trigger, View
from cascade_runtime.vocabulary.fault import FaultEvent
from cascade_runtime.vocabulary.identity import Actor, Clock, Dot, EventRef
from cascade_runtime.vocabulary.policy import Decision, Policy
from cascade_runtime.vocabulary.regime import Regime


def judged(trigger: Trigger, views: Iterable[View]) -> bool:
    """True when one of ``views`` answers the trigger: it points at evidence of it.

    A death that a walk met before anybody had told of it is answered by the view that removes it.
    """
    for view in views:
        if any(ref in view.evidence for ref in trigger.evidence):
            return True
        if view.member_reason in LOST and not view.evidence and trigger.subject in view.departed:
            return True
    return False


class Drains(NamedTuple):
    """Nobody died and these members' open step is decided elsewhere: let them finish it first."""

    step: int
    ranks: list[Actor]


class Awaits(NamedTuple):
    """All have halted at ``step``, which these newcomers are about to reach."""

    step: int
    newcomers: list[Actor]


class Plan(NamedTuple):
    """The next view, with what the policy decided (None when the regime was not in question)."""

    view: View
    trigger: Trigger | None
    decision: Decision | None


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
    stuck = bool(staying) and _source(staying, facts, cut) is None
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
            reason=f"{_ranks(leaving)} finished",
            proposer=proposer,
            departed=leaving,
            member_reason="finished",
            cut_step=cut,
            source=_source(staying, facts, cut) if behind else None,
            behind=behind,
        )
        return Plan(view, None, None)
    answered: list[EventRef] = []
    for trigger in triggers:
        # A member that answered and has ended since: the facts are older, and the death is judged by
        # the view that removes it.
        if trigger.fault is None or (trigger.certified and trigger.subject in alive):
            continue
        decision = policy.decide(current.regime, trigger.fault, debts)
        if not decision.changed and trigger.fault is FaultEvent.GPU_FAIL_STOP:
            answered += trigger.evidence
        if decision.changed and not (late and decision.to is Regime.STRONG):  # its fold comes later
            view = View(
                epoch=current.epoch + 1,
                regime=decision.to,
                from_regime=current.regime,
                members=list(current.members),
                cohorts=[list(current.members)],
                fault=trigger.fault,
                reason=trigger.reason,
                proposer=proposer,
                evidence=_evidence(trigger, triggers),
                cut_step=cut,
                source=_source(alive, facts, cut) if late else None,
                behind=late,
                # The climb's fold takes the author's next dots, so open ones are void: the step is
                # issued again, in the new regime.
                voided=_in_flight(current, facts, cut) if decision.to > current.regime else [],
                in_flight=_in_flight(current, facts, cut),
            )
            return Plan(view, trigger, decision)
    # Nobody joins over a member that is to be rolled forward: the cut is where all of them stand.
    near = [n for n in newcomers if n.decided in (cut - 1, cut) and not (late or leaving)]
    if coming := [n.actor for n in near if n.decided < cut]:
        return Awaits(cut, coming)
    if near:
        return Plan(_join(current, facts, [n.actor for n in near], cut, proposer), None, None)
    same = View(
        epoch=current.epoch + 1,
        regime=current.regime,
        from_regime=current.regime,
        members=list(current.members),
        cohorts=list(current.cohorts),
        reason=f"{_ranks(late)} to be rolled forward" if late else "nothing to change",
        proposer=proposer,
        evidence=answered,  # deaths that the policy has no move for: judged all the same
        cut_step=cut,
        source=_source(alive, facts, cut) if late else None,
        behind=late,
        in_flight=_in_flight(current, facts, cut),
    )
    return Plan(same, None, None)


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
        reason=trigger.reason if trigger else _how_lost(dead, facts),
        proposer=proposer,
        evidence=_evidence(trigger, triggers) if trigger else [],
        departed=dead,
        member_reason="stopped" if all(_stopped(m, facts) for m in dead) else "failed",
        cut_step=cut,
        source=_source(alive, facts, cut) if behind else None,
        behind=behind,
        voided=_voided(current, facts, alive, cut),
        in_flight=_in_flight(current, facts, cut),
    )
    return Plan(view, trigger, decision)


def _join(
    current: View,
    facts: Mapping[Actor, Facts],
    newcomers: list[Actor],
    cut: int,
    proposer: Actor,
) -> View:
    members = sorted([*current.members, *newcomers])
    in_flight = _in_flight(current, facts, cut)
    came = "came back" if all(a.incarnation for a in newcomers) else "joined"
    return View(
        epoch=current.epoch + 1,
        regime=current.regime,
        from_regime=current.regime,
        members=members,
        cohorts=[members],
        reason=f"{_ranks(newcomers)} {came}",
        proposer=proposer,
        joined=newcomers,
        member_reason="joined",
        cut_step=cut,
        # Where the author changes, the open step is issued again under the new one's name.
        voided=in_flight if min(members) != min(current.members) else [],
        in_flight=in_flight,
    )


def _source(members: Iterable[Actor], facts: Mapping[Actor, Facts], cut: int) -> Actor | None:
    """Whose kept buckets roll the others forward."""
    return min((m for m in members if facts[m].decided == cut), default=None)


def _evidence(trigger: Trigger, triggers: Sequence[Trigger]) -> list[EventRef]:
    """All that was told about the subject of a death: an actor dies once, so it is judged once."""
    if trigger.subject is None:
        return list(trigger.evidence)
    about = [t for t in triggers if (t.fault, t.subject) == (trigger.fault, trigger.subject)]
    return list(dict.fromkeys(ref for t in about for ref in t.evidence))


def _authors(view: View) -> list[Actor]:
    """The author of a cohort is its lowest member."""
    return [min(cohort) for cohort in view.cohorts if cohort]


def _open_dots(author: Actor, facts: Facts, frontier: Clock) -> list[Dot]:
    first = frontier.upto(author) + 1
    return [Dot(author.rank, author.incarnation, c) for c in range(first, facts.issued + 1)]


def _frontier_at(facts: Mapping[Actor, Facts], cut: int) -> Clock:
    clock = Clock()
    for told in facts.values():
        if not told.dead and told.decided == cut:
            clock = clock.merge(Clock(told.frontier))
    return clock


def _in_flight(current: View, facts: Mapping[Actor, Facts], cut: int) -> list[Dot]:
    """Dots issued for a step that nobody decided, by any author, dead or alive."""
    frontier = _frontier_at(facts, cut)
    return [d for a in _authors(current) if a in facts for d in _open_dots(a, facts[a], frontier)]


def _voided(current: View, facts: Mapping[Actor, Facts], alive: list[Actor], cut: int) -> list[Dot]:
    """Dots whose step no survivor decided and whose name must not be used again.

    Those of a dead author: their gradients are gone with the author's view. Those of a living one, if
    somebody who was lost may have decided the step: what it applied is another update than the one
    that the survivors will reduce without it.
    """
    if not alive:
        return []
    frontier = _frontier_at(facts, cut)
    doubt = _in_doubt(current, facts, alive, cut)
    return [
        dot
        for author in _authors(current)
        if author in facts and (facts[author].dead or doubt)
        for dot in _open_dots(author, facts[author], frontier)
    ]


def _in_doubt(current: View, facts: Mapping[Actor, Facts], alive: list[Actor], cut: int) -> bool:
    """A lost member may have decided the step after the cut, and no survivor has."""
    if any(told.dead and told.decided > cut for told in facts.values()):
        return True
    unknown = any(m not in facts for m in current.members)
    return unknown and all(facts[m].launched_all and facts[m].decided == cut for m in alive)


def _stopped(member: Actor, facts: Mapping[Actor, Facts]) -> bool:
    return member in facts and facts[member].stopped


def _how_lost(lost: list[Actor], facts: Mapping[Actor, Facts]) -> str:
    """In the words of each: who died, who was stopped, whose host did not answer."""
    stopped = [m for m in lost if _stopped(m, facts)]
    silent = [m for m in lost if m not in facts]
    died = [m for m in lost if m not in stopped and m not in silent]
    said = [(died, "died"), (stopped, "stopped"), (silent, "did not answer")]
    return ", ".join(f"{_ranks(who)} {what}" for who, what in said if who)


def _ranks(actors: list[Actor]) -> str:
    names = ", ".join(str(a) for a in actors)
    return f"rank {names}" if len(actors) == 1 else f"ranks {names}"
