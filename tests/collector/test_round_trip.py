"""Whatever a job recorded comes out of storage as it went in."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cascade_runtime.vocabulary.events import EVENT_TYPES, CollectiveDone, Collectives, Debt
from cascade_runtime.vocabulary.ports import TraceSource
from cascade_runtime.vocabulary.regime import Regime
from cascade_runtime.vocabulary.schema import EVENT_TABLES
from collector.schema.arrow import arrow_schema
from collector.trace.seal import seal_trace
from collector.trace.trace_folder import open_trace
from collector.trace.trace_writer import write_tables
from tests.collector.traces import RUN, make_trace, notes_of, rows_of, segment, write_spool
from tests.vocabulary.strategies import instances

SLOW = settings(deadline=None, max_examples=15, suppress_health_check=[HealthCheck.too_slow])


@st.composite
def job(draw: Any) -> list[Any]:
    """The records of two actors of one run, in the order of their spools."""
    records: list[Any] = []
    for rank in (0, 3):
        kinds = draw(st.lists(st.sampled_from(EVENT_TYPES), max_size=8))
        for seq, kind in enumerate(kinds):
            row = draw(instances(kind))
            row = msgspec.structs.replace(row, run_id=RUN, rank=rank, incarnation=1, seq=seq)
            if isinstance(row, Debt) and row.relaxed is Regime.EVENTUAL:
                row = msgspec.structs.replace(row, relaxed=None)  # a word it may not hold
            if isinstance(row, Collectives) and draw(st.booleans()):
                row = msgspec.structs.replace(row, done_seq=None, completed=None)
                records.append(row)
                if draw(st.booleans()):
                    end = draw(instances(CollectiveDone))
                    records.append(
                        msgspec.structs.replace(
                            end, run_id=RUN, rank=rank, incarnation=1, seq=row.seq
                        )
                    )
            else:
                records.append(row)
    return records


def expected(records: list[Any]) -> dict[str, list[Any]]:
    """The rows that the records are, said without the doorway."""
    ends = {(r.rank, r.seq): r for r in records if isinstance(r, CollectiveDone)}
    found: dict[str, list[Any]] = {}
    for record in records:
        if isinstance(record, CollectiveDone):
            continue
        row = record
        if isinstance(row, Collectives) and row.done_seq is None and not row.completed:
            end = ends.get((row.rank, row.seq))
            changes: dict[str, Any] = {"completed": False}
            if end is not None:
                changes = {"completed": end.completed, "done_seq": end.done_seq}
                changes["start_ns"] = row.start_ns if end.start_ns is None else end.start_ns
                changes["complete_ns"] = (
                    row.complete_ns if end.complete_ns is None else end.complete_ns
                )
                changes["payload_digest"] = end.payload_digest or row.payload_digest
            row = msgspec.structs.replace(row, **changes)
        found.setdefault(str(type(row).__struct_config__.tag), []).append(row)
    return found


@given(records=job())
@SLOW
def test_spool_to_parquet_and_back_gives_the_same_rows(records):
    with tempfile.TemporaryDirectory() as folder:
        trace = make_trace(Path(folder) / "t")
        for rank in (0, 3):
            mine = [r for r in records if r.rank == rank]
            write_spool(trace, f"{rank}-1", segment(mine[:5]), segment(mine[5:]) + bytes(64))
        assert rows_of(trace) == expected(records)
        seal_trace(trace)
        assert not (trace / "spool").exists()
        assert rows_of(trace) == expected(records)
        assert notes_of(trace) == []


@pytest.mark.parametrize("name", EVENT_TABLES)
def test_a_table_has_the_columns_of_the_schema_with_and_without_rows(trace, name):
    struct = EVENT_TABLES[name].struct
    required = {"run_id": RUN, "rank": 0, "incarnation": 0, "seq": 0, "group_id": "world"}
    row = struct(**required, epoch=None, regime=None, step=None, wall_ns=1, mono_ns=None)
    with open_trace(trace) as opened:
        assert isinstance(opened, TraceSource)
        assert opened.table(name).schema.equals(arrow_schema(name))
    write_tables(trace, {name: [row]})
    with open_trace(trace) as opened:
        assert opened.table(name).schema.equals(arrow_schema(name))
        assert opened.table(name, ["seq", "wall_ns"]).to_pylist() == [{"seq": 0, "wall_ns": 1}]
