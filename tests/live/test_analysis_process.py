"""The analysis process beside a collector: how it is started, and that it always ends."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

from dashboard.live import analysis
from dashboard.live.analysis import LiveAnalysis


class FakeProcess:
    """Ends when it is told to; the second one takes long to start."""

    started: list[FakeProcess]
    in_start: threading.Event
    may_start: threading.Event
    takes_sigterm = True

    def __init__(self, *command: object, **options: object) -> None:
        self.ended = threading.Event()
        self.killed = False
        if self.started:
            self.in_start.set()
            assert self.may_start.wait(20)
        self.started.append(self)

    def wait(self) -> int:
        if len(self.started) > 1 or not self.takes_sigterm:
            assert self.ended.wait(20)
        return 0  # the first one falls over at once

    def terminate(self) -> None:
        if self.takes_sigterm:
            self.ended.set()

    def kill(self) -> None:
        self.killed = True
        self.ended.set()


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> type[FakeProcess]:
    monkeypatch.setattr(FakeProcess, "started", [], raising=False)
    monkeypatch.setattr(FakeProcess, "in_start", threading.Event(), raising=False)
    monkeypatch.setattr(FakeProcess, "may_start", threading.Event(), raising=False)
    monkeypatch.setattr(FakeProcess, "takes_sigterm", True)
    monkeypatch.setattr(analysis.subprocess, "Popen", FakeProcess)
    monkeypatch.setattr(analysis, "_RETRY_S", 0.0)
    return FakeProcess


def test_one_that_is_being_started_is_stopped_too(tmp_path: Path, fake: type[FakeProcess]) -> None:
    live = LiveAnalysis(tmp_path).__enter__()
    assert fake.in_start.wait(20)
    stopper = threading.Thread(target=live.__exit__, daemon=True)
    stopper.start()
    fake.may_start.set()
    stopper.join(20)
    assert not stopper.is_alive()
    assert not live._thread.is_alive()
    assert len(fake.started) == 2
    assert fake.started[1].ended.is_set()


def test_one_that_does_not_end_is_killed(
    tmp_path: Path, fake: type[FakeProcess], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fake, "takes_sigterm", False)
    monkeypatch.setattr(analysis, "_STOP_S", 0.05)
    with LiveAnalysis(tmp_path) as live:
        until = time.monotonic() + 20
        while not fake.started:
            assert time.monotonic() < until
            time.sleep(0.001)
    assert [process.killed for process in fake.started] == [True]
    live._thread.join(20)
    assert not live._thread.is_alive()


def test_it_ends_before_the_collector_when_memory_runs_out(tmp_path: Path) -> None:
    with LiveAnalysis(tmp_path) as live:
        until = time.monotonic() + 60
        while True:
            process = live._process
            if process is not None:
                text = Path(f"/proc/{process.pid}/oom_score_adj").read_text()
                if text == "500\n":
                    break
                assert process.poll() is None
            assert time.monotonic() < until
            time.sleep(0.02)
    assert not live._thread.is_alive()
    assert process.returncode is not None
