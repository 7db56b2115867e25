"""A walk without evidence.

What it does:
    A proposal that names a fault must point at a row that shows that fault and happens-before the
    proposal. OPERATOR is a person's request and needs none.

Why it matters:
    A fall costs consistency and a climb promises it. Either must follow from something that was
    measured, or nobody can learn from the incident.

Example:
    Epoch 3 is proposed, STRONG to CAUSAL on GPU_FAIL_STOP, with an empty evidence list.
"""

from __future__ import annotations

from analyzer.history import History
from analyzer.rules._base import Finding, Outcome, Rule
from analyzer.walks import Step

_NAMES_A_FAULT = ("health", "decisions", "transitions")


def check(history: History) -> Outcome:
    """Definition: design contract 4.4, L6."""
    outcome = Outcome()
    for step in history.walks.phase("proposed"):
        if step.fault is None or (step.fault == "OPERATOR" and not step.evidence):
            continue
        outcome.num_checked += 1
        _judge(history, step, outcome)
    return outcome


def _judge(history: History, step: Step, outcome: Outcome) -> None:
    rows = history.rows
    problem, cited = "it points at no evidence", None
    for rank, incarnation, seq in step.evidence:
        row = rows.row_at(rows.actor_code(rank, incarnation), seq)
        if row is None:
            if history.evidence.inside_loss(rank, incarnation, seq):
                outcome.cannot_say(
                    f"the evidence of epoch {step.new_epoch} (rank {rank}, event {seq}) is missing"
                )
                return
            problem = f"its evidence (rank {rank}, event {seq}) does not exist"
            continue
        cited = row
        shown = _fault_of(history, row, step.fault)
        if shown != step.fault:
            problem = f"its evidence shows {shown or 'no fault'}"
        elif history.happens_before(row, step.row):
            return
        elif not history.records("messages"):
            outcome.cannot_say("messages was not recorded, so evidence and proposal have no order")
            return
        elif lost := history.evidence.lost(("messages",)):
            outcome.cannot_say(lost)
            return
        else:
            problem = "its evidence does not happen before it"
    outcome.findings.append(
        Finding(
            row=step.row,
            sentence=(
                f"{history.who(step.actor)} proposed epoch {step.new_epoch} on {step.fault}, "
                f"but {problem}."
            ),
            witness=(step.row,) if cited is None else (cited, step.row),
        )
    )


def _fault_of(history: History, row: int, claimed: str | None) -> str | None:
    """The fault that a row shows; rows of tables that name none are taken as claimed."""
    if history.rows.table_of(row) not in _NAMES_A_FAULT:
        return claimed
    fault: str | None = history.rows.content(row)["fault"]
    return fault


PLUGIN = Rule(code="L6", severity="error", needs=("transitions",), check=check)
