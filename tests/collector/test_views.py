"""views.sql in a real DuckDB, opened from inside the trace as people do."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cascade_runtime.vocabulary.events import (
    Actors,
    Collectives,
    Debt,
    Gpu,
    Health,
    Membership,
    Transitions,
)
from cascade_runtime.vocabulary.fault import FaultEvent
from cascade_runtime.vocabulary.identity import Actor, Dot
from cascade_runtime.vocabulary.regime import Regime
from cascade_runtime.vocabulary.schema import EVENT_TABLES, TABLES
from collector.schema.arrow import arrow_schema
from collector.schema.views import duckdb_type, named_views, views_sql
from collector.trace.trace_writer import write_results, write_tables, write_views
from tests.collector.traces import leading, make_trace, step

S = 1_000_000_000


def ask_in_a_process(trace, *questions: str) -> list[Any]:
    """Answers of a fresh DuckDB that ran views.sql with the trace as its working folder."""
    code = (
        "import duckdb, json, sys\n"
        "db = duckdb.connect()\n"
        "db.execute(open('views.sql').read())\n"
        "print(json.dumps([db.execute(q).fetchall() for q in json.load(sys.stdin)]))\n"
    )
    answer = subprocess.run(
        [sys.executable, "-c", code],
        input=json.dumps(questions),
        cwd=trace,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert answer.returncode == 0, answer.stderr
    return json.loads(answer.stdout)


def opened(trace) -> duckdb.DuckDBPyConnection:
    db = duckdb.connect()
    db.execute(views_sql(trace, absolute=True))
    return db


def dicts(db, sql: str) -> list[dict[str, Any]]:
    found = db.execute(sql)
    names = [column[0] for column in found.description]
    return [dict(zip(names, row, strict=True)) for row in found.fetchall()]


def check_all_views(trace) -> None:
    every = [*TABLES, *named_views()]
    described = ask_in_a_process(trace, *(f"DESCRIBE {name}" for name in every))
    for name, columns in zip(every, described, strict=True):
        have = [(column[0], column[1]) for column in columns]
        if name in TABLES:
            want = [(c.name, duckdb_type(c.type)) for c in TABLES[name].columns]
            assert have[: len(want)] == want
        else:
            assert [n for n, _ in have] == [n for n, _ in named_views()[name].columns]
            assert all(doc for _, doc in named_views()[name].columns)
    ask_in_a_process(trace, *(f"SELECT count(*) FROM (SELECT * FROM {name})" for name in every))


def test_every_view_of_an_empty_trace_is_typed_and_empty(trace):
    check_all_views(trace)
    answers = ask_in_a_process(
        trace, *(f"SELECT count(*) FROM {n}" for n in [*TABLES, *named_views()])
    )
    assert {answer[0][0] for answer in answers} == {0}


@pytest.fixture
def busy(trace):
    """Two ranks and an agent; rank 1 is slow, dies, and leaves a debt."""

    def row(struct, seq, rank=0, **fields):
        return struct(**(leading(seq, rank) | fields))

    write_tables(
        trace,
        {
            "actors": [
                row(Actors, 0, kind="rank", device_uuid="GPU-0"),
                row(Actors, 0, 1, kind="rank", device_uuid="GPU-1"),
                row(Actors, 0, 2, kind="agent"),
            ],
            "collectives": [
                row(Collectives, 1, rank, comm_id="c", cseq=0, enter_ns=5 * S, completed=True)
                for rank in (0, 1)
            ],
            "gpu": [row(Gpu, 1, 2, device_uuid="GPU-0", power_mw=200_000, wall_ns=4 * S)],
            "health": [
                row(Health, 2, 2, signal="dead", subject_rank=1),
                row(Health, 3, 2, signal="dead", subject_rank=1, fault=FaultEvent.GPU_FAIL_STOP),
            ],
            "transitions": [
                row(
                    Transitions,
                    2,
                    rank,
                    phase="committed",
                    from_regime=Regime.STRONG,
                    to_regime=Regime.CAUSAL,
                    fault=FaultEvent.GPU_FAIL_STOP,
                    new_epoch=1,
                )
                for rank in (0, 1)
            ],
            "membership": [
                row(Membership, 3, epoch=1, departed=[Actor(1, 0)], reason="failed"),
                row(Membership, 4, epoch=2, departed=[Actor(0, 0)], reason="finished"),
            ],
            "debt": [
                Debt(**leading(4) | _debt("opened", "a", 10, in_flight=[Dot(1, 0, 1)])),
                Debt(**leading(5) | _debt("opened", "b", 20)),
                Debt(**leading(6) | _debt("settled", "a", 30, relaxed=None)),
            ],
        },
    )
    write_results(
        trace, {name: pa.Table.from_pylist(rows, arrow_schema(name)) for name, rows in RESULTS}
    )
    return trace


def _debt(action, debt_id, wall_ns, **fields):
    return {
        "action": action,
        "debt_id": debt_id,
        "wall_ns": wall_ns,
        "relaxed": Regime.STRONG,
    } | fields


def wait(step_, rank, ns, root, last=None):
    return {
        "comm_id": "c",
        "cseq": step_,
        "rank": rank,
        "incarnation": 0,
        "step": step_,
        "wait_ns": ns,
        "transfer_ns": S,
        "root_rank": root,
        "last_rank": root if last is None else last,
        "is_open": False,
    }


RESULTS = [
    (
        "waits",
        [wait(0, 0, 3 * S, 1), wait(0, 1, 0, None), wait(1, 0, S, 1, last=2), wait(1, 1, 0, None)],
    ),
    (
        "regime_intervals",
        [
            {"rank": r, "incarnation": 0, "group_id": "world", "epoch": e, "regime": g}
            | {"start_ns": a * S, "end_ns": b * S}
            for r, e, g, a, b in [
                (0, 0, "STRONG", 0, 3),
                (0, 1, "CAUSAL", 3, 4),
                (1, 0, "STRONG", 0, 4),
                (2, 0, "EVENTUAL", 0, 100),  # the agent is not counted
            ]
        ],
    ),
    (
        "violations",
        [
            {"code": "C1", "name": "n", "severity": "error", "rank": 0, "incarnation": 0, "seq": 1}
            | {"group_id": "world", "wall_ns": 7, "sentence": "it broke", "witness": "[]"}
            | {"inferred": False}
        ],
    ),
]


def test_every_view_of_a_small_trace_with_results_answers(busy):
    check_all_views(busy)
    count = "SELECT count(*) FROM {}"
    answers = ask_in_a_process(busy, *(count.format(name) for name in named_views()))
    assert all(answer[0][0] > 0 for answer in answers)


def test_wasted_barrier_time(busy):
    assert dicts(opened(busy), "SELECT * EXCLUDE (run_id) FROM wasted_barrier_time") == [
        {"rank": 1, "waited_s": 0.0, "caused_s": 4.0, "exposed_s": None, "joules": None},
        {"rank": 0, "waited_s": 4.0, "caused_s": 0.0, "exposed_s": None, "joules": 600.0},
    ]


def test_wasted_by_step_and_slowest_ranks(busy):
    db = opened(busy)
    first, second = dicts(db, "SELECT * FROM wasted_by_step")
    assert (first["step"], first["waited_s"], first["worst_rank"], first["worst_s"]) == (0, 3, 1, 3)
    assert (second["transfer_s"], second["num_waits"]) == (2, 2)
    worst = dicts(db, "SELECT * FROM slowest_ranks")[0]
    assert (worst["rank"], worst["caused_s"], worst["last_s"], worst["share_of_steps"]) == (
        1,
        4,
        3,
        1,
    )


def test_regime_share_leaves_agents_out(busy):
    rows = dicts(opened(busy), "SELECT regime, rank_s, share_pct FROM regime_share")
    assert rows == [
        {"regime": "STRONG", "rank_s": 7.0, "share_pct": 87.5},
        {"regime": "CAUSAL", "rank_s": 1.0, "share_pct": 12.5},
    ]


def test_debt_views(busy):
    db = opened(busy)
    assert [(d["debt_id"], d["opened_ns"]) for d in dicts(db, "FROM open_debt")] == [("b", 20)]
    rows = dicts(db, "FROM debt_timeline")
    assert [(r["action"], r["debt_id"], r["num_open"]) for r in rows] == [
        ("opened", "a", 1),
        ("opened", "b", 2),
        ("settled", "a", 1),
    ]
    assert {r["relaxed"] for r in rows} == {"STRONG"}


def test_incidents_name_each_thing_once(busy):
    rows = dicts(opened(busy), "SELECT kind, rank, sentence FROM incidents ORDER BY kind")
    assert rows == [
        {"kind": "departure", "rank": 1, "sentence": "rank 1 left the view: failed"},
        {"kind": "health", "rank": 1, "sentence": "GPU_FAIL_STOP"},
        {"kind": "transition", "rank": 0, "sentence": "STRONG to CAUSAL on GPU_FAIL_STOP"},
        {"kind": "violation", "rank": 0, "sentence": "C1 it broke"},
    ]


def test_gpu_samples_go_to_the_rank_that_owns_the_device(busy):
    (row,) = dicts(opened(busy), "SELECT rank, power_w, util_pct FROM gpu_utilisation")
    assert row == {"rank": 0, "power_w": 200.0, "util_pct": None}


def test_files_with_more_and_fewer_columns_are_read_together(trace):
    (file,) = write_tables(trace, {"steps": [step(0)]})
    rows = pq.read_table(file)
    pq.write_table(rows.drop_columns(["loss"]), file.with_name("fewer.parquet"))
    pq.write_table(rows.append_column("mood", [["good"]]), file.with_name("more.parquet"))
    write_views(trace)
    assert ask_in_a_process(trace, "SELECT count(*), max(mood), max(loss) FROM steps") == [
        [[3, "good", None]]
    ]


def test_a_column_that_no_file_has_is_null(trace):
    (file,) = write_tables(trace, {"debt": [Debt(**leading(0), action="opened")]})
    pq.write_table(pq.read_table(file).drop_columns(["clock", "drift_l2"]), file)
    write_views(trace)
    assert ask_in_a_process(trace, "SELECT clock, drift_l2, action FROM debt") == [
        [[None, None, "opened"]]
    ]


def test_views_show_the_run_of_trace_json(tmp_path):
    run = "it's; DROP VIEW steps"
    trace = make_trace(tmp_path / "t", run_id=run)
    write_tables(trace, {"steps": [step(0, run_id=run), step(1)]})
    write_views(trace)
    assert ask_in_a_process(trace, "SELECT seq FROM steps") == [[[0]]]


def test_absolute_paths_may_hold_anything(tmp_path):
    trace = make_trace(tmp_path / "a [b]* 'c'")
    write_tables(trace, {"steps": [step(0)]})
    assert opened(trace).execute("SELECT count(*) FROM steps").fetchall() == [(1,)]


def test_columns_can_be_asked_for_by_their_plain_names(trace):
    db = opened(trace)
    for table in EVENT_TABLES.values():
        names = ", ".join(column.name for column in table.columns)
        assert db.execute(f"SELECT {names} FROM {table.name}").fetchall() == []
