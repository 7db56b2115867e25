"""A real collector in a process of its own: ``cascade serve`` on a data folder and a free port."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import httpx
import msgspec

from benchmarks._load import Failed, Queue
from benchmarks._rows import Host, request_of, sample
from collector.wire.batch import ARROW

_MAIN = "from dashboard.commands import main; raise SystemExit(main())"
RUN_ID = "run-benchmark"
STOP_S = 120.0


class Collector:
    """``cascade serve``; may be killed and started again on its port.

    Args:
        data: the data folder.
        options: of ``cascade serve``.
    """

    def __init__(self, data: Path, *options: str) -> None:
        self.data = data
        self._options = options
        self._port = 0
        self._process: subprocess.Popen[bytes] | None = None
        self.start_s = 0.0
        self.start()

    def __enter__(self) -> Collector:
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process is not None
        if self._process.poll() is None:
            self.kill()

    @property
    def address(self) -> tuple[str, int]:
        """Host and port."""
        return "127.0.0.1", self._port

    @property
    def url(self) -> str:
        """Of the collector."""
        return f"http://127.0.0.1:{self._port}"

    @property
    def log(self) -> str:
        """What it wrote on stderr."""
        return self._log.read_text(errors="replace")

    @property
    def _log(self) -> Path:
        return self.data.with_name(f"{self.data.name}.log")

    def start(self) -> None:
        """Returns when it takes connections; ``start_s`` tells how long that took.

        Raises:
            Failed: it ended instead.
        """
        begin = time.monotonic()
        process = self._begin()
        assert process.stdout is not None
        line = process.stdout.readline()
        process.stdout.close()
        if not line:
            process.wait()
            raise Failed(f"the collector did not start:\n{self.log[-2000:]}")
        self._port = int(msgspec.json.decode(line)["url"].rsplit(":", 1)[1])
        self.start_s = time.monotonic() - begin

    def start_and_kill(self, after_s: float) -> None:
        """Start it and kill it so many seconds later, wherever it has got to."""
        process = self._begin()
        time.sleep(after_s)
        self.kill()
        assert process.stdout is not None
        process.stdout.close()

    def _begin(self) -> subprocess.Popen[bytes]:
        words = ["serve", "--json", "--no-analysis", "--data", str(self.data)]
        words += ["--port", str(self._port), *self._options]
        # What a killed collector leaves among temporary files goes with the benchmark's folder.
        temporary = self.data.with_name(f"{self.data.name}.tmp")
        temporary.mkdir(parents=True, exist_ok=True)
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-c", _MAIN, *words],
                stdout=subprocess.PIPE,
                stderr=log,
                env={**os.environ, "TMPDIR": str(temporary)},
            )
        return self._process

    def kill(self) -> None:
        """SIGKILL."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def stop(self) -> None:
        """SIGTERM, as one stops a service; returns when it has ended.

        Raises:
            Failed: it did not end well.
        """
        assert self._process is not None
        self._process.send_signal(signal.SIGTERM)
        status = self._process.wait(STOP_S)
        if status:
            raise Failed(f"the collector ended with {status}:\n{self.log[-2000:]}")

    def cpu_s(self) -> float:
        """CPU seconds that it has used."""
        assert self._process is not None
        fields = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def get(self, path: str) -> Any:
        """The JSON that a GET answers."""
        answer = httpx.get(self.url + path, timeout=60)
        answer.raise_for_status()
        return answer.json()

    def put_meta(self, run_id: str, meta: bytes) -> None:
        """Tell what a run is."""
        headers = {"content-type": "application/json"}
        answer = httpx.put(
            f"{self.url}/v1/runs/{run_id}", content=meta, headers=headers, timeout=60
        )
        answer.raise_for_status()

    def sql(self, statement: str, run_id: str | None = None) -> list[list[Any]]:
        """The rows that ``POST /v1/sql`` answers."""
        body = {"sql": statement, "run_id": run_id, "limit": 1_000_000}
        answer = httpx.post(f"{self.url}/v1/sql", json=body, timeout=60)
        if answer.status_code != 200:
            raise Failed(f"/v1/sql: {answer.status_code} {answer.text[:500]}")
        found: list[list[Any]] = answer.json()["rows"]
        return found

    def num_rows(self, run_id: str) -> int:
        """Rows stored of a run."""
        return int(self.get(f"/v1/runs/{run_id}")["run"]["num_rows"])


def queues(form: str, num_clients: int, num_batches: int, num_rows: int) -> list[Queue]:
    """Requests of agents of as many hosts, each at another place of the recorded run."""
    stride = len(sample().items) // num_clients
    made = []
    for number in range(num_clients):
        host = Host(RUN_ID, number, start=number * stride, whole=form == ARROW)
        taken = [host.take(num_rows) for _ in range(num_batches)]
        made.append(
            Queue([request_of(form, t.records) for t in taken], [t.num_rows for t in taken])
        )
    return made
