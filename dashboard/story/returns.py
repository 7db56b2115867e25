"""Ranks that were lost and came back as a later incarnation, and ranks that were new: when."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dashboard.story.facts import Facts
from dashboard.story.losses import LOST
from dashboard.story.words import duration, moment, sentence, who


@dataclass(frozen=True)
class Return:
    """One rank's way back.

    Attributes:
        rank: the rank.
        incarnation: as which it came back.
        epoch: of the view that let it in; None where that is not known.
        lost_ns: when a view without it was committed, since the run's first row.
        back_ns: when a view with it was committed.
    """

    rank: int
    incarnation: int
    epoch: int | None
    lost_ns: int
    back_ns: int

    def words(self) -> str:
        """The sentence of it."""
        epoch = "" if self.epoch is None else f" (epoch {self.epoch})"
        away = duration(self.back_ns - self.lost_ns)
        name = f"{self.rank}.{self.incarnation}"
        return sentence(
            f"rank {self.rank} came back as {name} at {moment(self.back_ns)}{epoch}, {away} after it "
            f"was lost at {moment(self.lost_ns)}"
        )


def returns_of(facts: Facts) -> list[Return]:
    """In time."""
    found, lost = [], {}
    for row in sorted(facts.rows.changes, key=lambda r: int(r["wall_ns"])):
        rank, at_ns = int(row["rank"]), facts.since(row["wall_ns"])
        if row["what"] == "departed" and row["reason"] in LOST:
            lost[rank] = at_ns
        elif row["what"] == "joined" and row["incarnation"] and rank in lost:
            found.append(Return(rank, int(row["incarnation"]), row["epoch"], lost.pop(rank), at_ns))
    return found


@dataclass(frozen=True)
class Newcomer:
    """One rank that joined a job under way.

    Attributes:
        rank: the rank.
        epoch: of the view that let it in; None where that is not known.
        at_ns: when that view was committed, since the run's first row.
    """

    rank: int
    epoch: int | None
    at_ns: int

    def words(self) -> str:
        """The sentence of it."""
        epoch = "" if self.epoch is None else f" (epoch {self.epoch})"
        return sentence(
            f"rank {self.rank} joined at {moment(self.at_ns)}{epoch}; it had been no member before"
        )


def newcomers_of(facts: Facts) -> list[Newcomer]:
    """In time; who starts with the job is none."""
    found: dict[int, Newcomer] = {}
    known: set[int] = set()
    for row in sorted(facts.rows.changes, key=lambda r: int(r["wall_ns"])):
        rank = int(row["rank"])
        if rank not in known and (row["what"], row["reason"]) == ("joined", "joined"):
            found[rank] = Newcomer(rank, row["epoch"], facts.since(row["wall_ns"]))
        known.add(rank)
    return list(found.values())


def back_words(returns: Sequence[Return]) -> str:
    """``Rank 2 came back after 3.1 s.``; empty where nobody did."""
    if not returns:
        return ""
    if len(returns) == 1:
        (one,) = returns
        return f"Rank {one.rank} came back after {duration(one.back_ns - one.lost_ns)}."
    return sentence(f"{who([one.rank for one in returns])} came back")
