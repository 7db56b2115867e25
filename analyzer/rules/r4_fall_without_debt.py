"""A fall that opened no debt.

What it does:
    For every committed downgrade: a member of that view must open a debt for each guarantee given
    up (leaving STRONG for EVENTUAL gives up both STRONG and CAUSAL).

Why it matters:
    What is relaxed and not written down can't be settled. The climb back would find nothing to do
    and look clean.

Example:
    Epoch 3 commits STRONG to CAUSAL; no debt row names epoch 3.
"""

from __future__ import annotations

from analyzer.debts import debts_of
from analyzer.history import History
from analyzer.rows import REGIMES
from analyzer.rules._base import Finding, Outcome, Rule
from analyzer.walks import Walk

_TABLES = ("debt", "transitions")


def check(history: History) -> Outcome:
    """Definition: design contract 4.4, R4."""
    outcome = Outcome()
    debts = debts_of(history.rows)
    for walk in history.walks.walks:
        if not walk.falls:
            continue
        outcome.num_checked += 1
        step = walk.reported
        opened = {
            d.relaxed
            for d in debts
            if d.group == walk.group
            and d.new_epoch == walk.new_epoch
            and d.opened_by in walk.members
        }
        given_up = range(step.to_level + 1, step.from_level + 1)
        absent = [level for level in given_up if level not in opened]
        if not absent:
            continue
        lost = history.evidence.lost(_TABLES, walk.members)
        if lost:
            outcome.cannot_say(lost)
        elif history.evidence.unclean and not _went_on(history, walk):
            outcome.cannot_say(
                f"the run ended right after the fall of epoch {walk.new_epoch}, before any debt "
                "could be opened"
            )
        else:
            what = " and ".join(REGIMES[level] for level in absent)
            outcome.findings.append(
                Finding(
                    row=step.row,
                    sentence=(
                        f"epoch {walk.new_epoch} fell from {REGIMES[step.from_level]} to "
                        f"{REGIMES[step.to_level]}, and no member opened a debt for {what}."
                    ),
                    witness=(step.row,),
                )
            )
    return outcome


def _went_on(history: History, walk: Walk) -> bool:
    """True when some member acted after its own commit of the view."""
    operations = history.operations
    for step in walk.commits:
        if step.actor not in walk.members:
            continue
        if (operations.row[operations.of(step.actor)] > step.row).any():
            return True
    return False


PLUGIN = Rule(
    code="R4", severity="error", needs=("debt", "transitions"), check=check, watches=_TABLES
)
