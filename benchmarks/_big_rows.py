"""The rows of a large run, a few laps at a time: the packaged sample ``kill-one``, told for 64 ranks.

See _big_trace.py for what is scaled and how.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from benchmarks._rows import SAMPLE
from cascade_runtime.vocabulary.schema import EVENT_TABLES
from collector.schema.arrow import arrow_schema
from collector.trace.trace_folder import TraceFolder

NUM_RANKS = 64
AGENT = NUM_RANKS
"""Rank of the one host agent."""

LEADER, USUAL, VICTIM, SAMPLE_AGENT = 0, (1, 3), 2, 4
"""Ranks of the sample: the one that writes debts, two like any other, the one that dies."""

REST_NS = 50_000_000
"""Between two laps."""

_SHIFTED = ("done_seq", "seq")
_ACTOR_LISTS = ("members", "joined", "departed", "cohorts")


class Template:
    """The sample's rows by table, and what is measured of them.

    Attributes:
        tables: sorted by (rank, seq).
        places: by table and sample rank, the places of its rows in order.
        num: rows by sample rank.
        skew_ns: how much later than the first rank each began its steps: recorded, sorted, without
            the largest tenth.
    """

    def __init__(self) -> None:
        self.tables: dict[str, pa.Table] = {}
        with TraceFolder(SAMPLE) as trace:
            self.meta = trace.meta
            for name in EVENT_TABLES:
                rows = trace.table(name)
                if rows.num_rows:
                    by_actor = [("rank", "ascending"), ("seq", "ascending")]
                    self.tables[name] = rows.sort_by(by_actor)
        walls = np.concatenate([t["wall_ns"].to_numpy() for t in self.tables.values()])
        self.first_ns, last = int(walls.min()), int(walls.max())
        self.span_ns = last - self.first_ns + REST_NS
        self.places: dict[str, list[Any]] = {}
        self.num = np.zeros(SAMPLE_AGENT + 1, np.int64)
        self.num_steps = self.num_epochs = 0
        for name, rows in self.tables.items():
            rank = rows["rank"].to_numpy()
            self.places[name] = [np.flatnonzero(rank == r) for r in range(SAMPLE_AGENT + 1)]
            self.num += np.bincount(rank, minlength=SAMPLE_AGENT + 1)
            self.num_steps = max(self.num_steps, int(pc.max(rows["step"]).as_py() or 0) + 1)
            self.num_epochs = max(self.num_epochs, int(pc.max(rows["epoch"]).as_py() or 0) + 1)
        self.skew_ns = self._skew()

    def _skew(self) -> Any:
        steps = self.tables["steps"]
        rows = steps.filter(pc.equal(steps["phase"], "begin"))
        first: dict[int, int] = {}
        for step, wall in zip(rows["step"].to_pylist(), rows["wall_ns"].to_pylist(), strict=True):
            first[step] = min(first.get(step, wall), wall)
        late = rows["wall_ns"].to_numpy() - np.array([first[s] for s in rows["step"].to_pylist()])
        late.sort()
        return late[: len(late) * 9 // 10]


class Laps:
    """Who plays whom in every lap, and how everything is shifted.

    Args:
        template: the sample.
        num: how many laps.
        begin_ns: wall clock of the first row.
    """

    def __init__(self, template: Template, num: int, begin_ns: int) -> None:
        self.template = template
        self.num = num
        lap = np.arange(num)
        self.victim = 1 + lap * 37 % (NUM_RANKS - 1)
        self.role = np.empty((num, NUM_RANKS + 1), np.int64)
        self.role[:, :NUM_RANKS] = np.array(USUAL)[np.arange(NUM_RANKS) % 2]
        self.role[:, 0] = LEADER
        self.role[:, AGENT] = SAMPLE_AGENT
        self.role[lap, self.victim] = VICTIM
        died = np.zeros((num + 1, NUM_RANKS + 1), np.int64)
        died[lap + 1, self.victim] = 1
        self.incarnation = died.cumsum(axis=0)[:num]
        fresh = np.zeros((num, NUM_RANKS + 1), np.bool_)
        fresh[0] = True
        fresh[1:] = died[1:num] == 1
        self.fresh = fresh
        """An actor's first lap: it has its row in ``actors`` there only."""
        rows = template.num[self.role] - ~fresh
        self.seq = np.zeros((num, NUM_RANKS + 1), np.int64)
        for i in range(1, num):
            self.seq[i] = np.where(fresh[i], 0, self.seq[i - 1] + rows[i - 1])
        self.seq -= ~fresh  # without its first row, the second has the first number
        self.num_rows = rows.sum(axis=1)
        rng = np.random.default_rng(4)
        self.skew_ns = rng.choice(template.skew_ns, (num, NUM_RANKS + 1))
        self.skew_ns[:, AGENT] = 0
        self.shift_ns = begin_ns - template.first_ns + lap * template.span_ns

    def comm(self, name: str, lap: int) -> str:
        """The lap's own communicator in place of one of the sample."""
        return hashlib.blake2b(f"{name} {lap}".encode(), digest_size=8).hexdigest()

    def tables(self, first: int, last: int, run_id: str) -> Iterator[tuple[str, pa.Table]]:
        """All tables of the laps ``first`` to ``last`` - 1, each sorted as writers do."""
        for name in self.template.tables:
            rows = self._table(name, first, last, run_id)
            if rows.num_rows:
                yield name, rows

    def _table(self, name: str, first: int, last: int, run_id: str) -> pa.Table:
        template = self.template
        base = template.tables[name]
        listed = [c for c in base.column_names if c in _ACTOR_LISTS]
        pieces, rank_of, lap_of, size = [], [], [], []
        for rank in range(NUM_RANKS + 1):
            for lap in range(first, last):
                if name == "actors" and not self.fresh[lap, rank]:
                    continue
                places = template.places[name][self.role[lap, rank]]
                pieces.append(places)
                rank_of.append(rank)
                lap_of.append(lap)
                size.append(len(places))
        if not sum(size):
            return base.slice(0, 0)
        at = np.concatenate(pieces)
        rank, lap = np.repeat(rank_of, size), np.repeat(lap_of, size)
        rows = base.take(pa.array(at))
        change = _Change(self, rows, rank, lap)
        columns = {}
        for field in base.schema:
            if field.name in listed:
                wide = self._lists(base, field, first, last)
                columns[field.name] = wide.take(pa.array((lap - first) * base.num_rows + at))
            else:
                columns[field.name] = change.column(field, run_id)
        return pa.table(columns, schema=arrow_schema(name))

    def _lists(self, base: pa.Table, field: pa.Field, first: int, last: int) -> pa.Array:
        """The column's lists of actors for every lap, with all 64 ranks in place of the sample's."""
        values = base[field.name].to_pylist()
        every = [self._actors(value, lap) for lap in range(first, last) for value in values]
        return pa.array(every, type=field.type)

    def _actors(self, value: Any, lap: int) -> Any:
        if value is None:
            return None
        if value and isinstance(value[0], list):
            return [self._actors(inner, lap) for inner in value]
        here = {actor["rank"] for actor in value}
        ranks: list[int] = []
        if here - {VICTIM, SAMPLE_AGENT}:
            ranks += [r for r in range(NUM_RANKS) if r != self.victim[lap]]
        ranks += [int(self.victim[lap])] if VICTIM in here else []
        ranks += [AGENT] if SAMPLE_AGENT in here else []
        return [{"rank": r, "incarnation": int(self.incarnation[lap, r])} for r in sorted(ranks)]


class _Change:
    """Shifts the columns of rows that were taken from the sample."""

    def __init__(self, laps: Laps, rows: pa.Table, rank: Any, lap: Any) -> None:
        self._laps, self._rows, self._rank, self._lap = laps, rows, rank, lap
        self._late = laps.skew_ns[lap, rank]
        self._shift = laps.shift_ns[lap]

    def column(self, field: pa.Field, run_id: str) -> Any:
        laps, lap, rank, name = self._laps, self._lap, self._rank, field.name
        old = self._rows[name]
        if name == "run_id":
            return pa.repeat(run_id, len(old))
        if name == "rank":
            return pa.array(rank, field.type)
        if name == "incarnation":
            return pa.array(laps.incarnation[lap, rank], field.type)
        if name in _SHIFTED:
            return _plus(old, laps.seq[lap, rank])
        if name == "step":
            return _plus(old, lap * laps.template.num_steps)
        if name in ("epoch", "new_epoch"):
            return _plus(old, lap * laps.template.num_epochs)
        if name == "complete_ns":  # nobody is through before the last one came
            return _plus(old, self._shift + laps.skew_ns.max(axis=1)[lap])
        if name.endswith("_ns"):
            return _plus(old, self._shift + self._late)
        if name in ("comm_id", "replaces"):
            return self._words(old, laps.comm)
        if name == "debt_id":
            return self._words(old, lambda word, n: f"{n}/{word}")
        if name in ("subject_rank", "proposer"):
            return self._person(field, old)
        if name == "name":
            return pa.array([f"rank {r}" if r < NUM_RANKS else "agent 0" for r in rank.tolist()])
        return old

    def _words(self, old: Any, say: Any) -> pa.Array:
        coded = old.combine_chunks().dictionary_encode()
        words = coded.dictionary.to_pylist()
        first = int(self._lap.min())
        num = int(self._lap.max()) - first + 1
        said = [say(word, first + i) for word in words for i in range(num)]
        codes = coded.indices.fill_null(0).to_numpy() * num + (self._lap - first)
        codes = pa.array(codes, mask=coded.indices.is_null().to_numpy(zero_copy_only=False))
        return pa.DictionaryArray.from_arrays(codes, pa.array(said, pa.string())).cast(pa.string())

    def _person(self, field: pa.Field, old: Any) -> pa.Array:
        values: Sequence[Any] = old.to_pylist()
        laps = self._laps

        def one(value: Any, lap: int) -> Any:
            if value is None:
                return None
            rank = value if field.name == "subject_rank" else value["rank"]
            who = {VICTIM: int(laps.victim[lap]), SAMPLE_AGENT: AGENT}.get(rank, LEADER)
            if field.name == "subject_rank":
                return who
            return {"rank": who, "incarnation": int(laps.incarnation[lap, who])}

        found = [one(v, n) for v, n in zip(values, self._lap.tolist(), strict=True)]
        return pa.array(found, type=field.type)


def _plus(old: Any, shift: Any) -> Any:
    return pc.add(old, pa.array(shift)).cast(old.type)
