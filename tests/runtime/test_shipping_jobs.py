"""Whole jobs with a collector: every row arrives, or none is lost, and the job does not care."""

from __future__ import annotations

import os
import signal
from functools import partial
from pathlib import Path

import pytest

from cascade_runtime.agent import launcher
from cascade_runtime.agent.launcher import Launcher, make_config
from cascade_runtime.vocabulary.identity import Actor
from collector.trace.trace_folder import open_trace
from dashboard.commands import main
from dashboard.demo import train
from dashboard.demo.faults import Kill
from tests.runtime.jobs import JobRunner
from tests.runtime.shipping_server import FakeCollector, Handler, hangs

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(90)]

TELLING = {"steps", "collectives", "updates", "reads", "messages", "membership", "actors"}


def assert_all_arrived(collector: FakeCollector, actors: set[Actor], trace: Path) -> None:
    assert set(collector.rows) == actors
    for actor in actors:
        rows = collector.rows[actor]
        assert sorted(rows) == list(range(len(rows)))
    assert collector.tables() >= TELLING
    assert not (trace / "spool").exists()
    assert len(collector.metas) >= 2
    assert collector.metas[0]["ended_ns"] is None
    assert collector.metas[-1]["clean_end"] is True


def test_every_row_arrives_those_of_a_killed_rank_too(jobs: JobRunner) -> None:
    with FakeCollector() as collector:
        job = jobs.run(
            "--steps", "40", ranks=3, hosts=2, kills=(Kill(2, 12),), collector=collector.url
        )
        assert job.outcome.finished == [0, 1]
        assert job.outcome.exit_code == 0
        assert_all_arrived(collector, {Actor(r) for r in range(5)}, job.trace)
        entered = {
            (a, s)
            for a, rows in collector.rows.items()
            for s, r in rows.items()
            if type(r).__name__ == "Collectives"
        }
        done = {(Actor(d.rank, d.incarnation), d.seq) for d in collector.dones}
        assert done <= entered
        assert len(entered - done) < 20  # what the killed rank was in, and what was called off
    with open_trace(job.trace) as source:  # the local trace is still one
        assert source.meta.clean_end is True


def test_an_agent_killed_while_it_ships_goes_on(zygote: Path, tmp_path: Path) -> None:
    with FakeCollector() as collector:
        config = make_config(
            [str(train.__file__), "--steps", "60", "--pause-ms", "30"],
            num_ranks=2,
            trace_dir=tmp_path / "trace",
            zygote=zygote,
            collector=collector.url,
        )
        job = Launcher(config)

        def kill(handler: Handler, records: object) -> bool:
            os.kill(job.agent_pids[0], signal.SIGKILL)
            return False

        collector.faults.extend([lambda *ignored: False, kill])
        outcome = job.run()
        assert outcome.exit_code == 0
        assert outcome.finished == [0, 1]
        actors = {Actor(0), Actor(1), Actor(2), Actor(2, 1)}
        assert_all_arrived(collector, actors, tmp_path / "trace")


def test_a_collector_that_hangs_costs_the_job_nothing(
    jobs: JobRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CASCADE_SHIP_DEADLINE_S", "0.5")
    plain = jobs.run("--steps", "20", ranks=2)
    with FakeCollector() as collector:
        collector.always = hangs
        job = jobs.run("--steps", "20", ranks=2, collector=collector.url)
        assert collector.num_posts >= 1
    assert job.outcome.exit_code == 0
    assert job.outcome.finished == [0, 1]
    for rank in (0, 1):
        mine, theirs = plain.parameters()[rank], job.parameters()[rank]
        assert all(mine[name].equal(theirs[name]) for name in mine)
    assert job.verdict() == "ok"
    assert len(job.rows("steps")) == len(plain.rows("steps"))


def test_what_cascade_run_says(
    zygote: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    script = str(train.__file__)
    monkeypatch.setattr(launcher, "make_config", partial(make_config, zygote=zygote))

    def run(*words: str) -> str:
        assert main(["run", *words]) == 0
        return capfd.readouterr().err

    with FakeCollector() as collector:
        out = tmp_path / "one"
        said = run("--collector", collector.url, "--out", str(out), script, "--steps", "8")
        (run_id,) = {m["run_id"] for m in collector.metas}
        page = f"{collector.url}/dash/run/{run_id}"
        assert f"cascade: look at it: {page}   (it fills as the job runs)\n" in said
        assert f"cascade: every row is in the collector; look at it: {page}\n" in said
        assert "cascade push" not in said
        assert not list(out.glob("events/*/*"))
        collector.always = hangs
        monkeypatch.setenv("CASCADE_COLLECTOR", collector.url)
        monkeypatch.setenv("CASCADE_SHIP_DEADLINE_S", "0.3")
        out = tmp_path / "two"
        said = run("--out", str(out), script, "--steps", "8")
        assert f"send them: cascade push {out} {collector.url}" in said
    assert main(["analyze", str(out)]) == 0


def test_an_address_that_is_none_starts_no_job(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--collector", "nonsense", "--out", str(tmp_path / "out"), str(train.__file__)]
    assert main(["run", *words]) == 2
    assert "not the address of a collector" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
