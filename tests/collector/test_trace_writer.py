"""What is written has the contract's form."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cascade_runtime.vocabulary.errors import BadUsage
from cascade_runtime.vocabulary.events import Debt
from cascade_runtime.vocabulary.regime import Regime
from cascade_runtime.vocabulary.schema import EVENT_TABLES, RESULT_TABLES
from collector.schema.arrow import arrow_schema
from collector.trace.seal import seal_trace
from collector.trace.trace_folder import open_trace
from collector.trace.trace_writer import write_results, write_tables, write_views
from tests.collector.traces import (
    RUN,
    done,
    entered,
    everything_under,
    leading,
    make_trace,
    rows_of,
    segment,
    step,
    write_spool,
)


def form_checker():
    """The checker of form, where it lies above the checkout."""
    for folder in Path(__file__).resolve().parents:
        file = folder / "shared" / "tools" / "check_trace.py"
        if file.is_file():
            spec = importlib.util.spec_from_file_location("check_trace", file)
            module = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(module)
            return module
    pytest.skip("no shared/tools/check_trace.py above this checkout")


def test_written_and_sealed_traces_have_the_contracts_form(trace):
    checker = form_checker()
    for rank, (name, table) in enumerate(EVENT_TABLES.items()):
        write_tables(trace, {name: [table.struct(**leading(0, rank))]})
    write_spool(trace, "40-0", segment([step(0, 40), entered(1, 40), done(1, 40)]))
    write_spool(trace, "41-0", segment([step(0, 41), step(1, 41)])[:-1])
    seal_trace(trace)
    assert checker.check_trace(trace) == []


def test_the_schema_is_the_form_checkers():
    checker = form_checker()
    for name, further in checker.TABLES.items():
        want = checker.LEADING | further
        have = {field.name: field.type for field in arrow_schema(name)}
        assert {k: have[k] for k in want} == want
        for column in EVENT_TABLES[name].columns:
            words = checker.WORDS.get((name, column.name)) or checker.WORDS.get(("*", column.name))
            assert set(column.words) == (words or set()), f"{name}.{column.name}"


def test_rows_are_sorted_and_every_file_has_a_name_of_its_own(trace):
    for _ in range(2):
        write_tables(trace, {"steps": [step(3), step(1, 1), step(0), step(2)]})
    files = list((trace / "events" / "steps").iterdir())
    assert len(files) == 2
    rows = pq.read_table(files[0]).select(["rank", "seq"]).to_pylist()
    assert [(r["rank"], r["seq"]) for r in rows] == [(0, 0), (0, 2), (0, 3), (1, 1)]
    assert pq.read_metadata(files[0]).row_group(0).column(0).compression == "ZSTD"


def test_tables_without_rows_leave_no_file(trace):
    assert write_tables(trace, {"steps": [], "debt": arrow_schema("debt").empty_table()}) == []
    assert not (trace / "events").exists()


def test_columns_that_the_schema_does_not_know_are_kept(trace):
    rows = pa.table({**{k: [v] for k, v in leading(0).items()}, "mood": ["good"]})
    rows = rows.cast(pa.schema([(n, _type(n, rows)) for n in rows.column_names]))
    (file,) = write_tables(trace, {"steps": rows})
    assert pq.read_table(file)["mood"].to_pylist() == ["good"]
    assert rows_of(trace)["steps"] == [step(0, phase=None, num_samples=None)]


def _type(name, rows):
    schema = arrow_schema("steps")
    return schema.field(name).type if name in schema.names else rows.schema.field(name).type


@pytest.mark.parametrize(
    ("table", "rows", "where"),
    [
        ("dreams", [step(0)], "dreams"),
        ("waits", [step(0)], "waits"),
        ("steps", pa.table({"run_id": [RUN]}), "steps.rank"),
        ("steps", pa.table({"run_id": [1]}), "steps.run_id"),
        ("debt", [Debt(**leading(0), relaxed=Regime.EVENTUAL)], "debt.relaxed"),
        ("steps", pa.table({"run_id": pa.array([None], pa.string())}), "steps.run_id"),
    ],
)
def test_what_breaks_the_schema_is_refused_before_anything_is_written(trace, table, rows, where):
    before = everything_under(trace)
    with pytest.raises(BadUsage) as caught:
        write_tables(trace, {"gpu": [], table: rows})
    assert caught.value.where == where
    assert everything_under(trace) == before


def some_results() -> dict[str, pa.Table]:
    suspect = {"rank": 0, "incarnation": 0, "certain": True, "why": "late", "evidence": "[]"}
    return {"suspects": pa.Table.from_pylist([suspect], arrow_schema("suspects"))}


def test_results_replace_earlier_ones_as_a_whole(trace):
    write_results(trace, some_results())
    fit = pa.table({"host": ["a"], "connected": [True]})
    write_results(trace, {"clock_fit": fit, "waits": arrow_schema("waits").empty_table()})
    assert [p.name for p in (trace / "results").iterdir()] == ["clock_fit"]
    with open_trace(trace) as opened:
        assert [opened.result(n).num_rows for n in RESULT_TABLES] == [0, 0, 0, 0, 0, 1]
    assert not [p for p in trace.iterdir() if p.name.startswith(".")]
    assert "results/clock_fit/*.parquet" in (trace / "views.sql").read_text()


def test_results_that_cannot_be_written_leave_the_earlier_ones(trace):
    write_results(trace, some_results())
    with pytest.raises(BadUsage):
        write_results(trace, {"suspects": pa.table({"rank": ["0"]})})
    with open_trace(trace) as opened:
        assert opened.result("suspects").num_rows == 1


def test_results_after_a_killed_writer_leave_no_rubbish(trace):
    for name in (".results-1", ".old-results-2"):
        (trace / name / "waits").mkdir(parents=True)
    write_results(trace, some_results())
    assert not [p for p in trace.iterdir() if p.name.startswith(".")]


def test_results_do_not_go_into_a_zip(tmp_path):
    (tmp_path / "t.cascade.zip").write_bytes(b"PK")
    with pytest.raises(BadUsage, match="trace folder"):
        write_results(tmp_path / "t.cascade.zip", some_results())


def test_a_folder_that_cannot_be_made_is_told_in_words(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(BadUsage, match="cannot be written"):
        make_trace(tmp_path / "file" / "trace")


def test_views_are_written_whole(trace):
    before = (trace / "views.sql").read_text()
    write_tables(trace, {"steps": [step(0)]})
    write_views(trace)
    assert "events/steps/*.parquet" not in before
    assert "events/steps/*.parquet" in (trace / "views.sql").read_text()
