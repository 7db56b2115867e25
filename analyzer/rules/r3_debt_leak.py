"""A debt that nobody settled.

What it does:
    Every opened debt must have a settled or written_off row by the end of the run. After a clean
    end an open debt is a violation; after an unclean one it is unknown.

Why it matters:
    A debt that is left is an update, a data range or a state whose fate nobody decided.

Example:
    Debt d1 is opened at epoch 3; the run ends cleanly and d1 is never mentioned again.
"""

from __future__ import annotations

from analyzer.debts import debts_of
from analyzer.history import History
from analyzer.rows import REGIMES
from analyzer.rules._base import Finding, Outcome, Rule

_TABLES = ("debt",)


def check(history: History) -> Outcome:
    """Definition: design contract 4.4, R3."""
    outcome = Outcome()
    for debt in debts_of(history.rows):
        outcome.num_checked += 1
        if debt.closed_rows:
            continue
        lost = history.evidence.lost(_TABLES)
        if lost:
            outcome.cannot_say(lost)
        elif history.evidence.unclean:
            outcome.cannot_say(f"the run did not end cleanly, and debt {debt.debt_id} stood open")
        else:
            relaxed = REGIMES.get(debt.relaxed, "a guarantee")
            outcome.findings.append(
                Finding(
                    row=debt.opened_row,
                    sentence=(
                        f"{history.who(debt.opened_by)} opened debt {debt.debt_id} (it relaxed "
                        f"{relaxed}), and the run ended cleanly without settling it."
                    ),
                    witness=(debt.opened_row, history.rows.last_row(debt.opened_by)),
                )
            )
    return outcome


PLUGIN = Rule(code="R3", severity="error", needs=("debt",), check=check, watches=_TABLES)
