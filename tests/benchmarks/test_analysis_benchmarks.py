"""The analysis' benchmarks run at small sizes, and what they judge can fail."""

from __future__ import annotations

import pytest

from analyzer import analyze
from benchmarks import analyze_1e8, analyze_rate, blame, clock_fit
from benchmarks._causal_run import Shape, in_memory, on_disk
from cascade_runtime.vocabulary.report import WaitSummary
from collector.trace.trace_folder import open_trace
from tests.benchmarks.test_benchmarks import quick

SMALL = Shape.of_rows(16, 3_000)


def test_the_made_run_is_sound_and_of_the_mix_it_says():
    source = in_memory(SMALL)
    report = analyze(source).report
    assert (report.verdict, report.violations) == ("ok", [])
    checked = {c.code: c.num_checked for c in report.checks}
    assert all(checked[code] for code in ("A1", "A4", "S1", "S2", "S3", "C1", "C2", "B1", "G1"))
    updates, reads = (source.table(t).num_rows / source.num_rows for t in ("updates", "reads"))
    assert updates > 0.3 and reads > 0.1


def test_on_disk_it_is_the_same_run(tmp_path):
    rows = on_disk(tmp_path / "t", SMALL, blocks_a_file=2)
    with open_trace(tmp_path / "t") as trace:
        found = analyze(trace).report
    assert rows == in_memory(SMALL).num_rows
    assert found.checks == analyze(in_memory(SMALL)).report.checks


@pytest.mark.long
@pytest.mark.parametrize("name", ["analyze_rate", "analyze_1e8", "blame", "clock_fit"])
def test_it_runs(name):
    quick(name)


def test_the_rate_at_the_largest_size_is_judged():
    found = [(100_000, 0.01), (1_000_000, 0.1), (10_000_000, 1.0)]
    good = analyze_rate.judge(found, found, 512)
    assert good.holds and good.figure["growth exponent"] == pytest.approx(1.0)
    slow = analyze_rate.judge([*found[:2], (10_000_000, 4.0)], found, 512)
    assert not slow.holds and slow.figure["growth exponent"] > 1.2


def test_time_and_memory_of_the_large_run_are_judged():
    rows = analyze_1e8.NUM_ROWS
    assert analyze_1e8.judge(rows, 1024, 119.0, 7.9, 0).holds
    assert not analyze_1e8.judge(rows, 1024, 121.0, 7.9, 0).holds
    assert not analyze_1e8.judge(rows, 1024, 119.0, 8.1, 0).holds
    stopped = analyze_1e8.judge(rows, 1024, 10.0, 16.1, -1)
    assert not stopped.holds and stopped.figure["s"] is None
    assert not analyze_1e8.judge(rows // 10, 1024, 1.0, 1.0, 0).holds


def test_the_straggler_must_be_first_and_the_control_quiet():
    ranks = [(7, 40.0), (3, 5.0)]
    even = [(1, 1.9), (2, 1.8)]
    assert blame.judge({10: (ranks, even)}, 7).holds
    assert not blame.judge({10: (ranks, even)}, 3).holds
    assert not blame.judge({10: (ranks, [(1, 2.1), (2, 1.0)])}, 7).holds


def summary(total_s, refused=None):
    return WaitSummary(
        kind="raw", total_rank_s=total_s, exposed_rank_s=None, share_pct=0.0, joules=None,
        refused=refused, by_rank=[], chronic_straggler=None,
    )  # fmt: skip


def test_the_fit_must_be_near_and_the_untied_hosts_refused():
    assert clock_fit.judge(summary(10.0), summary(10.4), summary(0.0, "no")).holds
    assert not clock_fit.judge(summary(10.0), summary(10.6), summary(0.0, "no")).holds
    assert not clock_fit.judge(summary(10.0), summary(10.0), summary(0.0)).holds
