"""The agent's socket: what others may say there, and what of it ends a connection and never the agent."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from cascade_runtime.agent.config import save_config
from cascade_runtime.agent.journal import Journal, JournalLost
from cascade_runtime.agent.protocol import (
    LENGTH,
    MAX_FRAME,
    Acked,
    AddRank,
    AgentHello,
    Ballot,
    Get,
    Halted,
    Hello,
    Joining,
    Level,
    Lifeline,
    Message,
    NotWanted,
    Query,
    RankAdded,
    Serve,
    pack_frame,
    unpack_frame,
)
from cascade_runtime.agent.rank_process import runs_in
from cascade_runtime.vocabulary.identity import Actor
from tests.agent.facts import at
from tests.runtime.lone_agent import DEADLINE_S, ME, LoneAgent

OTHER, AGENT = Actor(1), Actor(4)


async def said(path: Path, *frames: bytes | Message) -> list[Message]:
    """What the agent answers to these, until it ends the connection (or we have said all)."""
    reader, writer = await asyncio.open_unix_connection(str(path))
    for frame in frames:
        writer.write(frame if isinstance(frame, bytes) else pack_frame(frame))
    writer.write_eof()
    data = await reader.read()
    writer.close()
    told = []
    while data:
        (length,) = LENGTH.unpack_from(data)
        told.append(unpack_frame(data[LENGTH.size : LENGTH.size + length]).body)
        data = data[LENGTH.size + length :]
    return told


def framed(payload: bytes) -> bytes:
    return LENGTH.pack(len(payload)) + payload


HELLO = Hello(ME, os.getpid(), 0)
DEEP = b"\x92\x82\xa4type\xa4beat\xa1x" + b"\x91" * 60_000 + b"\xc0\xc0"
HOSTILE: dict[str, list[bytes | Message]] = {
    "nothing": [],
    "half a length": [b"\x01"],
    "half a frame": [pack_frame(HELLO)[:-2]],
    "too long": [LENGTH.pack(MAX_FRAME + 1)],
    "no MessagePack": [framed(b"\xc1\xc1")],
    "another form": [framed(msgspec.msgpack.encode({"type": "hello"}))],
    "nested without end": [framed(DEEP)],
    "garbage after a hello": [HELLO, framed(b"\xc1")],
    "no hello": [Get(0, "key")],
    "an agent that is none": [AgentHello(7, Actor(9), 0), Query(Ballot(1, 9), 1, True)],
    "an agent below nought": [AgentHello(-1, Actor(9), 0)],
    "this agent itself": [AgentHello(0, AGENT, 0)],
    "a rank below nought": [Hello(Actor(-1), os.getpid(), 0), Halted(at(1))],
    "a rank of no host": [Hello(Actor(99), 1, 0), Joining(Actor(99), "/nowhere", 0)],
    "a lifeline of nobody": [Lifeline(Actor(-5)), HELLO],
    "what ranks do not say": [HELLO, Serve(ME, OTHER, "x"), AgentHello(0, AGENT, 1)],
    "a walk of nobody": [HELLO, Acked(9, Ballot(9, 9)), Level(ME, OTHER, 5, 5)],
    "who joins nothing": [HELLO, Joining(Actor(77, 3), "/nowhere", -1)],
    "to be added below nought": [AddRank(-1)],
    "to be added far above": [AddRank(1 << 62)],
}  # fmt: skip


@pytest.mark.parametrize("has_begun", [True, False], ids=["running", "before the first view"])
@pytest.mark.parametrize("name", HOSTILE)
def test_whatever_is_said_ends_a_connection_at_most(
    tmp_path: Path, name: str, has_begun: bool
) -> None:
    agent = LoneAgent(tmp_path, has_begun=has_begun)

    async def test(path: Path) -> None:
        await said(path, *HOSTILE[name])
        answer = (await said(path, HELLO))[0]
        assert isinstance(answer, AgentHello), "it goes on"

    agent.run(test)
    assert agent.faults == []


def test_who_is_added_hears_why_not(tmp_path: Path) -> None:
    agent = LoneAgent(tmp_path)

    async def test(path: Path) -> None:
        (answer,) = await said(path, AddRank((1 << 62) + 1))
        assert isinstance(answer, RankAdded)
        assert "the next new rank of host 0 is 5" in str(answer.refused)

    agent.run(test)


# ---- processes ------------------------------------------------------------------------------------


def test_a_process_that_the_agent_knows_nothing_of_is_sent_away(tmp_path: Path) -> None:
    """Its agent ended between starting it and writing so down; it must not be a member unwatched."""
    agent = LoneAgent(tmp_path)

    async def test(path: Path) -> None:
        for actor in (Actor(0, 1), Actor(2), Actor(5)):
            (answer,) = await said(path, Hello(actor, os.getpid(), -1))
            assert isinstance(answer, NotWanted)
            assert (answer.code, "knows nothing" in answer.why) == (75, True)
        assert agent.host.attached == set()

    agent.run(test)


def test_two_processes_are_not_one_rank(tmp_path: Path) -> None:
    agent = LoneAgent(tmp_path)
    agent.process(ME, pid=1 << 23)  # not this one

    async def test(path: Path) -> None:
        (answer,) = await said(path, Hello(ME, 1, 0))
        assert isinstance(answer, NotWanted)

    agent.run(test)


def test_who_is_fenced_is_told_so(tmp_path: Path) -> None:
    agent = LoneAgent(tmp_path)
    agent.host.fenced.add(ME)

    async def test(path: Path) -> None:
        (answer,) = await said(path, HELLO)
        assert answer == NotWanted("was stopped and is fenced", 75)

    agent.run(test)


def test_a_script_may_start_the_process_that_trains() -> None:
    code = "import subprocess, sys; subprocess.run([sys.executable, '-S', '-c', sys.argv[1]])"
    grandchild = "import os; print(os.getpid(), flush=True); input()"
    child = subprocess.Popen(
        [sys.executable, "-S", "-c", code, grandchild],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert child.stdout is not None
        trains = int(child.stdout.readline())
        assert trains != child.pid
        assert runs_in(trains, child.pid)
        assert runs_in(child.pid, child.pid)
        assert not runs_in(child.pid, trains)
        assert not runs_in(1 << 40, child.pid)
        assert not runs_in(0, child.pid)
    finally:
        child.communicate("\n", timeout=DEADLINE_S)
    assert not runs_in(trains, child.pid)


# ---- the journal ----------------------------------------------------------------------------------


def test_an_agent_that_cannot_remember_ends(tmp_path: Path) -> None:
    """A promise that is not in the journal would be broken by the agent's next life."""
    agent = LoneAgent(tmp_path)
    peer: Any = SimpleNamespace(up=False)
    agent.host.post.peers[1] = peer
    agent.host.journal._fd = os.open("/dev/full", os.O_RDWR)

    async def test(path: Path) -> None:
        await said(path, AgentHello(1, AGENT, 0), Query(Ballot(1, 1), 1, True))

    agent.run(test)
    (fault,) = agent.faults
    assert isinstance(fault["exception"], JournalLost)
    assert "No space left" in str(fault["exception"])


def test_an_agent_that_cannot_begin_its_journal_says_so_in_a_line(tmp_path: Path) -> None:
    config = LoneAgent(tmp_path).config
    save_config(config, tmp_path / "job.json")
    config.journal_path(0).unlink()
    config.journal_path(0).symlink_to("/dev/full")
    ran = subprocess.run(
        [sys.executable, "-m", "cascade_runtime.agent", tmp_path / "job.json", "0", str(os.getpid())],
        capture_output=True, text=True, timeout=DEADLINE_S,
    )  # fmt: skip
    assert ran.returncode == 70
    (line,) = ran.stderr.splitlines()
    assert line.startswith("cascade: an agent ends, because its journal cannot be written (")


def test_a_record_that_fits_in_part_only_is_not_gone_on_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = Journal(tmp_path / "journal")
    journal.append("promised", Ballot(3, 0))
    whole = os.pwrite
    monkeypatch.setattr(os, "pwrite", lambda fd, data, at: whole(fd, data[:-1], at))
    with pytest.raises(JournalLost, match="bytes"):
        journal.append("promised", Ballot(4, 0))
    monkeypatch.undo()
    journal.close()
    again = Journal(tmp_path / "journal")
    assert again.memory.promised == Ballot(3, 0)
    again.close()
