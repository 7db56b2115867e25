"""Stopped processes, real ones: seen, fenced, and nobody else."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from cascade_runtime.agent.fencing import StopWatch, put_up
from cascade_runtime.agent.proc_stat import process_state
from cascade_runtime.agent.protocol import LENGTH, Lifeline, unpack_frame
from cascade_runtime.progress import WAITING, ProgressWord
from cascade_runtime.rank import lifeline as lifeline_module
from cascade_runtime.rank.lifeline import Lifelines
from cascade_runtime.rank.zombie import EXIT_LEFT_BEHIND
from cascade_runtime.vocabulary.identity import Actor
from cascade_runtime.vocabulary.policy import FrozenLimits

ONE, TWO = Actor(1), Actor(2)
DEADLINE_S = 20.0
pytestmark = pytest.mark.timeout(60)


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen([sys.executable, "-S", "-c", "import time; time.sleep(600)"])
    yield process
    process.kill()
    process.wait()


def until(what) -> None:
    end = time.monotonic() + DEADLINE_S
    while not what():
        assert time.monotonic() < end, "it never came"
        os.sched_yield()


def test_states_of_real_processes(sleeper) -> None:
    assert process_state(os.getpid()) == "R"
    until(lambda: process_state(sleeper.pid) == "S")
    os.kill(sleeper.pid, signal.SIGSTOP)
    until(lambda: process_state(sleeper.pid) == "T")
    os.kill(sleeper.pid, signal.SIGCONT)
    until(lambda: process_state(sleeper.pid) == "S")
    sleeper.kill()
    until(lambda: process_state(sleeper.pid) == "Z")
    sleeper.wait()
    assert process_state(sleeper.pid) is None


def states(**processes: int) -> list[tuple[Actor, str]]:
    """As an agent looks at them."""
    named = {"one": ONE, "two": TWO}
    looks = [(named[name], process_state(pid)) for name, pid in processes.items()]
    return [(actor, state) for actor, state in looks if state is not None]


def test_the_watch_tells_who_stopped_and_who_runs_again(sleeper) -> None:
    watch = StopWatch(FrozenLimits(dwell_s=0.08, samples=3))
    both = {"one": sleeper.pid, "two": os.getpid()}
    assert [v for i in range(10) for v in watch.look(i * 0.02, states(**both))] == []
    os.kill(sleeper.pid, signal.SIGSTOP)
    until(lambda: process_state(sleeper.pid) == "T")
    (stopped,) = [v for i in range(10, 20) for v in watch.look(i * 0.02, states(**both))]
    assert (stopped.subject, stopped.signal, stopped.cleared) == (ONE, "stopped", False)
    assert list(watch.standing) == [ONE]
    os.kill(sleeper.pid, signal.SIGCONT)
    until(lambda: process_state(sleeper.pid) == "S")
    (running,) = [v for i in range(20, 30) for v in watch.look(i * 0.02, states(**both))]
    assert (running.subject, running.cleared) == (ONE, True)
    assert watch.standing == {}


def test_a_dead_process_is_not_a_stopped_one(sleeper) -> None:
    watch = StopWatch(FrozenLimits(dwell_s=0.08, samples=3))
    sleeper.kill()
    until(lambda: process_state(sleeper.pid) == "Z")
    assert [v for i in range(20) for v in watch.look(i * 0.02, states(one=sleeper.pid))] == []


def test_fencing_gives_what_may_have_been_done_and_is_final(tmp_path: Path) -> None:
    word = ProgressWord(tmp_path / "word")
    word.write(4, 20, WAITING)
    word.claim(5)
    assert put_up(tmp_path / "word", 7) == (5, 20)
    assert word.fenced
    word.write(5, 24, WAITING)
    assert put_up(tmp_path / "word", 9) == (5, 24)
    with pytest.raises(FileNotFoundError):
        put_up(tmp_path / "nobody", 7)


LEAVES = """
import atexit, signal, sys
from pathlib import Path
from cascade_runtime.progress import ProgressWord
from cascade_runtime.rank.zombie import leave_behind, look_when_continued

atexit.register(lambda: print("saved over the job's checkpoint"))
word = ProgressWord(Path(sys.argv[1]))

def check():
    if word.fenced:
        leave_behind("rank 2 was stopped", Path(sys.argv[2]), lambda: print("closed"))

look_when_continued(check)
print("ready", flush=True)
try:
    while True:
        signal.pause()
finally:
    print("the script goes on")
"""


def test_a_thawed_rank_leaves_at_once_in_a_long_phase_of_its_script_too(tmp_path: Path) -> None:
    word, note = tmp_path / "word", tmp_path / "exit"
    process = subprocess.Popen(
        [sys.executable, "-c", LEAVES, str(word), str(note)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    os.kill(process.pid, signal.SIGSTOP)
    until(lambda: process_state(process.pid) == "T")
    os.kill(process.pid, signal.SIGCONT)  # a short stop: nobody fenced it
    until(lambda: process_state(process.pid) == "S")
    os.kill(process.pid, signal.SIGSTOP)
    until(lambda: process_state(process.pid) == "T")
    put_up(word, time.monotonic_ns())
    os.kill(process.pid, signal.SIGCONT)
    out, err = process.communicate(timeout=DEADLINE_S)
    assert process.returncode == EXIT_LEFT_BEHIND == 75
    assert out == "closed\n"
    (line,) = err.splitlines()
    assert line.startswith("cascade: rank 2 was stopped; the job went on without it")
    assert note.read_text() == "75"


# ---- lifelines ------------------------------------------------------------------------------------


def listening(path: Path) -> socket.socket:
    server = socket.socket(socket.AF_UNIX)
    server.settimeout(DEADLINE_S)
    server.bind(str(path))
    server.listen()
    return server


def test_a_lifeline_says_who_and_then_only_lives(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lifeline_module, "LOOK_S", 0.0)
    path = tmp_path / "s"
    lines = Lifelines([path], ONE)  # nobody there yet
    server = listening(path)
    lines.look()
    one, _ = server.accept()
    data = one.recv(1024)
    assert unpack_frame(data[LENGTH.size :]).body == Lifeline(ONE)
    lines.look()
    one.setblocking(False)
    with pytest.raises(BlockingIOError):
        one.recv(1)
    one.close()  # that agent ended and came back
    until(lambda: lines.look() is None and _accepts(server))
    lines.close()
    server.close()


def _accepts(server: socket.socket) -> bool:
    server.settimeout(0.01)
    try:
        again, _ = server.accept()
    except TimeoutError:
        return False
    again.close()
    return True


def test_a_forked_child_does_not_keep_it_open(tmp_path: Path) -> None:
    path = tmp_path / "s"
    server = listening(path)
    code = """
import os, sys, time
from pathlib import Path
from cascade_runtime.rank.lifeline import Lifelines
from cascade_runtime.vocabulary.identity import Actor
lines = Lifelines([Path(sys.argv[1])], Actor(1))
if os.fork() == 0:
    time.sleep(600)
print(os.getpid(), flush=True)
os._exit(0)
"""
    parent = subprocess.Popen(
        [sys.executable, "-c", code, str(path)], stdout=subprocess.PIPE, start_new_session=True
    )
    try:
        line, _ = server.accept()
        line.settimeout(DEADLINE_S)
        assert line.recv(1024)
        assert line.recv(1) == b"", "its end is seen although its child lives"
        os.killpg(parent.pid, 0)  # the child does
        line.close()
    finally:
        server.close()
        os.killpg(parent.pid, signal.SIGKILL)
        parent.wait()
        assert parent.stdout is not None
        parent.stdout.close()
