"""Source and newcomer on one socket: what is said arrives, what cannot be said in time is dropped."""

from __future__ import annotations

import socket
import time
from pathlib import Path

import pytest
import torch

from cascade_runtime.rank import feed as feed_file
from cascade_runtime.rank import heard_queue
from cascade_runtime.rank.feed import READY, Feed
from cascade_runtime.rank.heard_queue import QUEUED, QUEUED_BYTES, Heard, HeardQueue
from cascade_runtime.rank.receiver import Receiver
from cascade_runtime.rank.state_codec import pack
from cascade_runtime.vocabulary.identity import Actor

NEWCOMER, SOURCE = Actor(2, 1), Actor(1)


@pytest.fixture
def receiver(tmp_path: Path):
    made = Receiver(tmp_path / "join.sock", 1 << 20)
    yield made
    made.close()


def until(condition, what: str):
    end = time.monotonic() + 10
    while not (met := condition()):
        assert time.monotonic() < end, f"never: {what}"
        time.sleep(0.001)
    return met


def heard(receiver: Receiver) -> Heard:
    return until(receiver.take, "a message")


def said(receiver: Receiver, source: Actor = SOURCE) -> None:
    """The source has said who it is."""
    hello = heard(receiver)
    assert (hello.kind, hello.body) == ("hello", {"source": [source.rank, source.incarnation]})


def of(number: int):
    return pack("entry", {"n": number, "t": torch.full((4,), float(number))})


def test_messages_arrive_in_order_and_the_end_is_told(receiver: Receiver) -> None:
    feed = Feed(NEWCOMER, SOURCE, str(receiver._path))
    until(lambda: feed.is_ready, "ready")
    for number in range(40):
        feed.push(of(number))
    feed.finish()
    said(receiver)
    got = [heard(receiver) for _ in range(41)]
    assert [h.body["n"] for h in got[:40]] == list(range(40))
    assert got[7].body["t"].tolist() == [7.0] * 4
    assert (got[40].kind, {h.feed for h in got}) == ("lost", {1})
    until(lambda: feed.is_over, "over")


def test_one_source_at_a_time(receiver: Receiver) -> None:
    first = Feed(NEWCOMER, SOURCE, str(receiver._path))
    until(lambda: first.is_ready, "the first is ready")
    second = Feed(NEWCOMER, SOURCE, str(receiver._path))
    first.push(of(1))
    said(receiver)
    assert heard(receiver).body["n"] == 1
    assert not second.is_ready
    receiver.let_go()
    assert heard(receiver).kind == "lost"
    until(lambda: second.is_ready, "the second is ready")
    second.push(of(2))
    said(receiver)
    assert heard(receiver)[:2] == (2, "entry")
    second.stop()


def test_who_reads_too_slowly_is_let_go_and_nobody_waits(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feed_file, "MAX_BACKLOG_BYTES", 1 << 16)
    feed = Feed(NEWCOMER, SOURCE, str(receiver._path))
    until(lambda: feed.is_ready, "ready")
    large = pack("entry", {"t": torch.zeros(1 << 14, dtype=torch.float64)})
    slowest, pushed = 0.0, 0
    while not feed.is_over:
        began = time.thread_time()
        feed.push(large)
        slowest = max(slowest, time.thread_time() - began)
        pushed += 1
        assert pushed < 1000
    assert pushed >= 3
    assert slowest < 0.1
    assert sum(p.nbytes if isinstance(p, memoryview) else len(p) for m in feed._backlog if m
               for p in m) < 1 << 20  # fmt: skip


def test_messages_that_nobody_takes_are_bounded_in_bytes_and_one_may_always_come(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(heard_queue, "QUEUED_BYTES", 1 << 18)
    feed = Feed(NEWCOMER, SOURCE, str(receiver._path))
    until(lambda: feed.is_ready, "ready")
    half, whole = torch.zeros(1 << 17, dtype=torch.uint8), torch.zeros(1 << 19, dtype=torch.uint8)
    for tensor in (whole, half, half, half):
        feed.push(pack("entry", {"t": tensor}))
    said(receiver)
    sizes = []
    for _ in range(4):
        sizes.append(heard(receiver).body["t"].nbytes)
        assert receiver._queue._bytes <= 1 << 18
    assert sizes == [1 << 19, 1 << 17, 1 << 17, 1 << 17]
    feed.stop()


def test_the_queue_is_full_by_number_or_by_bytes() -> None:
    message, closed = Heard(1, "entry", {}), True
    queue = HeardQueue()
    assert queue.put(message, 100 * QUEUED_BYTES, lambda: closed)
    assert not queue.put(message, 0, lambda: closed)
    assert queue.take() == message
    for _ in range(QUEUED):
        assert queue.put(message, 1, lambda: closed)
    assert not queue.put(message, 1, lambda: closed)
    assert queue.take() and queue.put(message, QUEUED_BYTES - QUEUED + 1, lambda: closed)
    assert not queue.put(message, 1, lambda: closed)
    for _ in range(QUEUED):
        assert queue.take()
    assert queue.take() is None and queue._bytes == 0


def test_bytes_that_are_no_message_end_the_connection(receiver: Receiver) -> None:
    with socket.socket(socket.AF_UNIX) as sock:
        sock.connect(str(receiver._path))
        assert sock.recv(1) == READY
        sock.sendall(b"\xff" * 64)
        lost = heard(receiver)
    assert lost.kind == "lost"
    assert "bytes" in lost.body["why"]
    feed = Feed(NEWCOMER, SOURCE, str(receiver._path))
    until(lambda: feed.is_ready, "the next source")
    feed.stop()


def test_a_newcomer_that_is_gone_ends_the_feed(tmp_path: Path) -> None:
    nobody = Feed(NEWCOMER, SOURCE, str(tmp_path / "nobody.sock"))
    until(lambda: nobody.is_over, "over")
    receiver = Receiver(tmp_path / "join.sock", 1 << 20)
    feed = Feed(NEWCOMER, SOURCE, str(receiver._path))
    until(lambda: feed.is_ready, "ready")
    receiver.close()
    assert not receiver._path.exists()

    def broken() -> bool:
        feed.push(of(1))
        return feed.is_over

    until(broken, "over")
