"""``analyze --write`` on a copy of a sample, asked in plain DuckDB, and the contract's form checker."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest

from cascade_runtime.vocabulary.schema import EVENT_TABLES, RESULT_TABLES
from tests.samples.broken_walks import debt_never_settled

SAMPLES = ["clean", "kill-one"]
CHECKER = next(
    (
        found
        for folder in Path(__file__).resolve().parents
        if (found := folder / "shared" / "tools" / "check_trace.py").is_file()
    ),
    None,
)


class Opened:
    """A trace as someone with only DuckDB sees it."""

    def __init__(self, path: Path, monkeypatch) -> None:
        monkeypatch.chdir(path)  # views.sql names files from where it lies
        self._db = duckdb.connect()
        self._db.execute((path / "views.sql").read_text())

    def rows(self, sql: str) -> list[dict]:
        found = self._db.execute(sql)
        names = [column[0] for column in found.description]
        return [dict(zip(names, row, strict=True)) for row in found.fetchall()]


@pytest.fixture
def written(doctored, ask, monkeypatch):
    """A copy, changed and analyzed with ``--write``: (what was answered, the trace in DuckDB)."""

    def write(sample="kill-one", change=lambda d: None):
        d = doctored(sample)
        change(d)
        answer = ask("analyze", d.save(), "--write", "--json")
        return answer, Opened(d.path, monkeypatch)

    return write


@pytest.mark.parametrize("sample", SAMPLES)
def test_every_table_and_named_view_opens(written, sample):
    answer, trace = written(sample)
    assert answer.code == 0
    for name in (*EVENT_TABLES, *RESULT_TABLES):
        trace.rows(f'SELECT * FROM "{name}"')
    assert trace.rows("SELECT * FROM regime_timeline")
    assert trace.rows("SELECT * FROM slowest_ranks")
    assert trace.rows("SELECT * FROM wasted_by_step")
    assert trace.rows("SELECT * FROM open_debt") == []
    assert trace.rows("SELECT * FROM violation_list") == []
    assert trace.rows("SELECT * FROM gpu_utilisation") == []
    checks = trace.rows("SELECT code, verdict FROM checks")
    assert checks == [{"code": c["code"], "verdict": c["verdict"]} for c in answer.json["checks"]]


@pytest.mark.parametrize("sample", SAMPLES)
def test_views_say_what_the_report_says(written, sample):
    answer, trace = written(sample)
    shares = trace.rows("SELECT regime, share_pct FROM regime_share")
    assert sum(share["share_pct"] for share in shares) == pytest.approx(100)
    reported = {share["regime"]: share["share_pct"] for share in answer.json["regimes"]}
    assert {s["regime"]: s["share_pct"] for s in shares} == pytest.approx(reported, abs=0.001)
    waits = answer.json["waits"]
    wasted = trace.rows("SELECT rank, waited_s, caused_s FROM wasted_barrier_time")
    by_rank = {r["rank"]: r for r in waits["by_rank"]}
    assert {r["rank"] for r in wasted} == set(by_rank)
    for row in wasted:
        reported = by_rank[row["rank"]]
        assert row["waited_s"] == pytest.approx(reported["waited_s"])
        # A row of waits names one root; the report shares a wait among all that caused it.
        assert row["caused_s"] == pytest.approx(
            reported["caused_s"], abs=waits["total_rank_s"] / 20
        )
    assert wasted[0]["rank"] == max(by_rank.values(), key=lambda r: r["caused_s"])["rank"]


def test_the_story_of_kill_one_is_in_the_views(written):
    _, trace = written()
    debts = trace.rows("SELECT debt_id, action, num_open FROM debt_timeline")
    assert [(d["debt_id"], d["action"], d["num_open"]) for d in debts] == [
        ("1/strong", "opened", 1),
        ("1/data/2", "opened", 2),
        ("1/strong", "settled", 1),
        ("1/data/2", "written_off", 0),
    ]
    incidents = trace.rows("SELECT kind, rank, fault FROM incidents")
    assert [(i["kind"], i["fault"]) for i in incidents] == [
        ("health", "GPU_FAIL_STOP"),
        ("transition", "GPU_FAIL_STOP"),
        ("departure", None),
        ("health", "STABLE_SYNC"),
        ("transition", "STABLE_SYNC"),
    ]
    assert {i["rank"] for i in incidents if i["kind"] in ("health", "departure")} >= {2}


def test_a_broken_promise_is_a_row(written):
    answer, trace = written(change=debt_never_settled)
    assert answer.code == 1
    listed = trace.rows("SELECT code, rank, incarnation, seq, sentence FROM violation_list")
    assert sorted(tuple(row.values())[:4] for row in listed) == answer.broken
    assert {r["sentence"] for r in listed} == {v["sentence"] for v in answer.json["violations"]}
    assert [debt["debt_id"] for debt in trace.rows("SELECT * FROM open_debt")] == ["1/strong"]
    kinds = trace.rows("SELECT kind FROM incidents WHERE severity = 'error'")
    assert kinds == [{"kind": "violation"}] * 2


def test_writing_twice_replaces(doctored, ask):
    d = doctored()
    first = ask("analyze", d.save(), "--write", "--json")
    again = ask("analyze", d.path, "--write", "--json")
    assert again.json == first.json
    assert sorted(p.name for p in d.path.iterdir()) == [
        "events",
        "results",
        "trace.json",
        "views.sql",
    ]


def test_without_write_nothing_is_written(doctored, ask):
    d = doctored()
    d.save()
    before = {p: p.stat().st_mtime_ns for p in d.path.rglob("*")}
    assert ask("analyze", d.path).code == 0
    assert {p: p.stat().st_mtime_ns for p in d.path.rglob("*")} == before


def _form(*words: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(CHECKER), *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


@pytest.mark.skipif(
    CHECKER is None, reason="the contract's form checker is not beside this checkout"
)
@pytest.mark.parametrize("sample", SAMPLES)
def test_the_form_holds(doctored, ask, tmp_path, sample):
    answer = ask("analyze", sample, "--json")
    report = tmp_path / "report.json"
    report.write_text(answer.out)
    done = _form(json.loads(answer.out)["inputs"][0], "--report", report)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    copy = doctored(sample).save()
    assert _form(copy).returncode == 0


@pytest.mark.skipif(
    CHECKER is None, reason="the contract's form checker is not beside this checkout"
)
def test_the_form_of_a_report_with_violations_holds(doctored, ask, tmp_path):
    d = doctored()
    debt_never_settled(d)
    report = tmp_path / "report.json"
    report.write_text(ask("analyze", d.save(), "--json").out)
    done = _form(d.path, "--report", report)
    assert done.returncode == 0, done.stdout
