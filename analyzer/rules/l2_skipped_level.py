"""A walk that jumped over a regime.

What it does:
    Looks at every committed walk: a climb may go up one level only; a fall of two levels needs
    STATE_CORRUPTION or NO_MAJORITY.

Why it matters:
    Each level on the way up is where debt of one kind is settled. Who jumps from EVENTUAL to STRONG
    never folded what the CAUSAL level would have folded.

Example:
    EVENTUAL walks to STRONG in one commit.
"""

from __future__ import annotations

from analyzer.history import History
from analyzer.rows import REGIMES
from analyzer.rules._base import Finding, Outcome, Rule

_DEEP_FALLS = ("STATE_CORRUPTION", "NO_MAJORITY")


def check(history: History) -> Outcome:
    """Definition: design contract 4.4, L2."""
    outcome = Outcome()
    for walk in history.walks.walks:
        step = walk.reported
        if not step.from_level or not step.to_level:
            continue
        outcome.num_checked += 1
        climb = step.to_level - step.from_level
        if climb >= 2 or (climb <= -2 and step.fault not in _DEEP_FALLS):
            way = "up" if climb > 0 else "down"
            why = (
                "" if climb > 0 else f" on {step.fault or 'no fault'}, which allows one level only"
            )
            outcome.findings.append(
                Finding(
                    row=step.row,
                    sentence=(
                        f"{history.who(step.actor)} committed epoch {step.new_epoch} {abs(climb)} "
                        f"levels {way} at once, from {REGIMES[step.from_level]} to "
                        f"{REGIMES[step.to_level]}{why}."
                    ),
                    witness=(step.row,),
                )
            )
    return outcome


PLUGIN = Rule(code="L2", severity="error", needs=("transitions",), check=check)
