"""From leaving STRONG to being back: the fault, the walks, what was relaxed and how it was settled."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

from dashboard.story.apart import apart_words
from dashboard.story.causes import cause_words
from dashboard.story.facts import Facts
from dashboard.story.fault_words import death_words
from dashboard.story.losses import LOST, lost_words, stopped_actors
from dashboard.story.model import Debt, Walk
from dashboard.story.names import GroupNames
from dashboard.story.walks import is_end
from dashboard.story.words import count, duration, listed, moment, sentence

_LEVEL = {"STRONG": 0, "CAUSAL": 1, "EVENTUAL": 2}
_FAULT_BEFORE_NS = 60_000_000_000
"""A fault that came longer before a walk is not what led to it."""


@dataclass
class Excursion:
    """One time out of STRONG of one group.

    Attributes:
        walks: the walk out, those between, and the walk back when there is one.
        fault_ns: when the fault was seen that led to it; the first walk's time when that is unknown.
        end_ns: when the group was back, else the end of what is known.
        died: ranks that the view lost meanwhile because they died (or their host did).
        how: what those died of, as far as it is told: ``SIGKILL``, ``exit code 1``.
        stopped: ranks that it lost because they were stopped.
        last_loss_ns: when the last of them was seen to be lost; the fault's time where none was.
        subject: the rank that the fault is about, where it is about one.
        held: NODE_CHURN_HIGH stood in it, so that its end waited for quiet.
    """

    group: str
    walks: list[Walk]
    fault_ns: int
    end_ns: int
    is_back: bool
    died: list[int] = field(default_factory=list)
    how: list[str] = field(default_factory=list)
    stopped: list[int] = field(default_factory=list)
    debts: list[Debt] = field(default_factory=list)
    subject: int | None = None
    last_loss_ns: int = 0
    held: bool = False

    @property
    def out_ns(self) -> int:
        """When STRONG was left."""
        return self.walks[0].at_ns

    @property
    def span_ns(self) -> int:
        """How long it was not STRONG."""
        return max(0, self.end_ns - self.out_ns)

    @property
    def lowest(self) -> str:
        """The weakest regime of it."""
        return max((w.to_regime or "CAUSAL" for w in self.walks), key=lambda r: _LEVEL.get(r, 1))

    @property
    def passed(self) -> list[str]:
        """The regimes that it was in, each once, the weakest first."""
        held = {w.to_regime or "CAUSAL" for w in self.walks} - {"STRONG"}
        return sorted(held, key=lambda r: -_LEVEL.get(r, 1))

    @property
    def when(self) -> str:
        """``at 2.1 s``, or ``between 2.1 s and 2.9 s`` where ranks were lost one after another."""
        first, last = moment(self.fault_ns), moment(self.last_loss_ns)
        if len(self.died) + len(self.stopped) < 2 or first == last:
            return f"at {first}"
        return f"between {first} and {last}"

    @property
    def num_open(self) -> int:
        """Debts of it that nobody settled."""
        return sum(debt.fate is None for debt in self.debts)

    @property
    def cause(self) -> str:
        """``rank 2 died``, or what the fault says."""
        return lost_words(self.died, self.stopped) or cause_words(self.walks[0].fault, self.subject)

    def words(self) -> str:
        """All of it in one sentence."""
        fault = self.walks[0].fault
        lost = self.died or self.stopped
        known = f" ({fault})" if fault and fault not in self.cause else ""
        down = [w for w in self.walks if not (self.is_back and w is self.walks[-1])]
        path = [self.walks[0].from_regime or "STRONG", *(w.to_regime or "?" for w in down)]
        route = " to ".join(name for name, _ in groupby(path))
        whom = "the others" if lost else "the ranks"
        cause = lost_words(self.died, self.stopped, self.how) or self.cause
        said = f"{cause} {self.when}{known}: {whom} went from {route}"
        parts = [said, *apart_words(self.walks, self.end_ns), *self._debt_words()]
        if self.held:
            parts.append("waited until nobody had come or gone for a while (NODE_CHURN_HIGH)")
        if self.is_back:
            parts.append(f"and were back in STRONG after {duration(self.span_ns)}")
        else:
            parts.append(f"and have been out of STRONG for {duration(self.span_ns)}")
        return sentence(", ".join(parts[:-1]) + " " + parts[-1])

    def _debt_words(self) -> list[str]:
        if not self.debts:
            return []
        settled = sum(debt.fate == "settled" for debt in self.debts)
        off = sum(debt.fate == "written_off" for debt in self.debts)
        fates = [
            f"{number:,} {word}"
            for number, word in (
                (settled, "settled"),
                (off, "written off"),
                (self.num_open, "still open"),
            )
            if number
        ]
        return [f"opened {count(len(self.debts), 'debt')} ({listed(fates)})"]


def excursions_of(
    facts: Facts, walks: Sequence[Walk], debts: Sequence[Debt], names: GroupNames
) -> list[Excursion]:
    """Every excursion of every group, in time."""
    found = []
    by_group: dict[str, list[Walk]] = {}
    for walk in walks:
        by_group.setdefault(walk.group, []).append(walk)
    last = facts.since(facts.t1_ns)
    for group, of_group in by_group.items():
        for chain in _chains(of_group):
            is_back = chain[-1].to_regime == "STRONG"
            end = chain[-1].at_ns if is_back else last
            found.append(Excursion(group, chain, chain[0].at_ns, end, is_back))
    found.sort(key=lambda e: (e.out_ns, e.group))
    faults, lost = (
        _by_group(facts, facts.rows.faults, names),
        _by_group(facts, _losses(facts), names),
    )
    stopped = stopped_actors(facts)
    agents = {row["rank"] for row in facts.rows.actors if row["kind"] == "agent"}
    for one in found:
        if (led := _led_to(one, faults.get(one.group, ()))) is not None:
            one.fault_ns = led[0]
            # A fault about nobody has the rank of the agent that saw it.
            one.subject = None if led[1]["rank"] in agents else led[1]["rank"]
        epochs = {walk.epoch for walk in one.walks}
        gone = {
            (row["rank"], row["incarnation"])
            for at_ns, row in lost.get(one.group, ())
            if one.fault_ns <= at_ns <= one.end_ns and row["epoch"] in epochs
        }
        within = [
            (at_ns, row) for at_ns, row in faults.get(one.group, ())
            if one.fault_ns <= at_ns <= one.end_ns
        ]  # fmt: skip
        one.held = any(
            row["fault"] == "NODE_CHURN_HIGH" and at_ns > one.out_ns for at_ns, row in within
        )
        one.last_loss_ns = max(
            (
                at_ns
                for at_ns, row in within
                if row["fault"] == "GPU_FAIL_STOP" and (row["rank"], row["incarnation"]) in gone
            ),
            default=one.fault_ns,
        )
        one.died = sorted({rank for rank, _ in gone - stopped})
        one.stopped = sorted({rank for rank, _ in gone & stopped})
        one.how = _how(within, gone - stopped)
        one.debts = [
            d for d in debts if d.group == one.group and one.fault_ns <= d.opened_ns <= one.end_ns
        ]
    return found


def _how(within: Sequence[tuple[int, dict[str, Any]]], died: set[tuple[int, int]]) -> list[str]:
    """What the dead died of, each once, in time."""
    told = (
        death_words(row["value"])
        for _, row in within
        if row["signal"] == "dead" and (row["rank"], row["incarnation"]) in died
    )
    return [how for how in dict.fromkeys(told) if how]


def _losses(facts: Facts) -> list[dict[str, Any]]:
    return [r for r in facts.rows.changes if r["what"] == "departed" and r["reason"] in LOST]


def _by_group(
    facts: Facts, rows: Sequence[dict[str, Any]], names: GroupNames
) -> dict[str, list[tuple[int, dict[str, Any]]]]:
    """(time, row) of each group, in time."""
    found: dict[str, list[tuple[int, dict[str, Any]]]] = {}
    for row in sorted(rows, key=lambda r: int(r["wall_ns"])):
        if row["group_id"] is not None:
            found.setdefault(names(row["group_id"]), []).append((facts.since(row["wall_ns"]), row))
    return found


def _chains(walks: Sequence[Walk]) -> list[list[Walk]]:
    """Walks from one that leaves STRONG to one that comes back."""
    chains: list[list[Walk]] = []
    current: list[Walk] | None = None
    for walk in walks:
        leaves = walk.to_regime not in (None, "STRONG")
        if current is None and leaves and walk.from_regime in (None, "STRONG"):
            current = [walk]
            chains.append(current)
        elif current is not None and not is_end(walk):
            current.append(walk)
            if walk.to_regime == "STRONG":
                current = None
    return chains


def _led_to(
    excursion: Excursion, faults: Sequence[tuple[int, dict[str, Any]]]
) -> tuple[int, dict[str, Any]] | None:
    """The last sight of the fault before the walk out: (time, row)."""
    walk = excursion.walks[0]
    before = [
        (at_ns, row)
        for at_ns, row in faults
        if row["fault"] == walk.fault and 0 <= walk.at_ns - at_ns <= _FAULT_BEFORE_NS
    ]
    return before[-1] if before and walk.fault else None
