"""The big trace under ``cascade replay``, in a process of its own, and what opening it cost."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import httpx
import msgspec

from benchmarks._big_trace import big_trace
from benchmarks._browser import until
from benchmarks._load import Failed

NUM_ROWS = 100_000_000
QUICK_ROWS = 200_000
BUILD_S = 1800.0
OPEN_S = 120.0

_MAIN = "from dashboard.commands import main; raise SystemExit(main())"


def add_options(options: argparse.ArgumentParser) -> None:
    """Where the trace lies, and how large it is."""
    folder = Path(tempfile.gettempdir()) / "cascade-bench"
    options.add_argument("--dir", type=Path, default=folder, help="keeps the trace and its cache")
    options.add_argument("--rows", type=float, help=f"of the trace ({NUM_ROWS:.0e})")


class Replayed:
    """``cascade replay`` of the trace, with everything built; a context manager.

    Args:
        args: with ``add_options``'; the trace is made when it is not in the folder yet.

    Attributes:
        run_url: the page of the run.
        open_s: from starting the command until all was built, with a warm cache.
        open_cpu_s: what that used of the cores, which depends less on what else the machine did.
        cold: the same with an empty cache, and the most memory that it took; told by whoever built it.
    """

    def __init__(self, args: argparse.Namespace) -> None:
        num_rows = int(args.rows or (QUICK_ROWS if args.quick else NUM_ROWS))
        args.dir.mkdir(parents=True, exist_ok=True)
        self._trace = big_trace(args.dir, num_rows)
        self._cache = args.dir / f"{self._trace.name}.cache"
        told = args.dir / f"{self._trace.name}.cold.json"
        if not (told.exists() and self._cache.exists()):
            print("building what the page is drawn from, once", file=sys.stderr, flush=True)
            seconds = self._start(BUILD_S)
            told.write_text(json.dumps({"s": round(seconds, 1), "rss_mb": self._peak_mb()}))
            self._stop()
        self.cold: dict[str, Any] = json.loads(told.read_text())
        self.open_s = self._start(OPEN_S)
        self.open_cpu_s = self._cpu_s()

    def __enter__(self) -> Replayed:
        return self

    def __exit__(self, *_: object) -> None:
        self._stop()

    def get(self, path: str) -> Any:
        """The JSON that a route of the run answers."""
        answer = httpx.get(f"{self._api}/{path}", timeout=OPEN_S)
        answer.raise_for_status()
        return answer.json()

    def _start(self, within_s: float) -> float:
        began = time.monotonic()
        words = ["replay", str(self._trace), "--port", "0", "--no-open", "--json"]
        self._process = subprocess.Popen(
            [sys.executable, "-c", _MAIN, *words],
            env=os.environ | {"CASCADE_CACHE": str(self._cache)},
            stdout=subprocess.PIPE,
        )
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise Failed("cascade replay did not start")
        ready = msgspec.json.decode(line)
        self.run_url = ready["url"]
        base = self.run_url.partition("/dash/")[0]
        self._api = f"{base}/v1/runs/{ready['run_id']}"
        try:
            until(self._is_built, within_s, "opening the trace")
        except Failed:
            self._stop()
            raise
        return time.monotonic() - began

    def _is_built(self) -> bool:
        pulse = self.get("pulse")
        if not pulse["is_told"] or pulse["building"] is not None:
            httpx.get(f"{self._api}/tile?a=0&b=1000000&w=1&lanes=waited", timeout=OPEN_S)
            return False
        return True

    def _peak_mb(self) -> int:
        status = Path(f"/proc/{self._process.pid}/status").read_text()
        kb = next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM"))
        return int(kb) // 1024

    def _cpu_s(self) -> float:
        fields = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")  # utime, stime

    def _stop(self) -> None:
        self._process.terminate()
        self._process.wait(30)
        assert self._process.stdout is not None
        self._process.stdout.close()

    def notes(self) -> list[str]:
        """What opening it cost, in sentences."""
        return [
            f"cold: {self.cold['s']} s from starting cascade replay until everything was built, with "
            f"{self.cold['rss_mb']} MB at most; kept for the next opening",
            f"warm: {self.open_s:.1f} s from starting cascade replay until everything was there, "
            f"{self.open_cpu_s:.1f} s of them CPU; one start, and longer the first time after an "
            "installation, when compiled code is made, or when the files are not in memory",
        ]
