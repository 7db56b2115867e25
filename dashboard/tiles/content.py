"""Everything that tiles are drawn from, of one run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal

import numpy as np

from dashboard.tiles.edges_native import Ints
from dashboard.tiles.encode import Layer
from dashboard.tiles.feed_waits import Lanes, Provisional, add_judged
from dashboard.tiles.percent import ROWS, Samples, draw_busy
from dashboard.tiles.rows import ACTORS, COLLECTIVES, COMPUTE, CPU, GPU, GROUPS, UNKNOWN, Rows
from dashboard.tiles.spans import Spans

LANES = ("waited", "caused", "gpu", "cpu")

Kind = Literal["judged", "provisional"]


class Content:
    """The lanes of one run; not for several threads at once.

    Args:
        t0: wall clock that times count from.
        kind: whether waits are those of an analysis, or as collectives show them.
    """

    def __init__(self, t0: int, kind: Kind) -> None:
        self.t0 = t0
        self.kind: Kind = kind
        self.waits = Lanes()
        self.gpu = Samples()
        self.cpu = Samples()
        self.busy = Spans(union=True)
        self.ranks: set[int] = set()
        self.agents: set[int] = set()
        self.upto_ns = 0
        self._provisional = Provisional(t0)

    @property
    def num_held(self) -> int:
        """Collectives that will be in the lanes in a moment, though nothing more comes."""
        return self._provisional.num_held

    @property
    def num_laid(self) -> int:
        """Members of collectives that are in the lanes; of a run that is not judged."""
        return self._provisional.num_laid

    @property
    def is_off(self) -> bool:
        """What is known now would be drawn otherwise: all must be read again."""
        return self._provisional.is_off

    def add(
        self,
        rows: Rows,
        waiting: Rows | None = None,
        now_s: float = 0.0,
        *,
        is_whole: bool = True,
    ) -> None:
        """Add rows of the event tables.

        Args:
            rows: of a run that grows, less collectives that have not completed.
            waiting: of a run that grows, all of those.
            now_s: the clock, for those.
            is_whole: whether no older row is still to come.
        """
        actors = rows.only(ACTORS)
        self.agents.update(actors.rank[actors.kind == 1].tolist())
        self.ranks.update(actors.rank[actors.kind != 1].tolist())
        for samples, what in ((self.gpu, GPU), (self.cpu, CPU)):
            found = rows.only(what)
            samples.add(found.wall_ns - self.t0, found.value)
        spans = rows.only(COMPUTE)
        known = (spans.begin_ns != UNKNOWN) & (spans.end_ns != UNKNOWN)
        self.busy.add(
            spans.rank[known], spans.begin_ns[known] - self.t0, spans.end_ns[known] - self.t0
        )
        if self.kind == "provisional":
            entered = rows.only(COLLECTIVES)
            self.ranks.update(np.unique(entered.rank).tolist())
            if waiting is not None:
                self.ranks.update(np.unique(waiting.rank).tolist())
            groups = rows.only(GROUPS)
            self._provisional.add(self.waits, entered, groups, waiting, now_s, is_whole=is_whole)
        for some in (rows, waiting):
            if some is not None and len(some.wall_ns):
                self.upto_ns = max(self.upto_ns, int(some.wall_ns.max()) - self.t0)

    def add_judged(self, waits: Any) -> None:
        """Add a part of ``rows.judged_parts``."""
        add_judged(self.waits, self.t0, waits)

    def shown_ranks(self) -> list[int]:
        """The ranks that have a lane when none are asked for."""
        found = self.ranks.union(self.waits.waited.rows, self.waits.caused.rows)
        return sorted(found - self.agents)

    def layers(self, lanes: Iterable[str], ranks: Sequence[int], bounds: Ints) -> list[Layer]:
        """The lanes asked for; gpu and cpu are of all ranks whatever ``ranks`` says."""
        layers = []
        for lane in lanes:
            if lane in ("waited", "caused"):
                spans, peers = self.waits.waited, 1
                if lane == "caused":
                    spans, peers = self.waits.caused, max(1, len(self.shown_ranks()) - 1)
                values = spans.draw(ranks, bounds, peers)
                layers.append(Layer(lane, ranks, "sqrt", values, peers))
                continue
            samples = self.gpu if lane == "gpu" else self.cpu
            if lane == "cpu" and not samples.num and self.busy.rows:
                values = draw_busy(self.busy, bounds)
            else:
                values = samples.draw(bounds)
            layers.append(Layer(lane, ROWS, "percent", values))
        return layers
