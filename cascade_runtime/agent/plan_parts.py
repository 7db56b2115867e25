"""What plans are made of: whom a view lost, which dots are open or void, who rolls whom forward."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from cascade_runtime.agent.protocol import LOST, Facts, Trigger, View
from cascade_runtime.vocabulary.identity import Actor, Clock, Dot, EventRef
from cascade_runtime.vocabulary.policy import Decision


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


def source_of(members: Iterable[Actor], facts: Mapping[Actor, Facts], cut: int) -> Actor | None:
    """Whose kept buckets roll the others forward."""
    return min((m for m in members if facts[m].decided == cut), default=None)


def evidence_of(trigger: Trigger, triggers: Sequence[Trigger]) -> list[EventRef]:
    """All that was told about the subject of a death: an actor dies once, so it is judged once."""
    if trigger.subject is None:
        return list(trigger.evidence)
    about = [t for t in triggers if (t.fault, t.subject) == (trigger.fault, trigger.subject)]
    return list(dict.fromkeys(ref for t in about for ref in t.evidence))


def authors(view: View) -> list[Actor]:
    """The author of a cohort is its lowest member."""
    return [min(cohort) for cohort in view.cohorts if cohort]


def open_dots(author: Actor, facts: Facts, frontier: Clock) -> list[Dot]:
    """What an author has issued beyond ``frontier``."""
    first = frontier.upto(author) + 1
    return [Dot(author.rank, author.incarnation, c) for c in range(first, facts.issued + 1)]


def frontier_at(facts: Mapping[Actor, Facts], cut: int) -> Clock:
    """What members that stand at the cut have decided."""
    clock = Clock()
    for told in facts.values():
        if not told.dead and told.decided == cut:
            clock = clock.merge(Clock(told.frontier))
    return clock


def in_flight_of(current: View, facts: Mapping[Actor, Facts], cut: int) -> list[Dot]:
    """Dots issued for a step that nobody decided, by any author, dead or alive."""
    frontier = frontier_at(facts, cut)
    return [d for a in authors(current) if a in facts for d in open_dots(a, facts[a], frontier)]


def voided_of(
    current: View, facts: Mapping[Actor, Facts], alive: list[Actor], cut: int
) -> list[Dot]:
    """Dots whose step no survivor decided and whose name must not be used again.

    Those of a dead author: their gradients are gone with the author's view. Those of a living one, if
    somebody who was lost may have decided the step: what it applied is another update than the one
    that the survivors will reduce without it.
    """
    if not alive:
        return []
    frontier = frontier_at(facts, cut)
    doubt = in_doubt(current, facts, alive, cut)
    return [
        dot
        for author in authors(current)
        if author in facts and (facts[author].dead or doubt)
        for dot in open_dots(author, facts[author], frontier)
    ]


def in_doubt(current: View, facts: Mapping[Actor, Facts], alive: list[Actor], cut: int) -> bool:
    """A lost member may have decided the step after the cut, and no survivor has."""
    if any(told.dead and told.decided > cut for told in facts.values()):
        return True
    unknown = any(m not in facts for m in current.members)
    return unknown and all(facts[m].launched_all and facts[m].decided == cut for m in alive)


def was_stopped(member: Actor, facts: Mapping[Actor, Facts]) -> bool:
    """It lives and is fenced."""
    return member in facts and facts[member].stopped


def how_lost(lost: list[Actor], facts: Mapping[Actor, Facts]) -> str:
    """In the words of each: who died, who was stopped, whose host did not answer."""
    stopped = [m for m in lost if was_stopped(m, facts)]
    silent = [m for m in lost if m not in facts]
    died = [m for m in lost if m not in stopped and m not in silent]
    said = [(died, "died"), (stopped, "stopped"), (silent, "did not answer")]
    return ", ".join(f"{ranks_of(who)} {what}" for who, what in said if who)


def ranks_of(actors: list[Actor]) -> str:
    """Their names in a sentence."""
    names = ", ".join(str(a) for a in actors)
    return f"rank {names}" if len(actors) == 1 else f"ranks {names}"
