"""A member that goes on in a view it never committed.

What it does:
    A member of a committed view, with rows that happen-after a commit of it, must commit that
    epoch or a later one itself. Departed actors are exempt; after an unclean end it is unknown.

Why it matters:
    The laggard acts in a world that the others have left, and nothing it does fits theirs.

Example:
    Ranks 0 and 1 commit epoch 4; rank 2, a member, hears of it and never commits.
"""

from __future__ import annotations

from analyzer.history import History
from analyzer.rules._base import Finding, Outcome, Rule
from analyzer.walks import Walk

_TABLES = ("transitions", "messages")


def check(history: History) -> Outcome:
    """Definition: design contract 4.4, L7."""
    outcome = Outcome()
    accused: set[int] = set()
    for walk in history.walks.walks:
        for member in walk.members:
            outcome.num_checked += 1
            if member in accused or member in history.walks.closed:
                continue
            if _lags(history, walk, member, outcome):
                accused.add(member)
    for step in history.walks.open_proposals():
        if history.evidence.unclean:
            outcome.cannot_say(
                f"the run did not end cleanly, and the proposal of epoch {step.new_epoch} was open"
            )
    return outcome


def _lags(history: History, walk: Walk, member: int, outcome: Outcome) -> bool:
    rows = history.rows
    if not rows.has_rows(member):
        return False
    if any(
        s.group == walk.group and s.new_epoch >= walk.new_epoch
        for s in history.walks.commits_of(member)
    ):
        return False
    last = rows.last_row(member)
    heard = next((s.row for s in walk.commits if history.happens_before(s.row, last)), None)
    if heard is None:
        return False
    lost = history.evidence.lost(_TABLES, [member])
    if lost or history.evidence.unclean:
        outcome.cannot_say(
            lost
            or f"the run did not end cleanly, and {history.who(member)} had not committed epoch "
            f"{walk.new_epoch}"
        )
        return False
    outcome.findings.append(
        Finding(
            row=last,
            sentence=(
                f"{history.who(member)} is a member of epoch {walk.new_epoch}, heard that it was "
                "committed, went on, and never committed it nor a later one."
            ),
            witness=(heard, last),
        )
    )
    return True


PLUGIN = Rule(code="L7", severity="error", needs=("transitions",), check=check, watches=_TABLES)
