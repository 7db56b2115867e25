"""A member that never came to a collective.

What it does:
    For every open collective: members that never entered it, and do not wait in another one
    themselves or for other cohorts at the staleness bound, are why the others wait. It is violated where the absent member demonstrably went
    past it and no event of it is missing; else it is unknown, with the suspects named. A suspect is
    certain where a host agent saw it stand still, alive, a second after the others entered. Collectives
    with a dead member, or given up by a later commit, are void.

Why it matters:
    The operation that times out is the victim. The rank that did not come is the cause.

Example:
    Ranks 0, 1 and 2 wait in collective 5; rank 3 goes on with collective 6.
"""

from __future__ import annotations

import numpy as np

from analyzer.columns import NULL
from analyzer.history import History
from analyzer.instances import Unfinished
from analyzer.rules._base import Accused, Finding, Outcome, Rule

_TABLES = ("collectives",)

MARGIN_NS = 1_000_000_000
"""Far beyond any spread of arrivals, and beyond any clock error worth the name."""


def check(history: History) -> Outcome:
    """Definition: design contract 4.4, G3."""
    outcome = Outcome(num_checked=len(history.instances))
    waits = list(history.instances.open())
    stuck = {actor for u in waits for actor in u.waiting}
    stuck |= {a for u in waits for a in u.absent if _waits_for_room(history, a)}
    accused: set[int] = set()
    for instance in waits:
        where = f"collective {instance.cseq} of {history.instances.comm_name(instance.comm)}"
        roots = [a for a in instance.absent if a not in stuck]
        if instance.absent and not roots:
            outcome.cannot_say(f"{where} waits for members that wait elsewhere themselves")
        for absent in roots:
            if absent in accused:
                continue
            accused.add(absent)
            _judge(history, outcome, instance, absent, where)
        if not instance.absent and history.evidence.unclean:
            outcome.cannot_say(f"the run did not end cleanly, and {where} was not completed")
    return outcome


def _judge(
    history: History, outcome: Outcome, instance: Unfinished, absent: int, where: str
) -> None:
    waiting = history.whom(instance.waiting)
    why = f"{history.who(absent)} never entered {where}, where {waiting} waited"
    entry = int(history.instances.table.rows[instance.entries[0]])
    lost = history.evidence.lost(_TABLES, [absent])
    if lost:
        outcome.cannot_say(lost)
        # What is only to come (a run that goes on) takes nothing from what a host agent saw.
        still = (
            _seen_still(history, instance, absent) if _lacks_only_tail(history, absent) else None
        )
        outcome.suspects.append(_suspect(absent, why, entry, still))
    elif not _went_past(history, instance, absent):
        outcome.cannot_say(f"{why}; nothing shows that it went past it")
        still = _seen_still(history, instance, absent)
        outcome.suspects.append(_suspect(absent, why, entry, still))
    else:
        last = history.rows.last_row(absent)
        outcome.suspects.append(Accused(absent, certain=True, why=why, witness=(entry, last)))
        outcome.findings.append(
            Finding(row=last, sentence=f"{why}; it went on without.", witness=(entry, last))
        )


def _suspect(absent: int, why: str, entry: int, still: int | None) -> Accused:
    witness = (entry,) if still is None else (entry, still)
    return Accused(absent, certain=still is not None, why=why, witness=witness)


def _lacks_only_tail(history: History, absent: int) -> bool:
    """What is missing of it comes after all that is there."""
    if absent in history.evidence.missing:
        return False
    last = int(history.rows.seq[history.rows.last_row(absent)])
    return all(
        loss.first_seq is not None and loss.first_seq >= last and loss.last_seq is None
        for loss in history.evidence.losses
        if loss.actor == absent
    )


def _went_past(history: History, instance: Unfinished, absent: int) -> bool:
    """True when the absent member's own rows show that it should have entered by then."""
    rows, instances = history.rows, history.instances
    if not history.evidence.unclean:
        return True
    later = (
        (instances.actor == absent)
        & (instances.comm == instance.comm)
        & (instances.cseq > instance.cseq)
    )
    if later.any():
        return True
    entries = _entries(history, instance)
    last = rows.last_row(absent)
    if any(history.happens_before(entry, last) for entry in entries):
        return True
    steps = [int(rows.step[e]) for e in entries if rows.step[e] != NULL]
    mine = rows.step[rows.first_row(absent) : last + 1]
    if steps and (mine[mine != NULL] > max(steps)).any():
        return True
    span = rows.wall[rows.first_row(absent) : last + 1]
    return bool(int(np.max(span)) > max(int(rows.wall[e]) for e in entries) + MARGIN_NS)


def _waits_for_room(history: History, actor: int) -> bool:
    """It has said so, and has begun no step since: other cohorts are why it does not come."""
    rows, health, steps = history.rows, history.rows["health"], history.rows["steps"]
    said = health.mask("detector", "wait") & health.mask("signal", "room")
    said &= rows.actor[health.rows] == actor
    begun = steps.mask("phase", "begin") & (rows.actor[steps.rows] == actor)
    return bool(said.any()) and bool(health.rows[said].max() > steps.rows[begun].max(initial=-1))


def _seen_still(history: History, instance: Unfinished, absent: int) -> int | None:
    """The row by which a host agent last saw the absent member alive and standing still, if it did.

    That convicts it of the wait. It does not say that a promise was broken: it may still have come.
    """
    rows, health = history.rows, history.rows["health"]
    seen = health.mask("detector", "slow") & health.mask("signal", "stands_still")
    subject = rows.actor_codes(health.ints("subject_rank"), health.ints("subject_incarnation"))
    at = np.flatnonzero(seen & (subject == absent))
    if not len(at):
        return None
    index = int(at[np.argmax(rows.wall[health.rows[at]])])
    row, told = int(health.rows[index]), health.row(index)
    acted = [*_entries(history, instance), rows.last_row(absent)]
    since = max(int(rows.wall[r]) for r in acted)
    # A row that takes it back has a word that has just moved.
    stands = (told["value"] or 0.0) >= (told["threshold"] or float("inf"))
    return row if stands and int(rows.wall[row]) > since + MARGIN_NS else None


def _entries(history: History, instance: Unfinished) -> list[int]:
    return [int(history.instances.table.rows[i]) for i in instance.entries]


PLUGIN = Rule(code="G3", severity="error", needs=("collectives",), check=check, watches=_TABLES)
