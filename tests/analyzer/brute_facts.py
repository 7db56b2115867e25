"""What the rules by their definitions ask of a story: row against row, over the closure of brute.py."""

from __future__ import annotations

from typing import Any

from tests.analyzer.brute import closure
from tests.story import Dot, Story

Key = tuple[int, int, int]
Row = dict[str, Any]


def dot_of(row: Row) -> Dot | None:
    if row["counter"] is None:
        return None
    return row["origin_rank"], row["origin_incarnation"], row["counter"]


def dots(listed: list[Row] | None) -> list[Dot]:
    return [(d["rank"], d["incarnation"], d["counter"]) for d in listed or ()]


class Facts:
    """A story's rows in their order, and what follows from them."""

    def __init__(self, story: Story) -> None:
        self.rows = sorted(
            story.rows, key=lambda tr: (tr[1]["rank"], tr[1]["incarnation"], tr[1]["seq"])
        )
        self.keys, self._reach = closure(story.rows)
        self.updates = [(i, r) for i, (t, r) in enumerate(self.rows) if t == "updates"]
        self.reads = [(i, r) for i, (t, r) in enumerate(self.rows) if t == "reads"]
        self.loads = [
            (i, r)
            for i, (t, r) in enumerate(self.rows)
            if t == "checkpoints" and r["action"] != "saved"
        ]
        self.objects = {r["object"]: r for t, r in self.rows if t == "objects"}
        self.issued: dict[Dot, int] = {}
        self.object: dict[Dot, str] = {}
        self.deps: dict[Dot, list[Dot]] = {}
        self.void: set[Dot] = set()
        for i, r in self.updates:
            dot = dot_of(r)
            assert dot is not None
            if r["action"] == "issued" and (
                dot not in self.issued or dot[:2] == self.actor(i) != self.actor(self.issued[dot])
            ):
                # The author's own first counts before a foreign one.
                self.issued[dot] = i
                self.deps[dot] = dots(r["deps"])
            self.object[dot] = r["object"]
            if r["action"] == "discarded" and dot[:2] == self.actor(i):
                self.void.add(dot)

    def actor(self, i: int) -> tuple[int, int]:
        return self.keys[i][:2]

    def before(self, i: int, j: int) -> bool:
        return bool(self._reach[i] >> j & 1)

    def regime(self, i: int) -> str | None:
        regime: str | None = self.rows[i][1]["regime"]
        return regime

    def kind(self, obj: str) -> str:
        return str(self.objects[obj]["update_kind"]) if obj in self.objects else "assign"

    def keeps(self, i: int, obj: str) -> bool:
        holders = self.objects.get(obj, {}).get("holders")
        return holders is None or self.actor(i)[0] in holders

    def causes(self, dot: Dot) -> set[Dot]:
        """All that it depends on: listed, implied by its author's order, and what follows."""
        found: set[Dot] = set()
        left = [dot]
        while left:
            one = left.pop()
            nearest = [(one[0], one[1], one[2] - 1), *self.deps.get(one, [])]
            for cause in {
                d
                for d in self.object
                for n in nearest
                if d[:2] == n[:2] and d[2] <= n[2] and (d[:2] != one[:2] or d[2] < one[2])
            }:
                if cause not in found:
                    found.add(cause)
                    left.append(cause)
        return found - {dot}

    def gone(self, load: Row) -> set[Dot]:
        """What a load of scope group took back, by all that loaded the checkpoint."""
        found = of_earlier_lives(self, load)
        for i, other in self.loads:
            same = other["checkpoint_id"] == load["checkpoint_id"] and other["scope"] == "group"
            if not same or other["action"] != "loaded":
                continue
            upto = {d[:2]: d[2] for d in dots(other["frontier"])}
            found |= {
                d
                for d, j in self.issued.items()
                if d[:2] == self.actor(i) and j < i and d[2] > upto.get(d[:2], 0)
            }
        return found

    def group_loads_before(self, i: int) -> list[tuple[int, Row]]:
        return [
            (j, r)
            for j, r in self.loads
            if self.before(j, i) and r["action"] == "loaded" and r["scope"] == "group"
        ]

    def had(self, i: int, dot: Dot) -> bool:
        """Whether row i's actor needs to wait for the dot no more."""
        mine = [(j, r) for j, r in self.updates if self.actor(j) == self.actor(i)]
        if dot in self.void or (dot in self.object and not self.keeps(i, self.object[dot])):
            return True
        if any(r["action"] == "discarded" and dot_of(r) == dot for _, r in mine):
            return True
        if any(dot in self.gone(r) for _, r in self.group_loads_before(i)):
            return True
        last = [(j, r) for j, r in self.loads if self.actor(j) == self.actor(i) and j < i][-1:]
        since = last[0][0] if last else -1
        if last and any(d[:2] == dot[:2] and dot[2] <= d[2] for d in dots(last[0][1]["frontier"])):
            return True
        return any(
            since < j < i
            and dot_of(r) == dot
            and (r["action"] == "applied" or (r["action"] == "issued" and dot[:2] == self.actor(i)))
            for j, r in mine
        )

    def applies(self, everywhere: bool = False) -> list[tuple[int, Dot]]:
        found = []
        for i, r in self.updates:
            dot = dot_of(r)
            if r["action"] == "applied" and (everywhere or self.regime(i) != "EVENTUAL"):
                assert dot is not None
                found.append((i, dot))
        return found

    def keyed(self, rows: set[int]) -> set[Key]:
        return {self.keys[i] for i in rows}


def of_earlier_lives(facts: Facts, load: Row, only: tuple[int, int] | None = None) -> set[Dot]:
    """Dots beyond the checkpoint of incarnations before those that loaded it."""
    found = set()
    for i, other in facts.loads:
        if other["checkpoint_id"] != load["checkpoint_id"] or other["action"] != "loaded":
            continue
        if other["scope"] != load["scope"] or (only and facts.actor(i) != only):
            continue
        upto = {d[:2]: d[2] for d in dots(other["frontier"])}
        rank, incarnation = facts.actor(i)
        found |= {
            d
            for d in facts.object
            if d[0] == rank and d[1] < incarnation and d[2] > upto.get(d[:2], 0)
        }
    return found
