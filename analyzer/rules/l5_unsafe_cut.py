"""An operation on the wrong side of a cut.

What it does:
    An operation (collective, update, read) of a new epoch must happen-after the acknowledgement of
    every member of its view; a death that the dead rank's host certified, or a stopped rank that it
    fenced, stands for its acknowledgement. And no operation of an old epoch may follow its actor's commit, except that an
    older epoch's update is applied or discarded later.

Why it matters:
    The acknowledgements are the cut: before them somebody may still act in the old world. Two
    worlds at once is what the walk exists to prevent.

Example:
    Rank 0 reduces in epoch 8 before rank 2 has acknowledged it.
"""

from __future__ import annotations

import numpy as np

from analyzer.history import History
from analyzer.rules._base import Finding, Outcome, Rule
from analyzer.walks import Step, Walk

_TABLES = ("transitions", "messages", "collectives", "updates", "reads")


def check(history: History) -> Outcome:
    """Definition: design contract 4.4, L5."""
    outcome = Outcome()
    _too_early(history, outcome)
    _too_late(history, outcome)
    return outcome


def _too_early(history: History, outcome: Outcome) -> None:
    ops = history.operations
    actors = np.unique(ops.actor).tolist()
    for walk in history.walks.walks:
        acknowledged: dict[int, list[int]] | None = None
        for actor in actors:
            if history.walks.view_of(walk.group, walk.new_epoch, actor) is not walk:
                continue
            span = ops.of(actor)
            inside = (ops.epoch[span] == walk.new_epoch) & (ops.group[span] == walk.group)
            rows = ops.row[span][inside & ~ops.follows[span]]
            outcome.num_checked += len(rows)
            if len(rows) and acknowledged is None:
                acknowledged = _acknowledgements(history, walk)
            for row in rows.tolist():
                late = [
                    (member, acks)
                    for member, acks in (acknowledged or {}).items()
                    if not any(history.happens_before(ack, row) for ack in acks)
                ]
                # What follows a good row in program order is later still.
                if not late or not _accuse(history, outcome, walk, row, late):
                    break


def _acknowledgements(history: History, walk: Walk) -> dict[int, list[int]]:
    """Per member: rows that stand for its acknowledgement of the walk."""
    found: dict[int, list[int]] = {member: [] for member in walk.members}
    for step in history.walks.phase("acknowledged"):
        if (step.group, step.new_epoch) == (walk.group, walk.new_epoch) and step.actor in found:
            found[step.actor].append(step.row)
    health = history.rows["health"]
    dead = np.flatnonzero(health.mask("signal", "dead") | health.mask("signal", "fenced"))
    subjects = history.rows.actor_codes(
        health.ints("subject_rank"), health.ints("subject_incarnation")
    )
    for index in dead.tolist():
        row = int(health.rows[index])
        if subjects[index] in found and history.happens_before(row, walk.reported.row):
            found[int(subjects[index])].append(row)
    return found


def _accuse(
    history: History,
    outcome: Outcome,
    walk: Walk,
    row: int,
    late: list[tuple[int, list[int]]],
) -> bool:
    member, acks = late[0]
    lost = history.evidence.lost(_TABLES)
    if lost or not history.records("messages"):
        outcome.cannot_say(lost or "messages was not recorded, so the order of the cut is open")
        return False
    never = "" if acks else f"; {history.who(member)} never acknowledged that epoch"
    outcome.findings.append(
        Finding(
            row=row,
            sentence=(
                f"{history.who_did(row)} acted in epoch {walk.new_epoch} without being ordered "
                f"after the acknowledgement of {history.who(member)}{never}."
            ),
            witness=(row, acks[0]) if acks else (walk.reported.row, row),
        )
    )
    return True


def _too_late(history: History, outcome: Outcome) -> None:
    ops = history.operations
    for actor in np.unique(ops.actor).tolist():
        span = ops.of(actor)
        acts = ~ops.follows[span]
        found: dict[int, Step] = {}
        for step in history.walks.commits_of(actor):  # in order: the last commit before a row stays
            after = acts & (ops.row[span] > step.row) & (ops.group[span] == step.group)
            for row in ops.row[span][after & (ops.epoch[span] < step.new_epoch)].tolist():
                found[row] = step
        for row, step in sorted(found.items()):
            outcome.findings.append(
                Finding(
                    row=row,
                    sentence=(
                        f"{history.who(actor)} committed epoch {step.new_epoch} and then still "
                        f"acted in epoch {history.rows.epoch[row]}."
                    ),
                    witness=(step.row, row),
                )
            )


PLUGIN = Rule(
    code="L5",
    severity="error",
    needs=("transitions",),
    check=check,
    watches=_TABLES,
)
