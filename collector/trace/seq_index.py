"""Which seqs of some actors a trace accounts for, read once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cascade_runtime.vocabulary.identity import Actor
from cascade_runtime.vocabulary.schema import EVENT_TABLES
from collector.losses import Accounted, Seqs, Span

Reader = Callable[[str, Sequence[str]], pa.Table]
"""Rows of a table (name, columns), without those that are made for losses."""


class SeqIndex:
    """The seqs of some actors over all event tables.

    Args:
        read: gives the rows of a table.
        actors: whom it is about.
    """

    def __init__(self, read: Reader, actors: Iterable[Actor]) -> None:
        self._seqs: dict[Actor, list[Seqs]] = {actor: [] for actor in actors}
        self._covered: dict[Actor, list[Span]] = {actor: [] for actor in self._seqs}
        for name in EVENT_TABLES if self._seqs else ():
            columns = ["rank", "incarnation", "seq"]
            rows = read(name, [*columns, "first_seq", "last_seq"] if name == "gaps" else columns)
            self._add(name, rows)

    def _add(self, name: str, rows: pa.Table) -> None:
        if rows.num_rows == 0:
            return
        ranks = pa.array(sorted({actor.rank for actor in self._seqs}), pa.int32())
        rows = rows.filter(pc.is_in(rows["rank"], ranks))
        for actor in self._seqs:
            mine = rows.filter(
                pc.and_(
                    pc.equal(rows["rank"], actor.rank),
                    pc.equal(rows["incarnation"], actor.incarnation),
                )
            )
            self._seqs[actor].append(mine["seq"].to_numpy())
            if name == "gaps":
                spans = zip(
                    mine["first_seq"].to_pylist(), mine["last_seq"].to_pylist(), strict=True
                )
                self._covered[actor] += [(a, b) for a, b in spans if a is not None]

    def of(self, actor: Actor) -> Accounted:
        """What the trace accounts for of one of the actors."""
        parts = self._seqs[actor]
        seqs = np.unique(np.concatenate(parts)) if parts else np.empty(0, dtype=np.int64)
        return Accounted(seqs, self._covered[actor])
