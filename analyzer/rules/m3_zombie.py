"""An actor that went on after it was removed or replaced.

What it does:
    Operations (collectives, updates, reads) of a departed actor, or of one whose rank came back
    under a higher incarnation, in an epoch at or above the membership row's (the fence). An actor
    that fell to a NO_MAJORITY view of its own is spared until the heal.

Why it matters:
    A process that was given up and still writes can overwrite what its successor did.

Example:
    Rank 0 (restart 1) joins in epoch 9; the first rank 0 still issues an update in epoch 9.
"""

from __future__ import annotations

from analyzer.history import History
from analyzer.rules._base import Finding, Outcome, Rule


def check(history: History) -> Outcome:
    """Definition: design contract 4.4, M3."""
    outcome = Outcome()
    ops = history.operations
    fences = _fences(history)
    outcome.num_checked = len(ops)
    for (group, actor), fence in sorted(fences.items()):
        epoch, row = min(fence)
        returns = _returns(history, group, actor)
        span = ops.of(actor)
        late = (ops.group[span] == group) & (ops.epoch[span] >= epoch)
        for at in ops.row[span][late].tolist():
            its_epoch = int(history.rows.epoch[at])
            if any(epoch < back <= its_epoch for back in returns) or _spared(history, actor, at):
                continue
            outcome.findings.append(
                Finding(
                    row=at,
                    sentence=(
                        f"{history.who(actor)} acted in epoch {its_epoch}, but the membership of "
                        f"epoch {epoch} had already removed or replaced it."
                    ),
                    witness=(row, at),
                )
            )
    return outcome


def _fences(history: History) -> dict[tuple[int, int], list[tuple[int, int]]]:
    """Per (group, actor): (epoch, membership row) of each removal."""
    found: dict[tuple[int, int], list[tuple[int, int]]] = {}
    incarnations: dict[int, list[int]] = {}
    for code in range(history.rows.num_actors):
        incarnations.setdefault(history.rows.actors[code].rank, []).append(code)
    for row in history.walks.membership:
        if row["epoch"] is None:
            continue
        removed = set(row["departed"])
        for member in row["members"]:
            named = history.rows.actors[member]
            removed |= {
                code
                for code in incarnations.get(named.rank, ())
                if history.rows.actors[code].incarnation < named.incarnation
            }
        for actor in removed:
            found.setdefault((row["group"], actor), []).append((row["epoch"], row["row"]))
    return found


def _returns(history: History, group: int, actor: int) -> list[int]:
    """Epochs of membership rows that hold the actor."""
    return [
        row["epoch"]
        for row in history.walks.membership
        if row["group"] == group and row["epoch"] is not None and actor in row["members"]
    ]


def _spared(history: History, actor: int, row: int) -> bool:
    """True while the actor's last commit is a NO_MAJORITY view of its own."""
    before = [s for s in history.walks.commits_of(actor) if s.row < row]
    return bool(before) and before[-1].fault == "NO_MAJORITY" and actor in before[-1].members


PLUGIN = Rule(
    code="M3",
    severity="error",
    needs=("membership", ("collectives", "updates", "reads")),
    check=check,
)
