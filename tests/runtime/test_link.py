"""The rank's end of the socket, against a server that the test plays itself: no thread, no waiting."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import socket
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cascade_runtime.agent.control_log import ControlLog, control_comm_id
from cascade_runtime.agent.protocol import (
    LENGTH,
    MAX_FRAME,
    AgentHello,
    Ballot,
    Facts,
    Frame,
    Halt,
    Halted,
    Hello,
    Lag,
    Put,
    Round,
    Value,
    pack_frame,
    unpack_frame,
)
from cascade_runtime.rank import link as link_module
from cascade_runtime.rank.lifeline import Lifelines
from cascade_runtime.rank.link import AgentLink, AgentLost, wait_readable
from cascade_runtime.vocabulary.identity import Actor

ME, AGENT = Actor(2, 1), Actor(8)
HALT = Halt(5, False)
HALTED = Halted(Facts(decided=3))
PATIENCE_S = 20.0


class Rows:
    """Stands in for a recorder."""

    run_id = "run"

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []

    def row(self, table: type, **fields: Any) -> int:
        assert table.__name__ == "Messages"
        self.rows.append(fields)
        return len(self.rows) - 1

    def numbers(self, direction: str) -> list[tuple[Actor, int, int]]:
        return [
            (Actor(r["peer"], r["peer_incarnation"]), r["channel_seq"], r["num_bytes"])
            for r in self.rows
            if r["direction"] == direction
        ]


class Server:
    """An agent's listening socket; the test says what it does and when."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.rows = Rows()
        self.control = ControlLog(self.rows)  # type: ignore[arg-type]
        self.connection: socket.socket | None = None
        self.listen()

    def listen(self) -> None:
        self.path.unlink(missing_ok=True)
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(str(self.path))
        self._listener.listen()
        self._listener.settimeout(PATIENCE_S)

    def accept(self) -> Hello:
        """Take a rank's connection and its first frame."""
        if self.connection is not None:
            self.connection.close()
        self.connection, _ = self._listener.accept()
        self.connection.settimeout(PATIENCE_S)
        hello = self.read().body
        assert isinstance(hello, Hello)
        return hello

    def greet(self, actor: Actor = AGENT) -> None:
        self.connection.sendall(pack_frame(AgentHello(0, actor, 4)))

    def tell(self, message: Any) -> None:
        self.connection.sendall(self.control.outgoing(ME, message))

    def read(self) -> Frame:
        head = self._exactly(LENGTH.size)
        frame = unpack_frame(self._exactly(*LENGTH.unpack(head)))
        self.control.incoming(ME, frame.channel_seq, LENGTH.size + LENGTH.unpack(head)[0])
        return frame

    def _exactly(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            more = self.connection.recv(size - len(data))
            assert more, "the rank closed the connection"
            data += more
        return data

    def die(self) -> None:
        self.connection.close()
        self._listener.close()
        self.path.unlink(missing_ok=True)

    def close(self) -> None:
        if self.connection is not None:
            self.connection.close()
        self._listener.close()


@pytest.fixture
def home() -> Iterator[Path]:
    folder = tempfile.mkdtemp(prefix="ct-")  # not tmp_path: a socket's path ends at 107 bytes
    yield Path(folder)
    shutil.rmtree(folder)


@pytest.fixture
def server(home: Path) -> Iterator[Server]:
    server = Server(home / "s")
    yield server
    server.close()


@pytest.fixture
def rows() -> Rows:
    return Rows()


@pytest.fixture
def link(home: Path, rows: Rows) -> Iterator[AgentLink]:
    link = AgentLink(home / "s", ME, ControlLog(rows), patience_s=PATIENCE_S)  # type: ignore[arg-type]
    yield link
    link.close()


def connect(link: AgentLink, server: Server) -> Hello:
    """Dial (again), be accepted and greeted."""
    while link.fd < 0:
        assert link.receive(timeout_s=0.01) is None
    hello = server.accept()
    server.greet()
    while link.agent is None:
        wait_readable([link.fd], PATIENCE_S)
        link.pump()
    return hello


def receive(link: AgentLink) -> Any:
    message = link.receive(timeout_s=PATIENCE_S)
    assert message is not None
    return message


# ---- talking --------------------------------------------------------------------------------------


def test_it_says_who_it_is_and_learns_who_listens(link: AgentLink, server: Server) -> None:
    link.epoch = 3
    assert connect(link, server) == Hello(ME, os.getpid(), 3)
    assert link.agent == AGENT
    assert not link.inbox


def test_messages_arrive_in_order_both_ways(link: AgentLink, server: Server) -> None:
    connect(link, server)
    for number in range(5):
        server.tell(Value(f"k{number}", b"v"))
        link.send(Round(ME, 1, number))
    assert [receive(link).key for _ in range(5)] == [f"k{n}" for n in range(5)]
    assert [server.read().body for _ in range(5)] == [Round(ME, 1, n) for n in range(5)]


def test_a_receive_without_a_message_ends_at_its_time(link: AgentLink, server: Server) -> None:
    connect(link, server)
    began = time.monotonic()
    assert link.receive(timeout_s=0.05) is None
    assert 0.05 <= time.monotonic() - began < PATIENCE_S


def test_both_ends_record_the_same_numbers(link: AgentLink, server: Server, rows: Rows) -> None:
    connect(link, server)
    for _ in range(3):
        link.send(HALTED)
        link.send(Put(1, "k", b"v"))  # moves no consistency state
        server.tell(HALT)
        server.tell(Value("k", None))
    for _ in range(6):
        receive(link)
        server.read()
    mine, theirs = rows.numbers, server.rows.numbers
    sent, received = len(pack_frame(HALTED, 0)), len(pack_frame(HALT, 0))
    assert mine("send") == [(AGENT, n, sent) for n in range(3)]
    assert mine("recv") == [(AGENT, n, received) for n in range(3)]
    assert theirs("recv") == [(ME, n, sent) for n in range(3)]
    assert theirs("send") == [(ME, n, received) for n in range(3)]
    assert {r["comm_id"] for r in rows.rows + server.rows.rows} == {control_comm_id("run")}


# ---- frames ---------------------------------------------------------------------------------------


def test_a_frame_that_comes_in_pieces_is_one_message(link: AgentLink, server: Server) -> None:
    connect(link, server)
    data = pack_frame(HALT, 0) + pack_frame(Value("k", bytes(200_000)), None)
    for first in range(40):
        server.connection.sendall(data[first : first + 1])
        wait_readable([link.fd], PATIENCE_S)
        link.pump()
        assert list(link.inbox) == ([] if first + 1 < len(pack_frame(HALT, 0)) else [HALT])
    server.connection.setblocking(False)
    rest = memoryview(data)[40:]
    while rest:
        with contextlib.suppress(BlockingIOError):
            rest = rest[server.connection.send(rest) :]
        link.pump()
    assert receive(link) == HALT
    assert receive(link) == Value("k", bytes(200_000))


def test_several_frames_in_one_piece_are_several_messages(link: AgentLink, server: Server) -> None:
    connect(link, server)
    server.connection.sendall(b"".join(pack_frame(Halt(n, True)) for n in range(100)))
    assert [receive(link).epoch for _ in range(100)] == list(range(100))


@pytest.mark.parametrize(
    "junk",
    [
        LENGTH.pack(MAX_FRAME + 1),
        LENGTH.pack(3) + b"\xff\xff\xff",
        LENGTH.pack(1) + b"\x01",
        pack_frame(Ballot(1, 1)),
        LENGTH.pack(60_015) + b"\x92\x82\xa4type\xa4beat\xa1x" + b"\x91" * 60_000 + b"\xc0",
    ],
    ids=["oversized", "no MessagePack", "no frame", "unknown message", "nested without end"],
)
def test_what_is_no_frame_ends_the_connection_and_not_the_job(
    link: AgentLink, server: Server, junk: bytes
) -> None:
    connect(link, server)
    server.tell(HALT)
    server.connection.sendall(junk)
    assert receive(link) == HALT
    while link.fd >= 0 and link.agent is not None:
        wait_readable([link.fd], PATIENCE_S)
        link.pump()
    assert link.agent is None
    assert server.connection.recv(1) == b""
    connect(link, server)
    server.tell(HALT)
    assert receive(link) == HALT


def test_half_a_frame_of_a_dead_agent_is_forgotten(link: AgentLink, server: Server) -> None:
    connect(link, server)
    server.connection.sendall(pack_frame(HALT)[:-2])
    server.die()
    while link.fd >= 0:
        wait_readable([link.fd], PATIENCE_S)
        link.pump()
    server.listen()
    connect(link, server)
    server.tell(Halt(6, True))
    assert receive(link) == Halt(6, True)


# ---- an agent that goes and comes back ------------------------------------------------------------


def test_it_dials_again_and_tells_its_epoch(link: AgentLink, server: Server, rows: Rows) -> None:
    returned = []
    link.on_return = lambda: returned.append(link.agent)
    connect(link, server)
    link.send(HALTED)
    server.read()
    server.die()
    while link.fd >= 0:
        wait_readable([link.fd], PATIENCE_S)
        link.pump()
    assert link.agent is None
    link.send(Round(ME, 7, 1))  # lost: it asks again when it is back
    assert returned == []
    link.epoch = 7
    server.listen()
    while link.fd < 0:
        link.receive(timeout_s=0.01)
    assert server.accept() == Hello(ME, os.getpid(), 7)
    again = Actor(AGENT.rank, 1)
    server.greet(again)
    while link.agent is None:
        wait_readable([link.fd], PATIENCE_S)
        link.pump()
    assert (link.agent, returned) == (again, [again])
    link.send(HALTED)
    assert server.read() == Frame(HALTED, 0)  # another incarnation is another channel
    assert [peer for peer, _, _ in rows.numbers("send")] == [AGENT, again]


def test_a_send_that_finds_the_agent_gone_is_no_error(link: AgentLink, server: Server) -> None:
    connect(link, server)
    server.die()
    for _ in range(3):
        link.send(HALTED)
    assert link.fd == -1


def test_a_script_that_has_used_up_its_descriptors_trains_on(
    link: AgentLink, server: Server, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none_left(*ignored: Any) -> None:
        raise OSError(errno.EMFILE, "Too many open files")

    with monkeypatch.context() as patched:
        patched.setattr(socket, "socket", none_left)
        lines = Lifelines([home / "s"], ME)
        lines.look()
        link.pump()
        link.send(Lag(1))
        assert link.fd < 0
    connect(link, server)
    lines.close()


def test_what_arrived_before_the_agent_died_is_still_received(
    link: AgentLink, server: Server
) -> None:
    connect(link, server)
    server.tell(HALT)
    server.die()
    assert receive(link) == HALT


def test_patience_ends(home: Path, rows: Rows) -> None:
    link = AgentLink(home / "nobody", ME, ControlLog(rows), patience_s=0.1)  # type: ignore[arg-type]
    began = time.monotonic()
    assert link.receive(timeout_s=0.02) is None
    with pytest.raises(AgentLost, match="away for 0 s"):
        link.receive()
    assert time.monotonic() - began >= 0.1
    assert link.fd == -1
    link.send(HALTED)
    link.close()


def test_an_agent_that_is_there_may_be_silent_for_longer(
    server: Server, home: Path, rows: Rows
) -> None:
    brief = AgentLink(home / "s", ME, ControlLog(rows), patience_s=0.2)  # type: ignore[arg-type]
    connect(brief, server)
    assert brief.receive(timeout_s=0.3) is None
    server.die()
    with pytest.raises(AgentLost):
        brief.receive()
    brief.close()


def test_patience_counts_from_the_moment_the_agent_went(
    server: Server, home: Path, rows: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    brief = AgentLink(home / "s", ME, ControlLog(rows), patience_s=0.1)  # type: ignore[arg-type]
    connect(brief, server)
    waits: list[int] = []
    went: list[float] = []

    def wait(fds: list[int], timeout_s: float) -> None:
        waits.append(len(waits))
        if waits[-1] == 0:
            wait_readable([], 0.15)  # the agent is there and silent, for longer than patience
            return
        if waits[-1] == 1:
            went.append(time.monotonic())
            server.die()
        wait_readable(fds, min(timeout_s, 0.01))

    monkeypatch.setattr(link_module, "wait_readable", wait)
    with pytest.raises(AgentLost):
        brief.receive()
    assert time.monotonic() - went[0] >= 0.09  # counted from when it was last seen, just before
