"""Real processes: how they ended, whoever started them."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from cascade_runtime.agent import rank_process
from cascade_runtime.agent.config import JobConfig
from cascade_runtime.agent.proc_stat import Look, look_at
from cascade_runtime.agent.rank_process import (
    RankProcess,
    Spawner,
    describe_status,
    rank_environment,
)
from cascade_runtime.agent.stopped_ranks import StoppedRanks
from cascade_runtime.vocabulary.identity import Actor
from tests.runtime.lone_agent import ME, LoneAgent

pytestmark = pytest.mark.timeout(60)
RANK = Actor(1)


def config_of(folder: Path, **changes: Any) -> JobConfig:
    told = {
        "run_id": "run",
        "name": "job",
        "num_ranks": 4,
        "num_hosts": 2,
        "mode": "enforce",
        "policy": "default",
        "trace_dir": str(folder / "trace"),
        "run_dir": str(folder),
        "host": "here",
        "command": ["script.py"],
        "master_port": 1,
    }
    return JobConfig(**(told | changes))


@pytest.fixture
def config(tmp_path: Path) -> JobConfig:
    return config_of(tmp_path)


def watched(process: RankProcess, then: Callable[[], None] = lambda: None) -> int:
    """Its status, told by ``watch``; ``then`` runs once it is being watched."""

    async def main() -> None:
        ended: asyncio.Future[RankProcess] = asyncio.get_running_loop().create_future()
        process.watch(ended.set_result)
        then()
        assert await asyncio.wait_for(ended, 90) is process

    asyncio.run(main())
    assert process.status is not None
    return process.status


def child(config: JobConfig, code: str) -> RankProcess:
    started = subprocess.Popen([sys.executable, "-S", "-c", code])
    return RankProcess(RANK, started.pid, started, Spawner(config, 0))


@pytest.fixture
def stranger() -> Iterator[int]:
    """A process that is not our child, and that nobody will tell us about."""
    command = ["sh", "-c", "sleep 600 >/dev/null 2>&1 & echo $!"]
    pid = int(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)
    yield pid
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return


# ---- children -------------------------------------------------------------------------------------


@pytest.mark.parametrize("code", [0, 3])
def test_the_exit_code_of_a_child(config: JobConfig, code: int) -> None:
    assert watched(child(config, f"raise SystemExit({code})")) == code


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_the_signal_that_ended_a_child(config: JobConfig, number: signal.Signals) -> None:
    process = child(config, "import time; time.sleep(600)")
    assert process.status is None
    assert watched(process, lambda: process.signal(number)) == -number
    process.signal(signal.SIGKILL)  # long gone: no error, and nobody else is hit


def test_a_child_that_ended_before_it_was_watched(config: JobConfig) -> None:
    process = child(config, "raise SystemExit(4)")
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert watched(process) == 4


def test_a_process_is_watched_as_soon_as_there_is_a_descriptor(
    config: JobConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, failures = os.pidfd_open, [OSError(errno.EMFILE, "Too many open files")] * 2

    def pidfd_open(pid: int) -> int:
        if failures:
            raise failures.pop()
        return real(pid)

    monkeypatch.setattr(os, "pidfd_open", pidfd_open)
    assert watched(child(config, "raise SystemExit(3)")) == 3
    assert failures == []


# ---- processes that nobody has waited for ---------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "status"),
    [
        ("raise SystemExit(3)", 3),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", -signal.SIGKILL),
        ("import os, signal; os.kill(os.getpid(), signal.SIGABRT)", -signal.SIGABRT),
        ("", None),
    ],
)
def test_how_a_process_failed_is_known_before_its_parent_asks(
    code: str, status: int | None
) -> None:
    started = subprocess.Popen([sys.executable, "-S", "-c", code])
    os.waitid(os.P_PID, started.pid, os.WEXITED | os.WNOWAIT)
    assert look_at(started.pid) == Look("Z", status)
    started.wait()
    assert look_at(started.pid) is None
    assert look_at(os.getpid()) == Look("R", None), "it runs"


def test_a_death_waits_for_no_word_of_its_parent(
    config: JobConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its parent, here this test, waits for it when it comes round to it."""
    monkeypatch.setattr(rank_process, "STATUS_PATIENCE_S", 3600.0)
    started = subprocess.Popen([sys.executable, "-S", "-c", "import time; time.sleep(600)"])
    process = Spawner(config, 0).adopt(RANK, started.pid)
    assert watched(process, lambda: process.signal(signal.SIGKILL)) == -signal.SIGKILL
    started.wait()


def test_a_death_that_was_seen_coming_is_told_once_and_its_process_is_waited_for(
    config: JobConfig,
) -> None:
    told: list[int | None] = []
    process = child(config, "import time; time.sleep(600)")
    process.fails(3)
    assert process.status is None, "nobody watches it yet"

    async def main() -> None:
        process.watch(lambda ended: told.append(ended.status))
        process.fails(-signal.SIGKILL)
        assert told == [-signal.SIGKILL] and process.is_going
        process.fails(3)
        os.kill(process.pid, signal.SIGTERM)
        loop, gone = asyncio.get_running_loop(), asyncio.Event()

        def look() -> None:
            if process.is_going:
                loop.call_later(0.001, look)
            else:
                gone.set()

        look()
        await asyncio.wait_for(gone.wait(), 60)

    asyncio.run(main())
    assert told == [process.status] == [-signal.SIGKILL]
    assert look_at(process.pid) is None, "no zombie is left"


def test_an_agent_s_look_finds_a_process_that_is_on_its_way_out(tmp_path: Path) -> None:
    agent = LoneAgent(tmp_path)
    started = subprocess.Popen([sys.executable, "-S", "-c", "raise SystemExit(3)"])
    os.waitid(os.P_PID, started.pid, os.WEXITED | os.WNOWAIT)
    told: list[int | None] = []
    process = agent.process(ME, started.pid)
    process._on_exit = lambda ended: told.append(ended.status)  # no pidfd to be quicker

    async def look(path: Path) -> None:
        stopped = StoppedRanks(agent.host, agent.newcomers)
        stopped.look()
        stopped.look()
        agent.host.finished.set()  # it looks no more

    agent.run(look)
    started.wait()
    assert told == [3] and process.is_going


# ---- processes of somebody else -------------------------------------------------------------------


def test_an_adopted_process_that_leaves_a_note(config: JobConfig, stranger: int) -> None:
    process = Spawner(config, 0).adopt(RANK, stranger)

    def end() -> None:
        config.exit_path(RANK).write_text("6")
        process.signal(signal.SIGKILL)

    assert watched(process, end) == 6


def test_a_note_that_comes_a_moment_later(
    config: JobConfig, stranger: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rank_process, "look_at", lambda pid: None)
    spawner = Spawner(config, 0)
    asked = []
    real = spawner.status_of

    def status_of(process: RankProcess) -> int | None:
        asked.append(process)
        if len(asked) == 2:
            config.exit_path(RANK).write_text("0")
        return real(process)

    monkeypatch.setattr(spawner, "status_of", status_of)
    process = spawner.adopt(RANK, stranger)
    assert watched(process, lambda: process.signal(signal.SIGKILL)) == 0
    assert len(asked) == 2


def test_when_nobody_can_tell_it_was_killed(
    config: JobConfig, stranger: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rank_process, "look_at", lambda pid: None)  # somebody was quicker
    process = Spawner(config, 0).adopt(RANK, stranger)
    assert watched(process, lambda: process.signal(signal.SIGTERM)) == -signal.SIGKILL


def test_an_adopted_process_that_is_gone_already(config: JobConfig) -> None:
    gone = subprocess.Popen([sys.executable, "-S", "-c", ""])
    gone.wait()
    config.exit_path(RANK).write_text("9")
    process = Spawner(config, 0).adopt(RANK, gone.pid)
    process.signal(signal.SIGTERM)
    assert watched(process) == 9


def test_a_note_that_says_nothing_is_none(config: JobConfig) -> None:
    spawner = Spawner(config, 0)
    process = spawner.adopt(RANK, os.getpid())
    assert spawner.status_of(process) is None
    config.exit_path(RANK).write_text("")
    assert spawner.status_of(process) is None
    config.exit_path(RANK).write_text("-9")
    assert spawner.status_of(process) == -9
    assert spawner.status_of(spawner.adopt(Actor(1, 1), os.getpid())) is None


# ---- from a zygote --------------------------------------------------------------------------------

SCRIPT = """
import os, sys, time
from pathlib import Path
names = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "CASCADE_AGENT", "CASCADE_INCARNATION", "MINE")
Path(sys.argv[1]).write_text(" ".join(os.environ[name] for name in names) + f" {os.getcwd()}")
time.sleep(float(sys.argv[2]))
raise SystemExit(int(sys.argv[3]))
"""


def scripted(folder: Path, zygote: Path | None, *arguments: object) -> tuple[JobConfig, Path]:
    script, told = folder / "script.py", folder / "told"
    script.write_text(SCRIPT)
    command = [str(script), str(told), *map(str, arguments)]
    chosen = str(zygote) if zygote else None
    return config_of(folder, command=command, env={"MINE": "yes"}, zygote=chosen), told


@contextlib.contextmanager
def connected(config: JobConfig, index: int) -> Iterator[Spawner]:
    spawner = Spawner(config, index)
    yield spawner
    assert spawner._client is not None
    spawner._client._socket.close()


def test_a_rank_from_the_zygote_ends_with_its_own_code(tmp_path: Path, zygote: Path) -> None:
    config, told = scripted(tmp_path, zygote, 0, 5)
    with connected(config, 1) as spawner:
        assert watched(spawner.spawn(Actor(3, 2))) == 5
    assert told.read_text() == f"3 1 4 1 2 yes {Path.cwd()}"
    assert config.exit_path(Actor(3, 2)).read_text() == "5"


def test_a_rank_from_the_zygote_that_is_killed(tmp_path: Path, zygote: Path) -> None:
    config, _ = scripted(tmp_path, zygote, 600, 5)
    with connected(config, 0) as spawner:
        process, other = spawner.spawn(Actor(0)), spawner.spawn(Actor(1))
        assert process.pid != other.pid
        assert watched(process, lambda: process.signal(signal.SIGKILL)) == -signal.SIGKILL
        assert watched(other, lambda: other.signal(signal.SIGTERM)) == -signal.SIGTERM
    assert not config.exit_path(Actor(0)).exists()


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_a_rank_started_afresh(tmp_path: Path) -> None:
    config, told = scripted(tmp_path, None, 0, 5)
    process = Spawner(config, 0).spawn(Actor(1))
    assert watched(process) == 5
    assert told.read_text() == f"1 1 4 0 0 yes {Path.cwd()}"


# ---- words ----------------------------------------------------------------------------------------


def test_the_environment_is_torchrun_s_and_ours_over_the_launcher_s(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KEPT", "as it was")
    monkeypatch.setenv("RANK", "77")
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    config = config_of(tmp_path, env={"MINE": "yes", "WORLD_SIZE": "wrong"})
    told = rank_environment(config, 1, Actor(3, 1))
    assert {name: told[name] for name in ("RANK", "LOCAL_RANK", "WORLD_SIZE", "GROUP_RANK")} == {
        "RANK": "3",
        "LOCAL_RANK": "1",
        "WORLD_SIZE": "4",
        "GROUP_RANK": "1",
    }
    assert (told["LOCAL_WORLD_SIZE"], told["MASTER_ADDR"], told["MASTER_PORT"]) == (
        "2",
        "127.0.0.1",
        "1",
    )
    assert (told["CASCADE_RUN_DIR"], told["CASCADE_INCARNATION"]) == (str(tmp_path), "1")
    assert (told["KEPT"], told["MINE"], told["OMP_NUM_THREADS"]) == ("as it was", "yes", "1")
    monkeypatch.setenv("OMP_NUM_THREADS", "5")
    assert rank_environment(config, 1, Actor(3))["OMP_NUM_THREADS"] == "5"


@pytest.mark.parametrize(
    ("status", "words"),
    [(0, "exit code 0"), (3, "exit code 3"), (-9, "SIGKILL"), (-15, "SIGTERM"), (-99, "signal 99")],
)
def test_a_status_in_words(status: int, words: str) -> None:
    assert describe_status(status) == words
