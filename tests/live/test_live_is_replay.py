"""A run that was collected live and its trace posted to a fresh collector are the same run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from analyzer import analyze
from cascade_runtime.vocabulary.schema import EVENT_TABLES
from collector.trace.copy_run import copy_run
from collector.trace.trace_folder import open_trace
from dashboard.demo.faults import Kill
from tests.live.digests import missing_and_doubled, row_digests
from tests.live.servers import Server, cascade
from tests.runtime.jobs import JobRunner


def verdict(trace: Path) -> str:
    with open_trace(trace) as source:
        report = analyze(source).report
    return (
        report.verdict
        + " "
        + " ".join(f"{c.code}={c.verdict}/{c.num_checked}" for c in report.checks)
    )


@pytest.mark.parametrize("hosts", [1, 2])
def test_live_and_replayed_are_equal(
    jobs: JobRunner, serve: Callable[..., Server], tmp_path: Path, hosts: int
) -> None:
    live = serve("live", "--no-analysis")
    kills = (Kill(2, 12),)
    job = jobs.run("--steps", "40", kills=kills, hosts=hosts, collector=live.url)
    assert job.outcome.finished == [0, 1, 3]
    (run,) = live.get("/v1/runs")["runs"]
    assert run["state"] == "ended"
    assert not (job.trace / "spool").exists()  # all of it was shipped
    live.stop()  # publishes what is hot

    replayed = serve("replayed", "--no-analysis")
    posted = tmp_path / "posted"
    copy_run(live.folder(run["run_id"]), posted)
    pushed = cascade("push", str(posted), replayed.url)
    assert pushed.returncode == 0, pushed.stderr
    replayed.stop()

    first, second = (s.folder(run["run_id"]) for s in (live, replayed))
    digests = row_digests(first)
    assert digests == row_digests(second)
    assert missing_and_doubled(first) == ([], 0)
    assert verdict(first) == verdict(second)
    assert verdict(first).startswith("ok")
    with open_trace(first) as source:
        assert source.table("transitions").num_rows > 0
        assert {n for n in EVENT_TABLES if source.table(n).num_rows} >= {"collectives", "debt"}


def test_a_trace_from_disk_is_what_its_collector_holds(
    jobs: JobRunner, serve: Callable[..., Server]
) -> None:
    """A job without a collector, posted afterwards: spool, doorway and wire give the same rows."""
    job = jobs.run("--steps", "20", kills=(Kill(1, 8),))
    server = serve("later", "--no-analysis")
    assert cascade("push", str(job.trace), server.url).returncode == 0
    assert cascade("push", str(job.trace), server.url).returncode == 0  # again: nothing is added
    (run,) = server.get("/v1/runs")["runs"]
    server.stop()
    assert row_digests(job.trace) == row_digests(server.folder(run["run_id"]))
    assert verdict(job.trace) == verdict(server.folder(run["run_id"]))


def test_every_sample_survives_the_wire(serve: Callable[..., Server]) -> None:
    from collector.trace.samples import sample_traces

    server = serve("samples", "--no-analysis")
    for path in sample_traces().values():
        assert cascade("push", str(path), server.url).returncode == 0
    server.stop()
    for path in sample_traces().values():
        with open_trace(path) as source:
            folder = server.folder(source.meta.run_id)
        assert row_digests(path) == row_digests(folder)
        assert verdict(path) == verdict(folder)
