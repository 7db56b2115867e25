"""Walks between epochs: proposals, acknowledgements, commits, views, membership, closed actors.

A view is (group, new epoch, members): the committed rows of one view are one walk. Source of the
definitions: design contract 4.4.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from analyzer.columns import NULL
from analyzer.rows import LEVELS, Rows

Members = tuple[int, ...]


@dataclass(frozen=True)
class Step:
    """One transitions row in codes."""

    row: int
    actor: int
    group: int
    phase: str
    new_epoch: int
    from_level: int
    to_level: int
    fault: str | None
    reason: str | None
    members: Members
    cohorts: tuple[Members, ...] | None
    proposer: int | None
    evidence: tuple[tuple[int, int, int], ...]


@dataclass
class Walk:
    """A committed view and its rows."""

    group: int
    new_epoch: int
    members: Members
    commits: list[Step] = field(default_factory=list)

    @property
    def reported(self) -> Step:
        """The proposer's committed row; the lowest member's when the proposer wrote none."""
        for step in self.commits:
            if step.actor == step.proposer:
                return step
        return self.commits[0]

    @property
    def climbs(self) -> bool:
        """True when it walks up."""
        return 0 < self.reported.from_level < self.reported.to_level

    @property
    def falls(self) -> bool:
        """True when it walks down."""
        return 0 < self.reported.to_level < self.reported.from_level

    def commit_of(self, actor: int) -> Step | None:
        """The actor's own committed row of this view."""
        return next((step for step in self.commits if step.actor == actor), None)


class Walks:
    """All walks of a trace, and who was in which view."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows
        steps = [self._step(i, row) for i, row in enumerate(rows["transitions"].dicts())]
        self.steps = [step for step in steps if step is not None]

    def _step(self, index: int, row: dict[str, Any]) -> Step | None:
        new_epoch = row["new_epoch"]
        if new_epoch is None and row["phase"] == "committed":
            new_epoch = row["epoch"]
        if row["phase"] is None or new_epoch is None:
            return None
        at = int(self._rows["transitions"].rows[index])
        cohorts = row["cohorts"]
        proposer = row["proposer"]
        return Step(
            row=at,
            actor=int(self._rows.actor[at]),
            group=int(self._rows.group[at]),
            phase=row["phase"],
            new_epoch=new_epoch,
            from_level=LEVELS.get(row["from_regime"], 0),
            to_level=LEVELS.get(row["to_regime"], 0),
            fault=row["fault"],
            reason=row["reason"],
            members=self._members(row["members"]),
            cohorts=None if cohorts is None else tuple(sorted(map(self._members, cohorts))),
            proposer=None if proposer is None else self._code(proposer),
            evidence=tuple(
                (e["rank"], e["incarnation"] or 0, e["seq"])
                for e in row["evidence"] or ()
                if e is not None
            ),
        )

    def _code(self, actor: dict[str, int]) -> int:
        return self._rows.actor_code(actor["rank"], actor["incarnation"])

    def _members(self, actors: list[dict[str, int]] | None) -> Members:
        return tuple(sorted({self._code(a) for a in actors or ()}))

    def phase(self, phase: str) -> list[Step]:
        """The rows of one phase, in row order."""
        return [step for step in self.steps if step.phase == phase]

    @cached_property
    def walks(self) -> list[Walk]:
        """Committed views, by group and epoch."""
        found: dict[tuple[int, int, Members], Walk] = {}
        for step in self.phase("committed"):
            key = (step.group, step.new_epoch, step.members)
            found.setdefault(key, Walk(*key)).commits.append(step)
        return [found[key] for key in sorted(found)]

    def view_of(self, group: int, epoch: int, actor: int) -> Walk | None:
        """The view of an epoch that holds the actor (or, failing that, the epoch's only view)."""
        views = self._by_epoch.get((group, epoch), [])
        for view in views:
            if actor in view.members or view.commit_of(actor):
                return view
        return views[0] if len(views) == 1 else None

    @cached_property
    def _by_epoch(self) -> dict[tuple[int, int], list[Walk]]:
        found: dict[tuple[int, int], list[Walk]] = {}
        for walk in self.walks:
            found.setdefault((walk.group, walk.new_epoch), []).append(walk)
        return found

    def views(self) -> dict[tuple[int, int], list[Walk]]:
        """Views by (group, epoch); more than one when sides of a partition walked alone."""
        return self._by_epoch

    def proposal_of(self, walk: Walk) -> Step | None:
        """The proposed row that led to the walk: the proposer's last before its commit."""
        fits = [
            step
            for step in self.phase("proposed")
            if (step.group, step.new_epoch) == (walk.group, walk.new_epoch)
        ]
        same = [s for s in fits if s.members == walk.members] or fits
        own = [s for s in same if s.actor == walk.reported.proposer] or same
        return own[-1] if own else None

    def commits_of(self, actor: int) -> list[Step]:
        """The actor's committed rows in order."""
        return self._commits_by_actor.get(actor, [])

    @cached_property
    def _commits_by_actor(self) -> dict[int, list[Step]]:
        found: dict[int, list[Step]] = {}
        for step in self.phase("committed"):
            found.setdefault(step.actor, []).append(step)
        return found

    def open_proposals(self) -> list[Step]:
        """Proposed rows that were neither committed (by this or a later epoch) nor aborted."""
        highest: dict[int, int] = {}
        for walk in self.walks:
            highest[walk.group] = max(highest.get(walk.group, -1), walk.new_epoch)
        aborted = {(s.group, s.new_epoch) for s in self.phase("aborted")}
        return [
            s
            for s in self.phase("proposed")
            if s.new_epoch > highest.get(s.group, -1) and (s.group, s.new_epoch) not in aborted
        ]

    # --- membership ----------------------------------------------------------------------

    @cached_property
    def membership(self) -> list[dict[str, Any]]:
        """Membership rows as dicts: row, actor, group, epoch, members, joined, departed, reason."""
        table = self._rows["membership"]
        found = []
        for at, row in zip(table.rows.tolist(), table.dicts(), strict=True):
            found.append(
                {
                    "row": at,
                    "actor": int(self._rows.actor[at]),
                    "group": int(self._rows.group[at]),
                    "epoch": row["epoch"],
                    "members": self._members(row["members"]),
                    "joined": self._members(row["joined"]),
                    "departed": self._members(row["departed"]),
                    "reason": row["reason"],
                }
            )
        return found

    @cached_property
    def closed(self) -> dict[int, tuple[int, str | None]]:
        """Departed actors: (row that says so, its reason). Their last row closes what they left."""
        found: dict[int, tuple[int, str | None]] = {}
        for row in self.membership:
            for actor in row["departed"]:
                found.setdefault(actor, (row["row"], row["reason"]))
        return found

    def was_closed(self, actor: int, epoch: int) -> bool:
        """True when a membership row of this epoch or an earlier one says that the actor departed.

        An epoch that was not recorded (NULL) counts as after it.
        """
        closed_in = self._closed_in.get(actor)
        return closed_in is not None and (epoch == NULL or closed_in <= epoch)

    @cached_property
    def _closed_in(self) -> dict[int, int]:
        """Departed actors: the first epoch that they are not in; 0 where the rows name none."""
        found: dict[int, int] = {}
        for row in self.membership:
            for actor in row["departed"]:
                epoch = row["epoch"] or 0
                found[actor] = min(found.get(actor, epoch), epoch)
        return found

    def failed(self, actor: int) -> bool:
        """True when the actor is closed and did not finish in order."""
        return actor in self.closed and self.closed[actor][1] != "finished"

    def stopped(self, actor: int) -> bool:
        """True when the actor was stopped (SIGSTOP) and left behind, and not known to be dead."""
        return actor in self.closed and self.closed[actor][1] == "stopped"

    def left_in_order(self, actor: int) -> bool:
        """True when the actor's own rows run up to its leaving: nothing that it did can be missing."""
        return any(
            row["actor"] == actor and actor in row["departed"] and row["reason"] == "finished"
            for row in self.membership
        )

    def initial_members(self, group: int) -> Members:
        """Members of the group's first view: its earliest membership row, else the first walk's."""
        rows = [r for r in self.membership if r["group"] == group and r["members"]]
        if rows:
            members: Members = min(rows, key=lambda r: (r["epoch"] or 0, r["row"]))["members"]
            return members
        walks = [w for w in self.walks if w.group == group]
        return walks[0].members if walks else ()

    def cohort_mates(self, actor: int) -> frozenset[int]:
        """Actors that ever shared a cohort with this one."""
        return self._mates.get(actor, frozenset())

    @cached_property
    def _mates(self) -> dict[int, frozenset[int]]:
        cohorts: list[Members] = []
        groups = {r["group"] for r in self.membership} | {w.group for w in self.walks}
        cohorts += [self.initial_members(group) for group in groups]
        for walk in self.walks:
            cohorts += walk.reported.cohorts or (walk.members,)
        mates: dict[int, set[int]] = {}
        for cohort in cohorts:
            for actor in cohort:
                mates.setdefault(actor, set()).update(cohort)
        return {actor: frozenset(found) for actor, found in mates.items()}
