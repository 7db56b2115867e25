"""kill -9 of whoever ships, in the middle of it, again and again: nothing is lost."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from cascade_runtime.recorder import Recorder
from cascade_runtime.vocabulary.identity import Actor
from tests.collector.traces import RUN
from tests.runtime.shipping_server import FakeCollector, Handler

pytestmark = pytest.mark.chaos

ACTORS = (Actor(0), Actor(1), Actor(2))
ROWS = 9_000

# What the agent's thread does, in a process that can be killed without a job around it.
SHIP = """
import random, sys, time
from pathlib import Path
from cascade_runtime.agent.shipping.courier import Courier
from cascade_runtime.agent.shipping.cursor import Cursor
from cascade_runtime.agent.shipping.link import Link
from cascade_runtime.agent.shipping.spool import HostSpool

folder, url, run = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
spool = HostSpool(folder / "spool", run, [0, 1, 2], Cursor(folder / "cursor"))
courier = Courier(
    Link(url, None), spool, run, folder / "trace.json", print, time.monotonic, random.random
)
courier.finish_by(time.monotonic() + 60)
while (delay := courier.turn()) is not None:
    time.sleep(delay)
courier.close()
"""


def ship(folder: Path, url: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", SHIP, str(folder), url, RUN])


def test_killed_again_and_again_it_loses_nothing(tmp_path: Path) -> None:
    for actor in ACTORS:
        writer = Recorder(tmp_path / "spool", RUN, actor, segment_bytes=16_384)
        for number in range(ROWS // 3):
            writer.done(writer.entered("c", number, "barrier", "", 0, "none"), 7)
        writer.close()
    with FakeCollector() as collector:
        process: Any = None

        def kills_after_storing(handler: Handler, records: list[Any]) -> bool:
            os.kill(process.pid, signal.SIGKILL)
            collector.store(records)
            return False  # and answers, to nobody

        def kills_before_storing(handler: Handler, records: list[Any]) -> bool:
            os.kill(process.pid, signal.SIGKILL)
            handler.close_connection = True
            return True

        killed = 0
        for kill in (kills_after_storing, kills_before_storing) * 3:
            collector.faults.extend([lambda *ignored: False, kill])  # one batch gets over first
            process = ship(tmp_path, collector.url)
            killed += process.wait(timeout=60) == -signal.SIGKILL
            collector.faults.clear()
        assert killed >= 4
        assert sum(len(rows) for rows in collector.rows.values()) > 0
        process = ship(tmp_path, collector.url)
        assert process.wait(timeout=60) == 0
        for actor in ACTORS:
            assert sorted(collector.rows[actor]) == list(range(ROWS // 3))
        completed = {(d.rank, d.seq) for d in collector.dones}
        assert len(completed) == ROWS
    assert not (tmp_path / "spool").exists()
