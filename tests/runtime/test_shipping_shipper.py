"""What an agent's loop sees of shipping: it starts once, never waits long, and says what went wrong."""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cascade_runtime.agent.launcher import make_config
from cascade_runtime.agent.shipping import courier
from cascade_runtime.agent.shipping.shipper import Shipper
from cascade_runtime.recorder import Recorder
from cascade_runtime.vocabulary.errors import BadUsage
from cascade_runtime.vocabulary.identity import Actor
from tests.collector.traces import make_trace
from tests.runtime.shipping_server import FakeCollector, answers, hangs

Make = Callable[..., tuple[Shipper, Recorder]]


@pytest.fixture
def collector() -> Iterator[FakeCollector]:
    with FakeCollector() as running:
        yield running


@pytest.fixture
def make(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, collector: FakeCollector
) -> Iterator[Make]:
    run_dirs: list[str] = []
    monkeypatch.setattr(courier, "INTERVAL_S", 0.01)
    monkeypatch.setenv("CASCADE_SHIP_DEADLINE_S", "10")
    monkeypatch.setenv("CASCADE_TOKEN", "geheim")

    def build(url: str | None = collector.url) -> tuple[Shipper, Recorder]:
        config = make_config([__file__], num_ranks=2, trace_dir=tmp_path / "trace", collector=url)
        run_dirs.append(config.run_dir)
        make_trace(tmp_path / "trace", run_id=config.run_id)
        writer = Recorder(tmp_path / "trace" / "spool", config.run_id, Actor(1))
        writer.steps("begin")
        return Shipper(config, 0), writer

    yield build
    for run_dir in run_dirs:
        shutil.rmtree(run_dir)


def wait_for(true: Callable[[], bool]) -> None:
    limit = time.monotonic() + 20
    while not true():
        assert time.monotonic() < limit
        time.sleep(0.005)


def test_from_start_to_finish(
    make: Make, collector: FakeCollector, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shipper, writer = make()
    shipper.start()
    shipper.start()
    assert [t.name for t in threading.enumerate()].count("cascade-shipper") == 1
    wait_for(lambda: len(collector.metas) == 1)
    writer.steps("end")
    writer.close()
    shipper.run_ended()
    shipper.finish()
    assert sorted(collector.rows[Actor(1)]) == [0, 1]
    assert len(collector.metas) == 2
    assert not (tmp_path / "trace" / "spool").exists()
    assert capsys.readouterr().err == ""
    assert collector.tokens == {"Bearer geheim"}


def test_a_job_that_never_formed_sends_nothing(make: Make, collector: FakeCollector) -> None:
    shipper, _ = make()
    shipper.actor_ended(Actor(1))
    shipper.run_ended()
    shipper.finish()
    assert collector.num_posts == 0


def test_without_a_collector_nothing_happens(make: Make, tmp_path: Path) -> None:
    shipper, _ = make(None)
    shipper.start()
    shipper.finish()
    assert (tmp_path / "trace" / "spool" / "1-0" / "0.seg").exists()


@pytest.mark.parametrize("status", [401, 403, 410])
def test_a_collector_that_wants_nothing(
    make: Make,
    collector: FakeCollector,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    status: int,
) -> None:
    collector.always = answers(status, {"error": {"message": "no\x1b[31m thanks", "where": ""}})
    shipper, writer = make()
    shipper.start()
    writer.close()
    shipper.finish()  # at once, not after the deadline
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert f"it answered {status} (no [31m thanks)" in said
    assert ("cascade push" in said) is (status != 410)
    assert "geheim" not in said
    assert (tmp_path / "trace" / "spool" / "1-0" / "0.seg").exists()


def test_a_hanging_collector_is_waited_for_no_longer_than_said(
    make: Make, collector: FakeCollector, monkeypatch: pytest.MonkeyPatch
) -> None:
    collector.always = hangs
    shipper, _ = make()
    shipper.start()
    wait_for(lambda: collector.num_posts == 1)
    monkeypatch.setenv("CASCADE_SHIP_DEADLINE_S", "0.2")
    begun = time.monotonic()
    shipper.finish()
    assert time.monotonic() - begun < 5
    collector.over.set()
    wait_for(lambda: not any(t.name == "cascade-shipper" for t in threading.enumerate()))


def test_a_fault_of_ours_ends_shipping_and_nothing_else(
    make: Make, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shipper, _ = make()
    monkeypatch.setattr(courier.Courier, "turn", lambda self: 1 / 0)
    shipper.start()
    shipper.finish()
    assert "nothing more is shipped" in capsys.readouterr().err


def test_settings_are_judged_before_the_job_starts(tmp_path: Path) -> None:
    for url in ("nonsense", "http://u:p@h"):
        with pytest.raises(BadUsage):
            make_config([__file__], num_ranks=2, trace_dir=tmp_path / "t", collector=url)
    assert not (tmp_path / "t").exists()


def test_the_token_is_not_in_the_jobs_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CASCADE_TOKEN", "geheim")
    config = make_config([__file__], num_ranks=2, trace_dir=tmp_path / "t", collector="http://h/")
    assert config.collector == "http://h"
    assert "geheim" not in str(config)
    Path(config.run_dir).rmdir()
