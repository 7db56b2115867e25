"""The collector dies in the middle of the demo and comes back: the job and its trace don't notice."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import threading
import time
from pathlib import Path

import httpx
import msgspec
import pytest

from collector.trace.trace_folder import open_trace
from tests.live.digests import missing_and_doubled
from tests.live.servers import command

_AT = re.compile(r"the collector is (?:at|back at) (\S+) \(pid (\d+)\)")


class Demo:
    """``cascade demo`` with its stderr read as it comes."""

    def __init__(self, *words: str) -> None:
        self.lines: list[str] = []
        self._process = subprocess.Popen(
            command("demo", "--headless", "--json", *words),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            # On a busy machine a collector may come back after the job's end.
            env={**os.environ, "CASCADE_SHIP_DEADLINE_S": "60"},
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stderr is not None
        for line in self._process.stderr:
            self.lines.append(line)

    def wait_for(self, pattern: re.Pattern[str], num: int = 1) -> re.Match[str]:
        """The ``num``-th line that matches."""
        until = time.monotonic() + 60
        while time.monotonic() < until:
            found = [m for line in list(self.lines) if (m := pattern.search(line))]
            if len(found) >= num:
                return found[num - 1]
            assert self._process.poll() is None, "".join(self.lines)
            time.sleep(0.02)
        raise AssertionError("".join(self.lines))

    def end(self) -> tuple[int, str]:
        assert self._process.stdout is not None
        out = self._process.stdout.read()  # one report: it fits into the pipe while we wait
        status = self._process.wait(timeout=100)
        self._reader.join()
        for pipe in (self._process.stdout, self._process.stderr):
            assert pipe is not None
            pipe.close()
        return status, out


def wait_for_rows(url: str, num_rows: int) -> None:
    until = time.monotonic() + 60
    while time.monotonic() < until:
        try:
            runs = httpx.get(url + "/v1/runs", timeout=5).json()["runs"]
        except httpx.HTTPError:
            runs = []
        if runs and runs[0]["num_rows"] >= num_rows:
            return
        time.sleep(0.02)
    raise AssertionError(f"no {num_rows} rows at {url}")


@pytest.mark.chaos
def test_the_demo_outlives_its_collector(tmp_path: Path) -> None:
    words = ("--scenario", "kill-one", "--data", str(tmp_path / "data"))
    demo = Demo(*words, "--out", str(tmp_path / "trace"))
    for num, rows in ((1, 400), (2, 1000)):
        found = demo.wait_for(_AT, num)
        wait_for_rows(found[1], rows)
        os.kill(int(found[2]), signal.SIGKILL)
    status, out = demo.end()
    assert status == 0, "".join(demo.lines)
    report = msgspec.json.decode(out)
    assert report["verdict"] == "ok"
    for folder in (tmp_path / "trace", next((tmp_path / "data" / "runs").iterdir())):
        assert missing_and_doubled(folder) == ([], 0)
        with open_trace(folder) as source:
            assert source.table("gaps").num_rows == 0
            steps = source.table("steps").to_pylist()
            assert max(row["step"] for row in steps if row["phase"] == "end") >= 119
            assert source.meta.clean_end is True
