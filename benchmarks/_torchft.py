"""Runs four torchft replicas with a lighthouse of a given heartbeat time-out, and kills one or none."""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

JOB = Path(__file__).with_name("_torchft_job.py")
POLL_S = 0.0005
PATIENCE_S = 90.0
SETTLED = 20
"""Steps that replica 0 has committed with everybody before one is killed: some join late."""

JOIN_MS, TICK_MS = 100, 100
"""The lighthouse's join time-out at torchft's own example; its tick at the default."""


class Line(NamedTuple):
    """A step of one replica, after its optimizer."""

    at_ns: int
    committed: int
    members: int


class Failed(Exception):
    """The peer did not run."""


def run(
    python: str, *, replicas: int, steps: int, heartbeat_ms: int, victim: int | None, after: int
) -> tuple[int, dict[int, list[Line]]]:
    """When the victim was killed (CLOCK_MONOTONIC ns; 0: nobody was), and each replica's steps.

    Raises:
        Failed: it never trained, or hung, or ended before the kill.
    """
    folder = Path(tempfile.mkdtemp(prefix="torchft-"))
    processes: list[subprocess.Popen[bytes]] = []
    address = f"http://127.0.0.1:{free_port()}"
    light = [str(Path(python).with_name("torchft_lighthouse")), "--bind", address[7:]]
    light += ["--min_replicas", "2", "--join_timeout_ms", str(JOIN_MS)]
    light += ["--quorum_tick_ms", str(TICK_MS), "--heartbeat_timeout_ms", str(heartbeat_ms)]
    try:
        with (folder / "output").open("wb") as output:
            processes.append(subprocess.Popen(light, stdout=output, stderr=output))
            for index in range(replicas):
                command = [python, str(JOB), "--steps", str(steps), "--replica", f"r{index}"]
                command += ["--replicas", str(replicas), "--log", str(folder / f"log-{index}")]
                env = dict(os.environ) | {"OMP_NUM_THREADS": "1", "TORCHFT_LIGHTHOUSE": address}
                env.pop("PYTHONPATH", None)
                processes.append(subprocess.Popen(command, env=env, stdout=output, stderr=output))
            at_ns = _watch(folder, processes[1:], victim, after)
        logs = {i: _lines(folder / f"log-{i}") for i in range(replicas)}
        if not logs[0] or (victim is not None and not at_ns):
            raise Failed((folder / "output").read_text(errors="replace")[-2000:])
        return at_ns, logs
    finally:
        for process in processes:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            process.wait()
        shutil.rmtree(folder, ignore_errors=True)


def _watch(
    folder: Path, processes: list[subprocess.Popen[bytes]], victim: int | None, after: int
) -> int:
    """Kills the victim once replica 0 has committed ``after`` steps with everybody; waits for the end."""
    at_ns = 0
    end = time.monotonic() + PATIENCE_S
    while any(p.poll() is None for i, p in enumerate(processes) if i != victim):
        if time.monotonic() > end:
            raise Failed("torchft hung: " + (folder / "output").read_text(errors="replace")[-2000:])
        lines = _lines(folder / "log-0") if victim is not None and not at_ns else []
        whole = [line.members == len(processes) for line in lines]
        if (
            lines
            and lines[-1].committed >= after
            and len(whole) > SETTLED
            and all(whole[-SETTLED:])
        ):
            assert victim is not None
            at_ns = time.monotonic_ns()
            processes[victim].send_signal(signal.SIGKILL)
        time.sleep(POLL_S if not at_ns else 0.05)
    return at_ns


def _lines(path: Path) -> list[Line]:
    try:
        text = path.read_text()
    except OSError:
        return []
    return [Line(*map(int, found)) for found in re.findall(r"^(\d+) (\d+) (\d+)$", text, re.M)]


def free_port() -> int:
    """A port that nobody has just now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def stall_ms(at_ns: int, logs: dict[int, list[Line]], victim: int) -> float:
    """From the kill to the slowest survivor's first committed step without the victim, less a median step."""
    stalls = []
    for index, lines in logs.items():
        if index == victim:
            continue
        before = [line for line in lines if line.at_ns < at_ns]
        steps = sorted(b.at_ns - a.at_ns for a, b in itertools.pairwise(before[5:]))
        if not steps:
            raise Failed(f"replica {index} had hardly begun when the victim was killed")
        committed = before[-1].committed
        first = next(
            (
                x
                for x in lines
                if x.at_ns > at_ns and x.committed > committed and x.members == len(logs) - 1
            ),
            None,
        )
        if first is None:
            raise Failed(f"replica {index} never went on without the victim")
        stalls.append((first.at_ns - at_ns - steps[len(steps) // 2]) / 1e6)
    return max(stalls)
