"""Debts: what was relaxed, when it was opened, when it was settled or written off."""

from __future__ import annotations

from dataclasses import dataclass, field

from analyzer.rows import LEVELS, Rows


@dataclass
class Debt:
    """One debt's rows in codes; a debt that nobody opened on record has no ``opened_row``."""

    debt_id: str
    group: int
    opened_row: int
    opened_by: int
    relaxed: int
    """Level of the guarantee given up."""
    new_epoch: int | None
    object: str | None
    closed_rows: list[int] = field(default_factory=list)
    """Its settled and written_off rows, in row order."""
    is_written_off: bool = False
    """By the first of them."""


def debts_of(rows: Rows) -> list[Debt]:
    """Opened debts in row order, each with the rows that close it.

    A debt_id names one debt in a run; a second opened row under it is the same debt told again.
    """
    table = rows["debt"]
    found: dict[str, Debt] = {}
    closing: list[tuple[str, int, bool]] = []
    for at, row in zip(table.rows.tolist(), table.dicts(), strict=True):
        debt_id = row["debt_id"] or f"unnamed {at}"
        if row["action"] == "opened":
            found.setdefault(
                debt_id,
                Debt(
                    debt_id=debt_id,
                    group=int(rows.group[at]),
                    opened_row=at,
                    opened_by=int(rows.actor[at]),
                    relaxed=LEVELS.get(row["relaxed"], 0),
                    new_epoch=row["new_epoch"] if row["new_epoch"] is not None else row["epoch"],
                    object=row["object"],
                ),
            )
        elif row["action"] in ("settled", "written_off"):
            closing.append((debt_id, at, row["action"] == "written_off"))
    for debt_id, at, is_written_off in closing:
        if debt_id in found:
            debt = found[debt_id]
            debt.is_written_off = debt.is_written_off if debt.closed_rows else is_written_off
            debt.closed_rows.append(at)
    return list(found.values())
