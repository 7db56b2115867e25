"""A run of very many ranks in CAUSAL, as numpy tells it: two cohorts that fold each other's updates.

What each rank records in a step is what the packaged runs record there: a begin, a forward read of each of
two objects by frontier, three collectives, an applied row of each of three objects, an end; the author of
the cohort issues three updates in it. The ranks of a cohort reduce in groups of GROUP (tensor parallel),
across those groups, and all together. Every BLOCK steps each author sends what it issued to every member of
the other cohort, which folds it. Every rank digests one object after each fold. So 42 % of the rows are
updates, 15 % reads and 23 % collectives; in the packaged runs it is 32, 17 and 25.

Arrival times carry jitter, and one rank may be slow in each group collective. The run is sound: every rule
answers ok.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks._columns import Pieces
from benchmarks._in_memory import InMemory
from cascade_runtime.vocabulary.schema import EVENT_TABLES
from cascade_runtime.vocabulary.trace_meta import TraceMeta
from collector.trace.parquet_files import write_parquet
from collector.trace.trace_writer import write_meta, write_views

BLOCK = 8
GROUP = 8
OBJECTS = ("params/0", "params/1", "buffers")
BOUND = 64
BEGIN_NS = 1_795_977_000_000_000_000
STEP_NS = 2_000_000
RUN_ID = "causal-run"
_PRELUDE = 1 + 4 + len(OBJECTS)
_IN_STEP = 1 + 2 + 3 + 3 + 1


@dataclass(frozen=True)
class Shape:
    """How large the run is.

    Attributes:
        num_ranks: a multiple of 2 x GROUP.
        num_blocks: of BLOCK steps each.
        slow_rank: one that is late in each group collective, or None.
        slow_ns: by how much.
        rest_ns: what a step takes besides.
        skewed: each GROUP of ranks is a host of its own, its clock up to 5 ms and 20 ppm off.
    """

    num_ranks: int
    num_blocks: int
    slow_rank: int | None = None
    slow_ns: int = 0
    skewed: bool = False
    rest_ns: int = 0

    @classmethod
    def of_rows(cls, num_ranks: int, num_rows: int, **slow: Any) -> Shape:
        """With at least so many rows."""
        a_block = num_ranks * (1 + 3 * BLOCK + _IN_STEP * BLOCK + 1)
        return cls(num_ranks, max(2, -(-num_rows // a_block)), **slow)

    @property
    def half(self) -> int:
        """Ranks of a cohort."""
        return self.num_ranks // 2


class CausalRun:
    """The run's rows, and the source of a trace over them."""

    def __init__(self, shape: Shape) -> None:
        self.shape = shape
        n = shape.num_ranks
        self._rank = np.arange(n)
        self._cohort = self._rank // shape.half
        self._author = self._cohort * shape.half
        self._other = (1 - self._cohort) * shape.half
        self._leads = self._rank == self._author
        self._rng = np.random.default_rng(7)
        self._time = np.full(n, BEGIN_NS, np.int64)
        self._seq = np.full(n, _PRELUDE, np.int64)
        self.num_rows = 0
        hosts = np.random.default_rng(3)
        num = shape.num_ranks // GROUP if shape.skewed else 0
        self._offset_ns = hosts.integers(-5_000_000, 5_000_001, num)
        self._drift = hosts.uniform(-20e-6, 20e-6, num)

    def _told(self, who: Any, true_ns: Any) -> Any:
        """A time as the rank's own host has it."""
        if not self.shape.skewed:
            return true_ns
        host = self._rank[who] // GROUP
        return (
            true_ns
            + self._offset_ns[host]
            + ((true_ns - BEGIN_NS) * self._drift[host]).astype(np.int64)
        )

    def meta(self, policy: Any = None) -> TraceMeta:
        """trace.json."""
        return TraceMeta(
            schema_version=1,
            run_id=RUN_ID,
            name="two cohorts",
            world_size=self.shape.num_ranks,
            mode="enforce",
            policy=policy,
            created_ns=BEGIN_NS,
            ended_ns=int(self._time.max()),
            clean_end=True,
            recorded_tables=list(EVENT_TABLES),
            tool_versions={},
        )

    def tables(self, first: int, last: int) -> dict[str, pa.Table]:
        """The rows of the blocks ``first`` to ``last`` - 1; call it in order of blocks."""
        self._made = {name: Pieces(name) for name in EVENT_TABLES}
        if first == 0:
            self._begin()
        for block in range(first, last):
            if block:
                self._fold(block)
            for step in range(block * BLOCK, (block + 1) * BLOCK):
                self._step(step, block)
            if block + 1 < self.shape.num_blocks:
                self._send(block)
        found = {name: rows.table() for name, rows in self._made.items() if rows.pieces}
        self.num_rows += sum(t.num_rows for t in found.values())
        return found

    def _add(self, table: str, who: Any, step: int | None, seq: Any = None, **columns: Any) -> None:
        """A row each of the ranks in ``who``, under their next seq."""
        if seq is None:
            seq = self._seq[who].copy()
            self._seq[who] += 1
        wall = self._told(who, self._time[who].copy())
        self._made[table].add(
            run_id=RUN_ID, rank=self._rank[who], incarnation=0, seq=seq, group_id="world", epoch=0,
            regime="CAUSAL", step=step, wall_ns=wall, mono_ns=wall - BEGIN_NS, **columns,
        )  # fmt: skip

    def _begin(self) -> None:
        shape, every = self.shape, self._rank
        self._seq[:] = 0
        host = every // GROUP if shape.skewed else every * 0
        names = (host, [f"host-{i}" for i in range(int(host.max()) + 1)])
        self._add("actors", every, None, name=None, kind="rank", host=names)
        actors = [{"rank": r, "incarnation": 0} for r in range(shape.num_ranks)]
        kinds = [self._comm(kind) for kind in range(3)]
        for codes, words in kinds:
            members: list[list[Any]] = [[] for _ in words]
            for rank, code in enumerate(codes.tolist()):
                members[code].append(actors[rank])
            listed = [members[code] for code in codes.tolist()]
            self._add(
                "groups",
                every,
                None,
                comm_id=(codes, words),
                members=listed,
                ordinal=0,
                label=(codes, words),
            )
        self._add(
            "groups",
            every,
            None,
            comm_id="delta",
            members=[actors] * shape.num_ranks,
            ordinal=0,
            label="delta",
        )
        for name in OBJECTS:
            self._add(
                "objects",
                every,
                None,
                object=name,
                kind="shard",
                update_kind="delta",
                staleness_bound=BOUND,
            )

    def _comm(self, kind: int) -> tuple[Any, list[str]]:
        """(code of each rank's communicator, their names): in groups, across them, the cohort."""
        shape = self.shape
        num_groups = shape.num_ranks // GROUP
        if kind == 0:
            return self._rank // GROUP, [f"tp/{i}" for i in range(num_groups)]
        if kind == 1:
            names = [f"dp/{c}/{i}" for c in range(2) for i in range(GROUP)]
            return self._cohort * GROUP + self._rank % GROUP, names
        return self._cohort, ["cohort/0/0", "cohort/0/1"]

    def _fold(self, block: int) -> None:
        every, upto = self._rank, 3 * BLOCK * block
        self._time += 50_000
        self._add(
            "messages", every, None, comm_id="delta", peer=self._other, peer_incarnation=0,
            channel_seq=block - 1, direction="recv", num_bytes=1 << 20,
        )  # fmt: skip
        for counter in range(upto - 3 * BLOCK + 1, upto + 1):
            self._applied(every, None, self._other, counter)
        frontier = ((self._author, upto), (self._other, upto))
        name = OBJECTS[block % len(OBJECTS)]
        self._add("digests", every, None, object=name, frontier=frontier, digest=f"{block:032x}")

    def _applied(self, who: Any, step: int | None, origin: Any, counter: int) -> None:
        self._update("applied", who, step, origin, counter, ())

    def _update(
        self, action: str, who: Any, step: int | None, origin: Any, counter: int, deps: Any
    ) -> None:
        self._add(
            "updates", who, step, action=action, object=OBJECTS[(counter - 1) % len(OBJECTS)],
            origin_rank=origin, origin_incarnation=0, counter=counter, deps=deps, num_bytes=1 << 20,
        )  # fmt: skip

    def _step(self, step: int, block: int) -> None:
        shape, every = self.shape, self._rank
        self._time += shape.rest_ns
        self._add("steps", every, step, phase="begin")
        frontier = ((self._author, len(OBJECTS) * step), (self._other, 3 * BLOCK * block))
        for name in OBJECTS[:2]:
            self._add("reads", every, step, object=name, use="forward", frontier=frontier)
        for kind in range(3):
            self._time += self._rng.integers(180_000, 190_000, shape.num_ranks)
            if kind == 0 and shape.slow_rank is not None:
                self._time[shape.slow_rank] += shape.slow_ns
            if kind == 2:
                leads = self._rank[self._leads]
                for place in range(len(OBJECTS)):
                    first = place == 0 and step % BLOCK == 0 and block
                    other = ((self._other[self._leads], 3 * BLOCK * block),) if first else ()
                    counter = len(OBJECTS) * step + place + 1
                    self._update("issued", leads, step, leads, counter, other)
            codes, words = self._comm(kind)
            entered = self._time.copy()
            last = np.zeros(len(words), np.int64)
            np.maximum.at(last, codes, entered)
            seq = self._seq.copy()
            self._add(
                "collectives", every, step, comm_id=(codes, words), cseq=step, op="all_reduce",
                label=f"bucket/{kind}", num_bytes=1 << 20, dtype="float32", is_async=False,
                done_seq=seq + 1, enter_ns=self._told(every, entered), complete_ns=self._told(every, last[codes] + 40_000), completed=True,
            )  # fmt: skip
            self._time = last[codes] + 40_000 + self._rng.integers(0, 2_000, shape.num_ranks)
        for place in range(len(OBJECTS)):
            self._applied(every, step, self._author, len(OBJECTS) * step + place + 1)
        self._add("steps", every, step, phase="end", num_samples=8)

    def _send(self, block: int) -> None:
        half = self.shape.half
        for leader in (0, half):
            peers = np.arange(half) + (half - leader)
            seq = self._seq[leader] + np.arange(half)
            self._add(
                "messages", np.full(half, leader), None, seq, comm_id="delta", peer=peers,
                peer_incarnation=0, channel_seq=block, direction="send", num_bytes=1 << 20,
            )  # fmt: skip
            self._seq[leader] += half


def in_memory(shape: Shape) -> InMemory:
    """The whole run."""
    run = CausalRun(shape)
    tables = run.tables(0, shape.num_blocks)
    return InMemory(run.meta(), tables)


def on_disk(folder: Path, shape: Shape, blocks_a_file: int = 8) -> int:
    """Write the run as a trace folder; how many rows."""
    run = CausalRun(shape)
    for first in range(0, shape.num_blocks, blocks_a_file):
        last = min(first + blocks_a_file, shape.num_blocks)
        for name, rows in run.tables(first, last).items():
            write_parquet(folder / "events" / name / f"{first:06d}.parquet", rows)
    write_meta(folder, run.meta())
    write_views(folder)
    return run.num_rows
