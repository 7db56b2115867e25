"""A climb that its proposer never decided.

What it does:
    For every climb: the proposer must have a decisions row for that move (same fault, from and to,
    changed) that happens-before its proposal.

Why it matters:
    A climb promises more than before. If the policy was not asked, or said no, the promise has no
    ground.

Example:
    Epoch 4 is proposed, CAUSAL to STRONG, and the proposer's only decision was "no change".
"""

from __future__ import annotations

from analyzer.history import History
from analyzer.rows import LEVELS
from analyzer.rules._base import Finding, Outcome, Rule
from analyzer.walks import Step

_TABLES = ("decisions", "transitions")


def check(history: History) -> Outcome:
    """Definition: design contract 4.4, L8."""
    outcome = Outcome()
    climbs = [walk for walk in history.walks.walks if walk.climbs]
    if climbs and not history.records("decisions"):
        outcome.not_checked = "decisions was not recorded"
        return outcome
    for walk in climbs:
        outcome.num_checked += 1
        step = walk.reported
        proposal = history.walks.proposal_of(walk) or step
        if any(history.happens_before(row, proposal.row) for row in _decided(history, step)):
            continue
        lost = history.evidence.lost(_TABLES, None if step.proposer is None else [step.proposer])
        if lost:
            outcome.cannot_say(lost)
            continue
        proposer = "nobody" if step.proposer is None else history.who(step.proposer)
        outcome.findings.append(
            Finding(
                row=step.row,
                sentence=(
                    f"epoch {step.new_epoch} climbed on {step.fault}, and its proposer "
                    f"({proposer}) had not decided that move before proposing it."
                ),
                witness=(proposal.row, step.row) if proposal.row != step.row else (step.row,),
            )
        )
    return outcome


def _decided(history: History, step: Step) -> list[int]:
    """The proposer's decisions for this very move."""
    table = history.rows["decisions"]
    found = []
    for at, row in zip(table.rows.tolist(), table.dicts(), strict=True):
        same = (
            row["fault"] == step.fault
            and LEVELS.get(row["from_regime"], 0) == step.from_level
            and LEVELS.get(row["to_regime"], 0) == step.to_level
        )
        same = same and int(history.rows.group[at]) == step.group and row["changed"] is not False
        if same and step.proposer in (None, int(history.rows.actor[at])):
            found.append(at)
    return found


PLUGIN = Rule(code="L8", severity="error", needs=("transitions",), check=check, watches=_TABLES)
