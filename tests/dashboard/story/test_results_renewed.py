"""A trace that is analysed while somebody looks at it."""

from __future__ import annotations

import shutil

import msgspec
import pyarrow as pa

from analyzer import analyze
from collector.schema.arrow import empty_table
from collector.trace.samples import sample_traces
from collector.trace.trace_folder import open_trace
from collector.trace.trace_writer import write_results
from dashboard.story import kept_answers
from dashboard.story.kept_answers import KeptAnswers
from dashboard.story.trace_source import TraceRun
from tests.dashboard.story.kit import DEADLINE_S


def test_results_that_are_written_again_come_with_their_report(tmp_path):
    trace = tmp_path / "t"
    shutil.copytree(sample_traces()["kill-one"], trace)
    with open_trace(trace) as source:
        analysis = analyze(source)
    body = msgspec.json.encode(analysis.report)
    write_results(trace, analysis.results, body)
    run = TraceRun(trace)
    sql = "SELECT count(*)::BIGINT AS n FROM waits"
    assert run.query(sql)["n"][0].as_py() == analysis.results["waits"].num_rows > 0
    write_results(trace, analysis.results | {"waits": empty_table("waits")}, body)
    assert run.report() is not None
    assert run.query(sql)["n"][0].as_py() == 0
    run.close()


def test_an_empty_answer_through_a_view_is_not_kept_from_before_the_judging(tmp_path, monkeypatch):
    monkeypatch.setenv("CASCADE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(kept_answers, "SLOW_S", -1.0)
    trace = tmp_path / "t"
    shutil.copytree(sample_traces()["kill-one"], trace)
    shutil.rmtree(trace / "results", ignore_errors=True)
    answers = [pa.table({"n": [number]}) for number in range(4)]
    kept = KeptAnswers(trace, lambda sql: answers.pop(0))
    for sql in ("FROM slowest_ranks", "FROM regime_share"):
        assert kept.query(sql)["n"][0].as_py() != kept.query(sql)["n"][0].as_py(), sql
    assert not answers
    run = TraceRun(trace)
    before = run.query_whole("SELECT count(*)::BIGINT AS n FROM slowest_ranks")["n"][0].as_py()
    assert run.wait_until_judged(DEADLINE_S)
    after = run.query_whole("SELECT count(*)::BIGINT AS n FROM slowest_ranks")["n"][0].as_py()
    assert before == 0 < after
    run.close()
