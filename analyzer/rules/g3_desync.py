"""A member that never came to a collective.

What it does:
    For every open collective: members that never entered it, and do not wait in another one
    themselves, are why the others wait. It is violated where the absent member demonstrably went
    past it and no event of it is missing; else it is unknown, with the suspects named. Collectives
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


def check(history: History) -> Outcome:
    """Definition: design contract 4.4, G3."""
    outcome = Outcome(num_checked=len(history.instances))
    waits = list(history.instances.open())
    stuck = {actor for u in waits for actor in u.waiting}
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
        outcome.suspects.append(Accused(absent, certain=False, why=why, witness=(entry,)))
    elif not _went_past(history, instance, absent):
        outcome.cannot_say(f"{why}; nothing shows that it went past it")
        outcome.suspects.append(Accused(absent, certain=False, why=why, witness=(entry,)))
    else:
        last = history.rows.last_row(absent)
        outcome.suspects.append(Accused(absent, certain=True, why=why, witness=(entry, last)))
        outcome.findings.append(
            Finding(row=last, sentence=f"{why}; it went on without.", witness=(entry, last))
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
    entries = [int(instances.table.rows[i]) for i in instance.entries]
    last = rows.last_row(absent)
    if any(history.happens_before(entry, last) for entry in entries):
        return True
    steps = [int(rows.step[e]) for e in entries if rows.step[e] != NULL]
    mine = rows.step[rows.first_row(absent) : last + 1]
    if steps and (mine[mine != NULL] > max(steps)).any():
        return True
    # A second is far beyond any spread of arrivals, and beyond any clock error worth the name.
    span = rows.wall[rows.first_row(absent) : last + 1]
    return bool(int(np.max(span)) > max(int(rows.wall[e]) for e in entries) + 1_000_000_000)


PLUGIN = Rule(code="G3", severity="error", needs=("collectives",), check=check, watches=_TABLES)
