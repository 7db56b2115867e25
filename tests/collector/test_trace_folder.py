"""Opening what people have: other writers' files, damaged ones, read-only ones, none at all."""

from __future__ import annotations

import os
import shutil

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cascade_runtime.vocabulary.errors import BadTrace
from cascade_runtime.vocabulary.schema import EVENT_TABLES
from collector.schema.rows import events_to_table
from collector.trace.trace_folder import open_trace
from collector.trace.trace_writer import write_results, write_tables
from tests.collector.traces import (
    RUN,
    everything_under,
    make_trace,
    notes_of,
    rows_of,
    segment,
    step,
    write_spool,
)

STEPS = events_to_table("steps", [step(0), step(1)])


def put(trace, rows: pa.Table, name="a.parquet", table="steps"):
    file = trace / "events" / table / name
    file.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(rows, file)
    return file


def refused(path, *, table="steps") -> BadTrace:
    with pytest.raises(BadTrace) as caught, open_trace(path) as trace:
        trace.table(table)
    return caught.value


# --- is it a trace? ----------------------------------------------------------------------------


def test_nothing_there(tmp_path):
    assert "nothing of that name" in refused(tmp_path / "absent").message


def test_a_folder_without_trace_json(tmp_path):
    assert "no trace.json" in refused(tmp_path).message


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"schema_version": "1"}', '{"schema_version": 1}']
)
def test_trace_json_that_is_none(tmp_path, text):
    (tmp_path / "trace.json").write_text(text)
    assert str(tmp_path / "trace.json") in refused(tmp_path).where


def test_a_newer_schema_version_says_to_upgrade(tmp_path):
    make_trace(tmp_path / "t")
    file = tmp_path / "t" / "trace.json"
    file.write_text(file.read_text().replace('"schema_version": 1', '"schema_version": 2'))
    assert "install a newer" in refused(tmp_path / "t").hint


def test_neither_folder_nor_file(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    assert "folder or a .cascade.zip" in refused(tmp_path / "pipe").message


def test_an_unknown_table_name_is_a_programming_error(trace):
    with open_trace(trace) as opened, pytest.raises(KeyError):
        opened.table("dreams")


# --- whose rows? -------------------------------------------------------------------------------


def test_only_the_run_of_trace_json_is_read_and_it_is_said(trace):
    put(trace, events_to_table("steps", [step(0), step(0, run_id="other")]))
    put(trace, events_to_table("steps", [step(1, run_id="other")]), "b.parquet")
    write_spool(trace, "0-0", segment([step(1), step(2, run_id="other")], first_seq=1))
    assert [(r.seq, r.run_id) for r in rows_of(trace)["steps"]] == [(0, RUN), (1, RUN)]
    notes = notes_of(trace)
    assert f"events/steps: 2 rows of other runs than {RUN} were left out" in notes
    assert f"spool: 1 rows of other runs than {RUN} were left out" in notes


# --- what form? --------------------------------------------------------------------------------


def test_extra_columns_and_tables_are_ignored_and_missing_optional_ones_are_null(trace):
    rows = STEPS.drop_columns(["loss", "mono_ns", "phase"]).append_column("mood", [["a", "b"]])
    put(trace, rows)
    put(trace, pa.table({"x": [1]}), table="dreams")
    with open_trace(trace) as opened:
        read = opened.table("steps")
        opened.table("gaps")
    assert read.column_names == [c.name for c in EVENT_TABLES["steps"].columns]
    assert read["loss"].null_count == read["phase"].null_count == 2
    assert any(note.where == "events/dreams" for note in opened.notes)


def test_the_seqs_of_an_unknown_table_leave_no_unexplained_hole(trace):
    put(trace, events_to_table("steps", [step(0), step(3)]))
    put(trace, events_to_table("steps", [step(1), step(2), step(4), step(3)]), table="dreams")
    (gap,) = rows_of(trace)["gaps"]
    assert (gap.seq, gap.first_seq, gap.last_seq, gap.tables) == (1, 1, 2, ["dreams"])


def test_other_forms_of_the_same_type_are_read(trace):
    rows = STEPS.set_column(10, "phase", STEPS["phase"].dictionary_encode())
    rows = rows.set_column(0, "run_id", rows["run_id"].cast(pa.large_string()))
    rows = rows.set_column(11, "loss", pa.nulls(2))
    put(trace, rows)
    assert rows_of(trace)["steps"] == [step(0), step(1)]


@pytest.mark.parametrize(
    ("column", "values", "says"),
    [
        ("rank", pa.array([0, 0], pa.int64()), "int64, not int32"),
        ("seq", pa.array(["0", "1"]), "string, not int64"),
        ("loss", pa.array([[1.0], [2.0]]), "not double"),
        ("seq", pa.array([0, None], pa.int64()), "nulls"),
        ("phase", pa.array(["begin", "middle"]), "'middle'"),
        ("rank", pa.array([0, -1], pa.int32()), "-1"),
        ("run_id", None, "missing"),
        ("wall_ns", None, "missing"),
    ],
)
def test_a_column_that_breaks_the_contract_is_named(trace, column, values, says):
    place = STEPS.column_names.index(column)
    rows = STEPS.remove_column(place) if values is None else STEPS.set_column(place, column, values)
    put(trace, rows)
    error = refused(trace)
    assert error.where == f"events/steps/a.parquet: {column}"
    assert says in error.message


def test_two_columns_of_one_name_are_refused(trace):
    put(trace, STEPS.append_column("loss", STEPS["loss"]))
    assert refused(trace).where == "events/steps/a.parquet: loss"


@pytest.mark.parametrize("keep", [0, 3, 100, -1, -8])
def test_a_truncated_file_is_named(trace, keep):
    file = put(trace, STEPS)
    file.write_bytes(file.read_bytes()[:keep])
    error = refused(trace)
    assert error.where == "events/steps/a.parquet"
    assert "\n" not in error.message


def test_a_foreign_file_is_named(trace):
    put(trace, STEPS).write_bytes(b"PAR1 this is a poem, no Parquet PAR1")
    assert refused(trace).where == "events/steps/a.parquet"


def test_a_flipped_bit_in_our_own_file_is_found(trace):
    (file,) = write_tables(trace, {"steps": [step(n, loss=n / 7) for n in range(2_000)]})
    data = bytearray(file.read_bytes())
    data[len(data) // 3] ^= 1
    file.write_bytes(bytes(data))
    assert file.name in refused(trace).where


def test_files_that_are_being_written_are_not_read(trace):
    put(trace, STEPS)
    (trace / "events" / "steps" / ".b.parquet.tmp").write_bytes(b"half")
    (trace / "events" / "steps" / ".c.parquet").write_bytes(b"half")
    assert len(rows_of(trace)["steps"]) == 2


# --- where? ------------------------------------------------------------------------------------


def test_symlinks_out_of_the_trace_are_not_followed(trace, tmp_path):
    outside = make_trace(tmp_path / "outside")
    secret = put(outside, events_to_table("steps", [step(5)]))
    write_spool(outside, "0-0", segment([step(6)]))
    put(trace, STEPS)
    (trace / "events" / "steps" / "z.parquet").symlink_to(secret)
    (trace / "events" / "debt").symlink_to(outside / "events" / "steps")
    (trace / "spool").symlink_to(outside / "spool")
    assert rows_of(trace)["steps"] == [step(0), step(1)]
    assert sum("not followed" in note for note in notes_of(trace)) == 3
    (trace / "trace.json").unlink()
    (trace / "trace.json").symlink_to(outside / "trace.json")
    assert "no trace.json" in refused(trace).message


def test_a_trace_that_is_itself_reached_by_a_symlink_is_read(trace, tmp_path):
    put(trace, STEPS)
    (tmp_path / "link").symlink_to(trace)
    assert len(rows_of(tmp_path / "link")["steps"]) == 2


def test_reading_writes_nothing(trace):
    put(trace, STEPS)
    write_spool(trace, "0-0", segment([step(2)], first_seq=2) + b"torn")
    before = everything_under(trace)
    for folder in sorted(trace.rglob("*"), reverse=True):
        folder.chmod(0o555 if folder.is_dir() else 0o444)
    assert len(rows_of(trace)["steps"]) == 3
    assert everything_under(trace) == before
    for folder in trace.rglob("*"):
        folder.chmod(0o755)


def test_results_are_read_where_they_were_written(trace):
    with open_trace(trace) as opened:
        assert opened.result("waits").num_rows == 0
    row = {"host": ["a"], "connected": [True]}
    write_results(trace, {"clock_fit": pa.table(row)})
    with open_trace(trace) as opened:
        wanted = {"host": "a", "offset_ns": None, "drift_ppm": None, "error_ns": None}
        # The run is filled in: results of an earlier release do not name it.
        wanted |= {"connected": True, "run_id": opened.meta.run_id}
        assert opened.result("clock_fit").to_pylist() == [wanted]
    shutil.rmtree(trace / "results")
