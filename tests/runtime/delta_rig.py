"""Authors at both ends of the channel, in this process or in one of their own; all on loopback."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

from cascade_runtime.delivery import Step
from cascade_runtime.rank.deltas import Deltas
from cascade_runtime.vocabulary.identity import Actor

ROOT = Path(__file__).parents[2]
SCRIPT = Path(__file__).parent / "scripts" / "delta_peer.py"
TOKEN = b"a token of this run"
DEADLINE_S = 60.0


class Author:
    """One end in this process, with a sum whose bytes say how many steps are in it."""

    def __init__(self, rank, num_bytes=100_000, **more):
        self.actor = Actor(rank)
        self.own = bytearray(os.urandom(num_bytes))
        self.upto = 0
        self.traffic = []
        self.stride = more.get("stride", 1)
        more.setdefault("token", TOKEN)
        self.deltas = Deltas(
            self.actor,
            more.pop("epoch", 1),
            more.pop("token"),
            num_bytes,
            lambda: memoryview(self.own),
            on_message=self.traffic.append,
            **more,
        )

    def step(self, deps=(), needs=()):
        self.upto += self.stride
        self.own[:8] = self.upto.to_bytes(8, "little")
        self.deltas.stepped(Step(self.upto, list(deps)), list(needs))

    def fold_all(self):
        """Fold what has come; (rank, upto, bytes) of each."""
        found = []
        for snapshot in self.deltas.newest:
            _, data = self.deltas.take(snapshot.origin)
            found.append((snapshot.origin.rank, snapshot.upto, bytes(data)))
            self.deltas.folded(snapshot.origin, snapshot.upto, data)
        return found


def connect(*authors):
    for author in authors:
        author.deltas.connect({a.actor: a.deltas.address for a in authors if a is not author})


def until(condition, *authors):
    """Pump all of them until it holds."""
    end = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < end, "it did not come about"
        for author in authors:
            author.deltas.pump()
        if not condition():
            select.select([fd for a in authors for fd in a.deltas.fds], [], [], 0.01)


class Process:
    """One end in a process of its own, which folds whatever comes."""

    def __init__(self, rank, num_bytes):
        self.actor = Actor(rank)
        self.process = subprocess.Popen(
            [sys.executable, str(SCRIPT), str(rank), str(num_bytes), TOKEN.decode()],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )
        os.set_blocking(self.process.stdout.fileno(), False)
        self._rest = b""
        self.lines = []
        while not self.lines:
            select.select([self.process.stdout], [], [], DEADLINE_S)
            self.look()
        self.address = self.lines.pop(0)[0]

    def look(self):
        """What it has said since."""
        try:
            data = os.read(self.process.stdout.fileno(), 1 << 16)
        except BlockingIOError:
            return self.lines
        *whole, self._rest = (self._rest + data).split(b"\n")
        self.lines += [line.decode().split() for line in whole]
        return self.lines

    def say(self, *words):
        self.process.stdin.write(" ".join(map(str, words)).encode() + b"\n")
        self.process.stdin.flush()

    def stop(self):
        os.kill(self.process.pid, signal.SIGSTOP)
        state = Path(f"/proc/{self.process.pid}/stat")
        end = time.monotonic() + DEADLINE_S
        while state.read_text().rpartition(")")[2].split()[0] != "T":
            assert time.monotonic() < end

    def go_on(self):
        os.kill(self.process.pid, signal.SIGCONT)

    def end(self):
        self.process.kill()
        self.process.wait(DEADLINE_S)
        self.process.stdin.close()
        self.process.stdout.close()
