"""The result tables and the report of a large run (_big_trace.py), without judging it.

Waits are computed from the run's own arrivals by the definition that the analysis has; all else is the
sample's analysis, told again for every lap.
"""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pyarrow as pa

from analyzer import analyze
from benchmarks._big_rows import AGENT, LEADER, NUM_RANKS, VICTIM, Laps
from benchmarks._rows import SAMPLE
from cascade_runtime.vocabulary.report import RankWaits, Report
from collector.schema.arrow import arrow_schema
from collector.trace.trace_folder import open_trace


class Results:
    """What the analysis of the laps would find.

    Args:
        laps: the run.
        run_id: its id.
    """

    def __init__(self, laps: Laps, run_id: str) -> None:
        with open_trace(SAMPLE) as trace:
            found = analyze(trace)
        self._of_sample, self._report = found.results, found.report
        self._laps, self._run_id = laps, run_id
        self._waited = np.zeros(NUM_RANKS)
        self._caused = np.zeros(NUM_RANKS)
        self._prepare()

    def _prepare(self) -> None:
        """The sample's collectives by instance, in the order in which its members were ready."""
        rows = self._laps.template.tables["collectives"]
        comm = rows["comm_id"].combine_chunks().dictionary_encode()
        key = comm.indices.to_numpy().astype(np.int64) << 32 | rows["cseq"].to_numpy()
        instance, of = np.unique(key, return_inverse=True)
        self._comms: list[str] = comm.dictionary.to_pylist()
        self._comm, self._cseq = instance >> 32, instance & 0xFFFFFFFF
        shape = (len(instance), VICTIM + 2)
        self._arrival, self._leave = np.full(shape, np.nan), np.full(shape, np.nan)
        self._step = np.zeros(len(instance), np.int64)
        self._root = np.full(len(instance), -1)
        rank, first = rows["rank"].to_numpy(), self._laps.template.first_ns
        self._arrival[of, rank] = rows["enter_ns"].to_numpy() - first
        self._leave[of, rank] = rows["complete_ns"].to_numpy(zero_copy_only=False) - first
        self._step[of] = rows["step"].to_numpy()
        is_broadcast = np.array([op == "broadcast" for op in rows["op"].to_pylist()])
        self._root[of[is_broadcast]] = LEADER
        self._order = np.argsort(np.nanmin(self._arrival, axis=1), kind="stable")

    def waits(self, first: int, last: int) -> pa.Table:
        """The table ``waits`` of these laps, by instance."""
        return pa.concat_tables([self._waits_of(lap) for lap in range(first, last)])

    def _waits_of(self, lap: int) -> pa.Table:
        laps = self._laps
        role = laps.role[lap, :NUM_RANKS]
        late = laps.skew_ns[lap, :NUM_RANKS].astype(float)
        most = float(laps.skew_ns[lap].max())
        arrival = self._arrival[:, role] + late
        leave = self._leave[:, role] + most
        from_root = self._root >= 0
        needed = np.where(np.isnan(arrival), -np.inf, arrival)
        needed[from_root] = np.where(np.arange(NUM_RANKS) == LEADER, needed[from_root], -np.inf)
        culprit, last = needed.argmax(axis=1), needed.max(axis=1)
        target = np.fmin(last[:, None], np.where(np.isnan(leave), np.inf, leave))
        wait = np.nan_to_num(np.maximum(target - arrival, 0.0))
        self._count_once(arrival, wait)
        here = ~np.isnan(arrival)
        at, rank = np.nonzero(here)
        wait_ns = wait[here].astype(np.int64)
        waited = wait_ns > 0
        np.add.at(self._waited, rank, wait_ns)
        np.add.at(self._caused, culprit[at], wait_ns)
        transfer = np.nan_to_num((leave - last[:, None])[here], nan=-1.0)
        comms = pa.array([laps.comm(comm, lap) for comm in self._comms])
        blamed = culprit[at]
        columns = {
            "comm_id": comms.take(pa.array(self._comm[at])),
            "cseq": self._cseq[at],
            "rank": rank,
            "incarnation": laps.incarnation[lap, rank],
            "step": self._step[at] + lap * laps.template.num_steps,
            "wait_ns": wait_ns,
            "exposed_ns": pa.nulls(len(at)),
            "transfer_ns": pa.array(transfer.astype(np.int64), mask=transfer < 0),
            "last_rank": blamed,
            "root_rank": pa.array(blamed, mask=~waited),
            "cause": pa.array(np.where(waited, "late rank", None)),
            "is_open": np.zeros(len(at), np.bool_),
            "run_id": pa.repeat(self._run_id, len(at)),
        }
        schema = arrow_schema("waits")
        arrays = [pa.array(columns[f.name]).cast(f.type) for f in schema]
        return pa.Table.from_arrays(arrays, schema=schema)

    def _count_once(self, arrival: Any, wait: Any) -> None:
        """Of waits of a rank that lie over each other every moment counts once; in place."""
        until = np.full(NUM_RANKS, -np.inf)
        for i in self._order.tolist():
            end = arrival[i] + wait[i]
            counted = np.maximum(end - np.fmax(arrival[i], until), 0.0)
            has = wait[i] > 0
            until = np.where(has, np.maximum(until, end), until)
            wait[i] = np.where(has, counted, 0.0)

    def small(self) -> dict[str, pa.Table]:
        """Every other result table, whole."""
        found = {n: self._named(t) for n, t in self._of_sample.items() if n != "waits"}
        factor = self._laps.num_rows.sum() / self._laps.template.num.sum()
        checks = found["checks"]
        at = checks.schema.get_field_index("num_checked")
        scaled = (checks["num_checked"].to_numpy() * factor).astype(np.int64)
        found["checks"] = checks.set_column(at, checks.schema.field(at), pa.array(scaled))
        found["regime_intervals"] = self._intervals()
        return found

    def _named(self, rows: pa.Table) -> pa.Table:
        at = rows.schema.get_field_index("run_id")
        named = pa.repeat(self._run_id, rows.num_rows)
        return rows.set_column(at, rows.schema.field(at), named)

    def _intervals(self) -> pa.Table:
        laps, rows = self._laps, self._of_sample["regime_intervals"]
        of = rows["rank"].to_numpy()
        places = [np.flatnonzero(of == r) for r in range(AGENT)]
        pieces = [
            (n, r, places[laps.role[n, r]]) for r in range(AGENT + 1) for n in range(laps.num)
        ]
        size = [len(p) for _, _, p in pieces]
        at = np.concatenate([p for _, _, p in pieces])
        lap, rank = (
            np.repeat([n for n, _, _ in pieces], size),
            np.repeat([r for _, r, _ in pieces], size),
        )
        taken = rows.take(pa.array(at))
        shift = laps.shift_ns[lap] + laps.skew_ns[lap, rank]
        columns = {name: taken[name] for name in taken.column_names} | {
            "rank": rank,
            "incarnation": laps.incarnation[lap, rank],
            "epoch": taken["epoch"].to_numpy() + lap * laps.template.num_epochs,
            "start_ns": taken["start_ns"].to_numpy() + shift,
            "end_ns": taken["end_ns"].to_numpy() + shift,
            "run_id": pa.repeat(self._run_id, len(at)),
        }
        arrays = [
            c.cast(f.type)
            if isinstance(c := columns[f.name], pa.ChunkedArray)
            else pa.array(c, f.type)
            for f in rows.schema
        ]
        return pa.table(arrays, schema=rows.schema)

    def report(self) -> Report:
        """The sample's report with this run's waits; after all of ``waits`` was made."""
        laps, old = self._laps, self._report
        total = float(self._waited.sum())
        lifetime = laps.num * laps.template.span_ns * NUM_RANKS
        by_rank = [
            RankWaits(
                rank=r,
                waited_s=round(float(self._waited[r]) / 1e9, 9),
                caused_s=round(float(self._caused[r]) / 1e9, 9),
                last_s=round(float(self._caused[r]) / 1e9, 9),
            )
            for r in range(NUM_RANKS)
        ]
        waits = msgspec.structs.replace(
            old.waits,
            total_rank_s=round(total / 1e9, 9),
            share_pct=round(100 * total / lifetime, 4),
            by_rank=by_rank,
            chronic_straggler=None,
        )
        debt = msgspec.structs.replace(
            old.debt, opened=old.debt.opened * laps.num, settled=old.debt.settled * laps.num
        )
        return msgspec.structs.replace(old, run_id=self._run_id, waits=waits, debt=debt)
