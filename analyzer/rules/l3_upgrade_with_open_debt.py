"""A climb while debt stood open.

What it does:
    For every climb to a regime R: each debt of the group that relaxed R or a weaker guarantee, and
    was opened before the commit, must be settled or written off before it. Before is
    happens-before, never wall time.

Why it matters:
    Climbing back with unsettled debt says "all agree again" while updates in flight may still be
    lost or applied twice. It is the moment where a job silently continues from a state that never
    existed.

Example:
    Debt d1 relaxed STRONG at epoch 3; epoch 4 commits CAUSAL to STRONG; d1 is settled afterwards.
"""

from __future__ import annotations

from analyzer.debts import Debt, debts_of
from analyzer.history import History
from analyzer.rows import REGIMES
from analyzer.rules._base import Finding, Outcome, Rule
from analyzer.walks import Step

_TABLES = ("debt", "transitions", "messages")


def check(history: History) -> Outcome:
    """Definition: design contract 4.4, L3."""
    outcome = Outcome()
    debts = debts_of(history.rows)
    for walk in history.walks.walks:
        if not walk.climbs:
            continue
        outcome.num_checked += 1
        step = walk.reported
        open_debts = [d for d in debts if _stands(history, d, step)]
        if not open_debts:
            continue
        lost = history.evidence.lost(_TABLES)
        if lost:
            outcome.cannot_say(lost)
        elif not history.records("messages") and all(d.closed_rows for d in open_debts):
            outcome.cannot_say("messages was not recorded, so the order of debt and climb is open")
        else:
            outcome.findings.append(_finding(history, step, open_debts))
    return outcome


def _stands(history: History, debt: Debt, step: Step) -> bool:
    """True when the debt was opened before the commit and not closed before it."""
    return (
        debt.group == step.group
        and 0 < debt.relaxed <= step.to_level
        and history.happens_before(debt.opened_row, step.row)
        and not any(history.happens_before(row, step.row) for row in debt.closed_rows)
    )


def _finding(history: History, step: Step, open_debts: list[Debt]) -> Finding:
    debt = open_debts[0]
    more = f" and {len(open_debts) - 1} more" if len(open_debts) > 1 else ""
    after = next(iter(debt.closed_rows), None)
    fate = "it was closed only later" if after is not None else "it was never closed"
    return Finding(
        row=step.row,
        sentence=(
            f"{history.who(step.actor)} committed the climb to {REGIMES[step.to_level]} "
            f"(epoch {step.new_epoch}) while debt {debt.debt_id}{more} stood open: "
            f"{history.who_did(debt.opened_row)} had opened it, and {fate}."
        ),
        witness=(debt.opened_row, step.row) + (() if after is None else (after,)),
    )


PLUGIN = Rule(
    code="L3", severity="error", needs=("debt", "transitions"), check=check, watches=_TABLES
)
