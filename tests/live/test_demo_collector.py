"""The demo's collector: why it does not start, that it keeps its port, and when it is given up."""

from __future__ import annotations

import os
import re
import signal
import socket
import threading
from pathlib import Path

import httpx
import pytest

from cascade_runtime.vocabulary.errors import BadUsage
from collector.trace.durable import alone_in
from dashboard.commands import main
from dashboard.demo import collector
from dashboard.demo.collector import DemoCollector


class Lines:
    """What the demo says, and a way to wait for it."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._more = threading.Condition()

    def say(self, text: str) -> None:
        with self._more:
            self.lines.append(text)
            self._more.notify_all()

    def wait_for(self, text: str) -> str:
        def found() -> str | None:
            return next((line for line in self.lines if text in line), None)

        with self._more:
            assert self._more.wait_for(lambda: found() is not None, 60), self.lines
            return str(found())


def test_a_folder_in_use_is_told_as_the_collector_tells_it(tmp_path: Path) -> None:
    with alone_in(tmp_path, "using"), pytest.raises(BadUsage) as raised:
        DemoCollector(tmp_path, lambda text: None).__enter__()
    assert "another collector has this data folder open" in raised.value.message
    assert raised.value.where == str(tmp_path)
    assert "--data" in raised.value.hint


@pytest.mark.chaos
def test_who_connects_between_two_collectors_is_answered(tmp_path: Path) -> None:
    told = Lines()
    with DemoCollector(tmp_path, told.say) as demo:
        found = re.search(r"pid (\d+)", told.wait_for("the collector is at"))
        assert found is not None
        os.kill(int(found[1]), signal.SIGKILL)
        told.wait_for("starting it again")
        assert httpx.get(demo.url + "/v1/healthz", timeout=60).status_code == 200
        assert demo.url in told.wait_for("the collector is back at")


def test_one_that_ends_again_and_again_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = """
import json, os
print(json.dumps({"url": "http://there", "pid": os.getpid()}))
"""
    monkeypatch.setattr(collector, "_MAIN", script)
    monkeypatch.setattr(collector, "_MAX_STARTS", 2)
    monkeypatch.setattr(collector, "_FIRST_WAIT_S", 0.0)
    told = Lines()
    with DemoCollector(tmp_path, told.say) as demo:
        assert "ended 3 times and is given up" in told.wait_for("given up")
        port = int(demo.url.rsplit(":", 1)[1])
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", port), timeout=20)
    assert sum("is back at" in line for line in told.lines) == 2


def test_one_that_does_not_come_back_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = """
import json, os, pathlib, sys
mark = pathlib.Path(sys.argv[sys.argv.index("--data") + 1], "mark")
if mark.exists():
    print("some line", file=sys.stderr)
    error = {"code": "bad_usage", "message": "no room", "where": "there", "hint": "make some"}
    print(json.dumps({"error": error}), file=sys.stderr)
    print("a line behind it", file=sys.stderr)
    sys.exit(2)
mark.touch()
print(json.dumps({"url": "http://there", "pid": os.getpid()}))
"""
    monkeypatch.setattr(collector, "_MAIN", script)
    monkeypatch.setattr(collector, "_MAX_STARTS", 1)
    monkeypatch.setattr(collector, "_FIRST_WAIT_S", 0.0)
    told = Lines()
    with DemoCollector(tmp_path, told.say):
        told.wait_for("given up")
    assert "the collector does not start: no room" in told.lines


def test_the_demo_has_a_data_folder_of_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    """One process has a folder at a time, and ``cascade serve`` may be running."""
    assert main(["demo", "--help"]) == 0
    assert "(cascade-demo)" in capsys.readouterr().out
