"""Views over many runs say of each run what its own trace says, and open where there is nothing."""

from __future__ import annotations

import shutil

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cascade_runtime.vocabulary.schema import TABLES
from collector.data_folder import run_folder, runs_folder
from collector.schema.views import named_views, views_sql
from collector.sql.data_views import data_views, needed, present_tables
from collector.sql.local import asked_of_data
from collector.trace.samples import sample_traces
from tests.collector.traces import make_trace

NAMES = [*TABLES, *named_views()]


def opened(data, **one_run):
    db = duckdb.connect()
    runs = runs_folder(data)
    run = {"run": one_run["run"]} if one_run else {}
    for view in data_views(str(runs), present_tables(runs, *run.values()), **one_run).values():
        db.execute(view.sql)
    return db


def rows(db, sql):
    return sorted(map(repr, db.execute(sql).fetchall()))


def count(db, name):
    return db.execute(f"SELECT count(*) FROM {name}").fetchall()[0][0]


def test_all_runs_are_the_sum_of_each(shared_data, run_ids):
    every = opened(shared_data)
    alone, scoped = {}, {}
    for run_id in run_ids.values():
        alone[run_id] = duckdb.connect()
        alone[run_id].execute(views_sql(run_folder(shared_data, run_id), absolute=True))
        scoped[run_id] = opened(shared_data, run=run_id, run_id=run_id)
    for name in NAMES:
        columns = [c[0] for c in every.execute(f"DESCRIBE {name}").fetchall()]
        assert "run_id" in columns
        listed = ", ".join(f'"{c}"' for c in columns)
        together = []
        for run_id in run_ids.values():
            own = rows(alone[run_id], f"SELECT {listed} FROM {name}")
            assert rows(every, f"SELECT {listed} FROM {name} WHERE run_id = '{run_id}'") == own, (
                name
            )
            assert rows(scoped[run_id], f"SELECT {listed} FROM {name}") == own, name
            together += own
        assert rows(every, f"FROM {name}") == sorted(together), name


def test_the_runs_have_something_to_tell_apart(shared_data):
    db = opened(shared_data)
    for name in ("steps", "waits", "regime_share", "wasted_barrier_time", "wasted_by_step"):
        found = db.execute(f"SELECT count(DISTINCT run_id) FROM {name}").fetchall()
        assert found == [(2,)], name


def test_two_copies_of_a_run_under_other_ids_are_told_apart(tmp_path):
    """Equal ranks, steps, debts and communicators in two runs: nothing of one is in the other."""
    source = sample_traces()["kill-one"]
    for run_id in ("one", "two"):
        folder = run_folder(tmp_path, run_id)
        shutil.copytree(source, folder)
        for file in folder.glob("events/*/*.parquet"):
            table = pq.read_table(file)
            column = pa.array([run_id] * table.num_rows)
            pq.write_table(table.set_column(0, "run_id", column), file)
    db = opened(tmp_path)
    for name in named_views():
        per_run = {r: count(db, f"{name} WHERE run_id = '{r}'") for r in ("one", "two")}
        assert per_run["one"] == per_run["two"], name
        assert sum(per_run.values()) == count(db, name)
    debts = db.execute("SELECT run_id, max(num_open) FROM debt_timeline GROUP BY 1 ORDER BY 1")
    assert debts.fetchall() == [("one", 2), ("two", 2)]


def test_without_any_file_every_view_is_typed_and_empty(tmp_path):
    db = opened(tmp_path)
    for name in NAMES:
        assert count(db, name) == 0
    types = dict(r[:2] for r in db.execute("DESCRIBE steps").fetchall())
    assert types["wall_ns"] == "BIGINT" and types["loss"] == "DOUBLE"


def test_a_run_without_results_is_beside_one_with(data):
    folder = make_trace(run_folder(data, "fresh"), run_id="fresh")
    assert folder.is_dir()
    assert count(opened(data), "checks") > 0
    assert count(opened(data, run="fresh", run_id="fresh"), "checks") == 0


def test_columns_of_a_newer_writer_do_not_change_the_form(data, run_ids):
    db = opened(data)
    folder = run_folder(data, run_ids["clean"]) / "events" / "steps"
    rows_ = pq.read_table(next(folder.glob("*.parquet"))).slice(0, 1)
    pq.write_table(rows_.append_column("mood", [["good"]]), folder / "newer.parquet")
    pq.write_table(rows_.drop_columns(["loss"]), folder / "older.parquet")
    before = count(db, "steps")
    assert before == 480 + 801 + 2
    assert [c[0] for c in db.execute("DESCRIBE steps").fetchall()] == [
        c.name for c in TABLES["steps"].columns
    ]


def test_what_a_view_needs_comes_before_it():
    views = data_views("x", ())
    names = [view.name for view in needed(views, ["slowest_ranks"])]
    assert names[-1] == "slowest_ranks"
    assert {"waits", "wasted_by_step"} <= set(names)
    assert not {"raw", "checkpoints", "incidents"} & set(names)
    assert needed(views, ["no_such_view"]) == []


def test_only_what_can_be_read_is_present(tmp_path):
    steps = runs_folder(tmp_path) / "r" / "events" / "steps"
    steps.mkdir(parents=True)
    assert present_tables(runs_folder(tmp_path)) == frozenset()
    (steps / "a.parquet.tmp").touch()
    (runs_folder(tmp_path) / "r" / "results" / "steps").mkdir(parents=True)
    (runs_folder(tmp_path) / "r" / "results" / "steps" / "a.parquet").touch()
    assert present_tables(runs_folder(tmp_path)) == frozenset()  # steps is no result table
    (steps / "a.parquet").touch()
    assert present_tables(runs_folder(tmp_path)) == {"steps"}
    assert present_tables(runs_folder(tmp_path), "other") == frozenset()
    assert present_tables(tmp_path / "nowhere") == frozenset()


@pytest.mark.parametrize("place", ["a [b]* 'c'", "ä ?", "{x}"])
def test_folders_may_be_called_anything(shared_data, tmp_path, place):
    shutil.copytree(shared_data, tmp_path / place)
    assert count(opened(tmp_path / place), "steps") == 480 + 801


def test_local_sql_over_a_data_folder(shared_data, run_ids):
    def ask(sql, run_id=None):
        with asked_of_data(shared_data, sql, run_id) as answer:
            return answer.batches.read_all().to_pylist()

    assert ask("SELECT count(*) AS n FROM steps") == [{"n": 1281}]
    assert ask("SELECT count(*) AS n FROM steps", run_ids["clean"]) == [{"n": 480}]
    assert len(ask("SHOW TABLES")) == len(NAMES)
