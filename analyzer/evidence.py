"""What is missing from a trace: holes, gaps, ranks without events, an unclean end.

Missing evidence never becomes "ok": absence-based checks that it touches are unknown, and this
module gives them the reason. Source: design contract 4.4.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from analyzer.columns import NULL, Ints
from analyzer.rows import TABLE_NAMES, Rows
from analyzer.walks import Walks

QUIET_TABLES = frozenset({"health", "gpu", "raw", "compute"})
"""Tables whose loss touches L6, joules and exposed waits only."""

_WHY = {
    "dropped": "dropped",
    "ring_wrapped": "overwritten in a ring buffer",
    "corrupt": "torn or corrupt",
    "not_supplied": "not supplied",
    None: "missing",
}


@dataclass(frozen=True)
class Loss:
    """Events of one actor that are known to be missing."""

    actor: int
    first_seq: int | None
    last_seq: int | None
    tables: frozenset[str] | None
    reason: str | None
    covered: bool
    """A gaps row accounts for it."""
    num_events: int | None = None
    own_seq: int | None = None
    """Where the gaps row itself stands."""
    proof: str | None = None
    """How it is known where neither a gaps row nor a hole says so."""

    def touches(self, tables: Collection[str]) -> bool:
        """True when rows of one of ``tables`` may be among the missing."""
        return self.tables is None or not self.tables.isdisjoint(tables)

    @property
    def quiet(self) -> bool:
        """True when only QUIET_TABLES are hit."""
        return self.tables is not None and self.tables <= QUIET_TABLES


class Evidence:
    """What a check may rely on.

    Args:
        rows: the trace's rows.
        walks: its walks and membership.
        received: recv rows of messages that both ends recorded.
    """

    def __init__(self, rows: Rows, walks: Walks, received: Ints) -> None:
        self._rows = rows
        self.unclean = rows.meta.clean_end is not True or rows.meta.ended_ns is None
        self.holes = _holes(rows)
        gaps = _gap_rows(rows)
        self.losses = [
            Loss(actor, low, high, None, None, covered=False)
            for actor, low, high in _uncovered(self.holes, gaps)
        ] + [gap for gap in gaps if self._effective(gap)]
        self.losses += _unsent(rows, walks, received, {loss.actor for loss in self.losses})
        self.missing = _missing_actors(rows, walks)
        self._silent_agents = _outsiders(walks).intersection(self.missing)

    def _effective(self, gap: Loss) -> bool:
        """A gaps row whose rows are all there after all takes nothing away."""
        if gap.first_seq is None or gap.last_seq is None:
            return True
        # A reader that met a torn record puts the gaps row in its place.
        if gap.own_seq is not None and gap.first_seq <= gap.own_seq <= gap.last_seq:
            return True
        if not self._rows.has_rows(gap.actor):
            return True
        last = int(self._rows.seq[self._rows.last_row(gap.actor)])
        return gap.last_seq > last or any(
            actor == gap.actor and low <= gap.last_seq and gap.first_seq <= high
            for actor, low, high in self.holes
        )

    def who(self, actor: int) -> str:
        """An actor for people."""
        return actor_name(self._rows, actor)

    def lost(self, tables: Collection[str], actors: Iterable[int] | None = None) -> str | None:
        """Why rows of ``tables`` by ``actors`` (None: by anyone) may be missing; None if not."""
        among = None if actors is None else set(actors)
        for actor in self.missing:
            if among is None or actor in among:
                kind = " (a host agent)" if actor in self._silent_agents else ""
                return f"{self.who(actor)} has no events{kind}, so what it did is not known"
        for loss in self.losses:
            if loss.touches(tables) and (among is None or loss.actor in among):
                return self.describe(loss)
        return None

    def describe(self, loss: Loss) -> str:
        """One loss as a sentence."""
        hit = "" if loss.tables is None else f" of {', '.join(sorted(loss.tables))}"
        if loss.first_seq is None:
            span = "some events"
        elif loss.last_seq is None:
            span = f"events from {loss.first_seq} on"
        elif loss.first_seq == loss.last_seq:
            span = f"event {loss.first_seq}"
        else:
            span = f"events {loss.first_seq} to {loss.last_seq}"
        why = loss.proof or _WHY.get(loss.reason, loss.reason)
        return f"{self.who(loss.actor)} lacks {span}{hit} ({why})"

    def inside_loss(self, rank: int, incarnation: int, seq: int) -> bool:
        """True when a row that someone names may have been lost (not: never existed)."""
        actor = self._rows.actor_code(rank, incarnation)
        if actor in self.missing:
            return True
        if any(
            loss.actor == actor
            and (loss.first_seq is None or loss.first_seq <= seq)
            and (loss.last_seq is None or seq <= loss.last_seq)
            for loss in self.losses
        ):
            return True
        if not self._rows.has_rows(actor):
            return False
        return self.unclean and seq > int(self._rows.seq[self._rows.last_row(actor)])

    def report(self, watchers: dict[str, Collection[str]]) -> list[dict[str, Any]]:
        """The report's ``gaps``: each loss, and which checks it took something from."""
        out = []
        for loss in self.losses:
            actor = self._rows.actors[loss.actor]
            out.append(
                {
                    "rank": actor.rank,
                    "incarnation": actor.incarnation,
                    "first_seq": loss.first_seq,
                    "last_seq": loss.last_seq,
                    "num_events": loss.num_events,
                    "tables": None if loss.tables is None else sorted(loss.tables),
                    "reason": loss.reason,
                    "recorded": loss.covered,
                    "checks": [c for c, tables in watchers.items() if loss.touches(tables)],
                }
            )
        return out


def actor_name(rows: Rows, actor: int) -> str:
    """``rank 2``, ``agent 4``, ``rank 2 (restart 1)``."""
    named = rows.actors[actor]
    kind = "agent" if actor in agents(rows) else "rank"
    again = f" (restart {named.incarnation})" if named.incarnation else ""
    return f"{kind} {named.rank}{again}"


def agents(rows: Rows) -> frozenset[int]:
    """Actors that say they are host agents."""
    table = rows["actors"]
    return frozenset(rows.actor[table.rows[table.mask("kind", "agent")]].tolist())


def _holes(rows: Rows) -> list[tuple[int, int, int]]:
    """(actor, first, last) of every run of seqs that is not in the trace, from 0 to its last."""
    found = []
    for actor in range(rows.num_actors):
        first = int(rows.seq[rows.first_row(actor)])
        if first > 0:
            found.append((actor, 0, first - 1))
    at = np.flatnonzero((np.diff(rows.seq) > 1) & (np.diff(rows.actor) == 0))
    found += [
        (int(rows.actor[i]), int(rows.seq[i]) + 1, int(rows.seq[i + 1]) - 1) for i in at.tolist()
    ]
    return sorted(found)


def _gap_rows(rows: Rows) -> list[Loss]:
    found = []
    table = rows["gaps"]
    for at, row in zip(table.rows.tolist(), table.dicts(), strict=True):
        tables = row["tables"]
        found.append(
            Loss(
                actor=int(rows.actor[at]),
                first_seq=row["first_seq"],
                last_seq=row["last_seq"],
                tables=None if tables is None else frozenset(tables),
                reason=row["reason"],
                covered=True,
                num_events=row["num_events"],
                own_seq=int(rows.seq[at]),
            )
        )
    return found


def _unsent(rows: Rows, walks: Walks, received: Ints, told: set[int]) -> list[Loss]:
    """Losses that a message proves: it arrived, and its sender has no row of sending it.

    The end of a file may be cut off without leaving a hole. An actor that died has its last row where
    it died; importers may know one end of a message only.
    """
    if rows.meta.mode == "imported":
        return []
    table = rows["messages"]
    arrived = table.mask("direction", "recv") & (table.ints("channel_seq") != NULL)
    orphans = np.flatnonzero(arrived & ~np.isin(table.rows, received))
    senders = rows.actor_codes(table.ints("peer")[orphans], table.ints("peer_incarnation")[orphans])
    found: dict[int, Loss] = {}
    for at, sender in zip(table.rows[orphans].tolist(), senders.tolist(), strict=True):
        known = sender >= 0 and rows.has_rows(sender) and not walks.failed(sender)
        if not known or sender in told or sender in found:
            continue
        receiver = actor_name(rows, int(rows.actor[at]))
        proof = f"{receiver} received a message from it whose sending is not recorded"
        found[sender] = Loss(sender, None, None, None, "not_supplied", covered=False, proof=proof)
    return list(found.values())


def _uncovered(holes: list[tuple[int, int, int]], gaps: list[Loss]) -> list[tuple[int, int, int]]:
    """The parts of holes that no gaps row accounts for."""
    left = []
    for actor, low, high in holes:
        spans = sorted(
            (g.first_seq, high if g.last_seq is None else g.last_seq)
            for g in gaps
            if g.actor == actor and g.first_seq is not None
        )
        at = low
        for first, last in spans:
            if first > high:
                break
            if first > at:
                left.append((actor, at, first - 1))
            at = max(at, last + 1)
        if at <= high:
            left.append((actor, at, high))
    return left


def _outsiders(walks: Walks) -> set[int]:
    """Actors that proposed walks and are in no view: host agents, whatever else is known of them."""
    inside = {a for row in walks.membership for a in (*row["members"], *row["departed"])}
    return {step.proposer for step in walks.steps if step.proposer is not None} - inside


def _missing_actors(rows: Rows, walks: Walks) -> list[int]:
    """Actors of the job, as told by world_size and membership rows, without a row of their own."""
    present = set()
    introductions = TABLE_NAMES.index("actors")
    for actor in range(rows.num_actors):
        span = rows.table[rows.start[actor] : rows.start[actor + 1]]
        if (span != introductions).any():
            present.add(actor)
    seen_ranks = {rows.actors[actor].rank for actor in present}
    missing = {
        rows.actor_code(rank, 0) for rank in range(rows.meta.world_size) if rank not in seen_ranks
    }
    for row in walks.membership:
        missing.update(a for a in (*row["members"], *row["joined"]) if a not in present)
    return sorted(missing, key=lambda a: rows.actors[a])
