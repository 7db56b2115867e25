"""A member for which a collective never completed, while it did for another.

What it does:
    In an n-to-n collective that one member completed, every live member must complete it, or a
    later one on that communicator. After an unclean end, a member whose events stop there is only
    suspected, and so is one that took part in a walk from there on: the commit that would have made
    the collective void may be what the end cut off.

Why it matters:
    Nobody can complete an n-to-n operation before all entered it. If one is stuck inside, the fault
    lies on its device or link, not in the program.

Example:
    Collective 5 completed on rank 13; rank 12 completed 4 and nothing after.
"""

from __future__ import annotations

import numpy as np

from analyzer.history import History
from analyzer.instances import Unfinished
from analyzer.rows import TABLE_NAMES
from analyzer.rules._base import Accused, Finding, Outcome, Rule

_TABLES = ("collectives",)
_OF_A_WALK = ("messages", "transitions", "digests")
"""What a member writes that is asked to halt: it answers with its digests."""


def check(history: History) -> Outcome:
    """Definition: design contract 4.4, G4."""
    outcome = Outcome(num_checked=int((history.instances.kind == 0).sum()))
    highest = _highest_completed(history) if history.instances.unfinished else {}
    accused: set[tuple[int, int]] = set()
    for instance in history.instances.unfinished:
        if instance.kind != 0 or instance.void or not instance.completed:
            continue
        for actor in (*instance.waiting, *instance.absent):
            place = (instance.comm, actor)
            if place in accused or highest.get(place, -1) > instance.cseq:
                continue
            if actor not in history.walks.closed and history.rows.has_rows(actor):
                accused.add(place)
                _judge(history, outcome, instance, actor)
    return outcome


def _highest_completed(history: History) -> dict[tuple[int, int], int]:
    instances = history.instances
    found: dict[tuple[int, int], int] = {}
    done = instances.completed
    for comm, actor, cseq in zip(
        instances.comm[done].tolist(),
        instances.actor[done].tolist(),
        instances.cseq[done].tolist(),
        strict=True,
    ):
        found[comm, actor] = max(found.get((comm, actor), -1), cseq)
    return found


def _judge(history: History, outcome: Outcome, instance: Unfinished, actor: int) -> None:
    rows, instances = history.rows, history.instances
    name = instances.comm_name(instance.comm)
    peer = next(int(instances.table.rows[i]) for i in instance.entries if instances.completed[i])
    own = instances.table.rows[(instances.actor == actor) & (instances.comm == instance.comm)]
    any_own = instances.table.rows[instances.actor == actor]
    row = int((own if len(own) else any_own)[-1]) if len(any_own) else rows.last_row(actor)
    why = (
        f"{history.who_did(peer)} completed collective {instance.cseq} of {name}, "
        f"{history.who(actor)} never did"
    )
    lost = history.evidence.lost(_TABLES, [actor])
    if lost:
        outcome.cannot_say(lost)
        outcome.suspects.append(Accused(actor, certain=False, why=why, witness=(peer, row)))
    elif history.evidence.unclean and _only_walked_on(history, actor, row):
        outcome.cannot_say(f"the run did not end cleanly; {why}, and its operations stop there")
        outcome.suspects.append(Accused(actor, certain=False, why=why, witness=(peer, row)))
    else:
        outcome.suspects.append(Accused(actor, certain=True, why=why, witness=(peer, row)))
        outcome.findings.append(
            Finding(row=row, sentence=f"{why}, nor any later one.", witness=(peer, row))
        )


def _only_walked_on(history: History, actor: int, row: int) -> bool:
    """Nothing, or nothing but a walk, follows the row at its actor."""
    rows, walk = history.rows, [TABLE_NAMES.index(name) for name in _OF_A_WALK]
    after = rows.table[row + 1 : rows.last_row(actor) + 1]
    return bool(np.isin(after, walk).all())


PLUGIN = Rule(code="G4", severity="error", needs=("collectives",), check=check, watches=_TABLES)
