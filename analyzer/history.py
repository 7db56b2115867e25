"""A trace as the rules see it: rows in one order, and what follows from them, worked out once."""

from __future__ import annotations

from functools import cached_property

from analyzer.columns import Ints
from analyzer.dots import Dots
from analyzer.edges import Edges, build_edges, message_pairs
from analyzer.evidence import Evidence, actor_name, agents
from analyzer.happens_before import HappensBefore
from analyzer.hosts import Clocks
from analyzer.instances import Instances
from analyzer.known_dots import KnownDots
from analyzer.operations import Operations
from analyzer.replicas import Replicas
from analyzer.rollbacks import Rollbacks
from analyzer.rows import Rows
from analyzer.walks import Walks
from cascade_runtime.vocabulary.ports import TraceSource


class History:
    """Everything a rule may ask of a trace; parts are built on first use."""

    def __init__(self, source: TraceSource) -> None:
        self.rows = Rows(source)
        self.meta = source.meta
        self.walks = Walks(self.rows)
        self.evidence = Evidence(self.rows, self.walks, self.message_pairs[1])

    @cached_property
    def dots(self) -> Dots:
        """Updates and reads by dot."""
        return Dots(self.rows, self.walks)

    @cached_property
    def known(self) -> KnownDots:
        """Every dot that updates name, with its causes."""
        return KnownDots(self.rows, self.dots)

    @cached_property
    def rollbacks(self) -> Rollbacks:
        """Updates that loads took back."""
        return Rollbacks(self.rows, self.dots, self.known)

    @cached_property
    def replicas(self) -> Replicas:
        """What each actor's copy holds at each of its updates."""
        return Replicas(
            self.rows,
            self.dots,
            self.known,
            lambda nodes, at: self.rollbacks.undone(nodes, at, self.hb),
        )

    @cached_property
    def instances(self) -> Instances:
        """Collectives by (comm_id, cseq)."""
        return Instances(self.rows, self.walks)

    @cached_property
    def hb(self) -> HappensBefore:
        """Happens-before; the expensive part."""
        return HappensBefore(self.rows, self.edges)

    @cached_property
    def edges(self) -> Edges:
        """The edges of happens-before besides program order."""
        return build_edges(self.rows, self.dots, self.instances, self.message_pairs)

    @cached_property
    def message_pairs(self) -> tuple[Ints, Ints]:
        """(send row, recv row) of every message that both ends recorded."""
        return message_pairs(self.rows)

    @cached_property
    def clocks(self) -> Clocks:
        """The common time scale of its hosts."""
        return Clocks(self.rows, self.message_pairs, self.instances)

    @cached_property
    def operations(self) -> Operations:
        """Collectives, updates and reads together: what acts under a regime."""
        return Operations(self.rows)

    @cached_property
    def agents(self) -> frozenset[int]:
        """Actors that are host agents."""
        return agents(self.rows)

    def happens_before(self, first: int, second: int) -> bool:
        """True when row ``first`` happens-before row ``second``; O(1) after the pass."""
        return self.hb.before(first, second)

    def records(self, table: str) -> bool:
        """True when the run recorded this table (no rows then means that nothing happened)."""
        return table in self.rows.recorded

    def who(self, actor: int) -> str:
        """An actor for people: ``rank 2``."""
        return actor_name(self.rows, actor)

    def who_did(self, row: int) -> str:
        """The actor of a row for people."""
        return self.who(int(self.rows.actor[row]))

    def whom(self, actors: list[int] | tuple[int, ...]) -> str:
        """Several actors for people: ``rank 0 and rank 3``, shortened beyond six."""
        names = [self.who(actor) for actor in actors[:6]]
        if len(actors) > 6:
            names.append(f"{len(actors) - 6} more")
        return names[0] if len(names) == 1 else ", ".join(names[:-1]) + " and " + names[-1]

    def group_name(self, group: int) -> str:
        """A consistency group's id."""
        return self.rows.word("group", group)
