"""A committed walk that the policy does not allow.

What it does:
    Compares every committed walk (from, fault, to) with the policy rows of trace.json. NO_MAJORITY
    to EVENTUAL is allowed in every policy, OPERATOR may walk down, and a walk that keeps its regime
    (a membership or cohort change) is always legal.

Why it matters:
    The policy is what the people who run the job agreed to. A regime reached by another way is one
    that nobody asked for.

Example:
    EVENTUAL walks to STRONG on STABLE_SYNC, while the policy knows only CAUSAL to STRONG.
"""

from __future__ import annotations

from analyzer.history import History
from analyzer.rows import LEVELS, REGIMES
from analyzer.rules._base import Finding, Outcome, Rule
from analyzer.walks import Step


def check(history: History) -> Outcome:
    """Definition: design contract 4.4, L1."""
    outcome = Outcome()
    policy = history.meta.policy
    moves = {
        (row.from_regime.value, row.fault.value, row.to_regime.value)
        for row in (policy.rows if policy else ())
    }
    for walk in history.walks.walks:
        step = walk.reported
        if not step.from_level or not step.to_level:
            continue
        outcome.num_checked += 1
        if _always_legal(step):
            continue
        move = (REGIMES[step.from_level], step.fault, REGIMES[step.to_level])
        if move in moves:
            continue
        if policy is None and step.fault is not None:
            outcome.cannot_say("trace.json names no policy to compare the walks with")
            continue
        outcome.findings.append(_finding(history, step, policy.name if policy else None))
    return outcome


def _always_legal(step: Step) -> bool:
    if step.from_level == step.to_level:
        return True
    if step.fault == "NO_MAJORITY":
        return step.to_level == LEVELS["EVENTUAL"]
    return step.fault == "OPERATOR" and step.to_level < step.from_level


def _finding(history: History, step: Step, policy: str | None) -> Finding:
    cause = f"on {step.fault}" if step.fault else "without naming a fault"
    ruling = f"the {policy} policy has no such move" if policy else "no policy has such a move"
    return Finding(
        row=step.row,
        sentence=(
            f"{history.who(step.actor)} committed epoch {step.new_epoch} from "
            f"{REGIMES[step.from_level]} to {REGIMES[step.to_level]} {cause}, but {ruling}."
        ),
        witness=(step.row,),
    )


PLUGIN = Rule(code="L1", severity="error", needs=("transitions",), check=check)
