"""Load generators, each in a process of its own so that it shares no interpreter with what is measured.

Everything is encoded before the clock starts: while it runs, a generator only writes bytes and reads
answers. Its own CPU time is told beside what it measured.
"""

from __future__ import annotations

import gc
import multiprocessing
import resource
import socket
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from typing import Any, Protocol

TIMEOUT_S = 60.0
_AGAIN = (429, 503)


class Failed(Exception):
    """The measurement did not run as it must; its figures mean nothing."""


class Client(Protocol):
    """One connection that sends encoded requests."""

    def ask(self, request: bytes) -> int:
        """Send, wait for the whole answer; its status, 200 when the rows are durable."""
        ...

    def close(self) -> None:
        """End the connection."""
        ...


class HttpClient:
    """A keep-alive connection to a collector.

    Args:
        address: host and port.
    """

    def __init__(self, address: tuple[str, int]) -> None:
        self._address = address
        self._socket: socket.socket | None = None
        self.body = b""
        self._connect()

    def _connect(self) -> socket.socket:
        self._socket = socket.create_connection(self._address, timeout=TIMEOUT_S)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return self._socket

    def ask(self, request: bytes) -> int:
        """See Client; ``body`` holds the answer's body afterwards."""
        connection = self._socket or self._connect()
        connection.sendall(request)
        data = b""
        while True:
            part = connection.recv(1 << 16)
            if not part:
                raise ConnectionError("the connection was closed in an answer")
            data += part
            answer = parse_answer(data)
            if answer is not None:
                status, self.body = answer
                if status != 200:  # the collector closes after most refusals
                    self.close()
                return status

    def close(self) -> None:
        """See Client."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None


def parse_answer(data: bytes) -> tuple[int, bytes] | None:
    """Status and body of an HTTP answer; None while it is not whole."""
    head, found, body = data.partition(b"\r\n\r\n")
    if not found:
        return None
    lowered = head.lower()
    at = lowered.find(b"content-length:")
    length = int(lowered[at + 15 :].split(b"\r\n", 1)[0]) if at >= 0 else 0
    return (int(head[9:12]), body[:length]) if len(body) >= length else None


@dataclass
class Sent:
    """What one run of a load did."""

    num_rows: int = 0
    """Acknowledged, first sendings only."""
    seconds: float = 0.0
    """From the first request to the last answer."""
    latencies_ms: list[float] = field(default_factory=list)
    num_again: int = 0
    """Requests that had to be sent again because the other side said so."""
    cpu_s: float = 0.0
    """Of the generator."""
    end: float = 0.0
    """The last answer, by the monotonic clock."""


@dataclass
class Queue:
    """What one client sends: encoded requests and the number of rows of each."""

    requests: list[bytes]
    num_rows: list[int]


MakeQueues = Callable[..., list[Queue]]
MakeClient = Callable[[Any], Client]


def closed_loop(
    queues: Sequence[Queue], make: MakeClient, address: Any, until: float | None = None
) -> Sent:
    """Every client sends its next request as soon as the last one was answered.

    Args:
        queues: one a client.
        make: makes a client.
        address: what ``make`` takes.
        until: monotonic seconds at which no new request is begun.
    """
    clients = [make(address) for _ in queues]
    parts = [Sent() for _ in queues]
    problems: list[Exception] = []
    gate = threading.Barrier(len(queues) + 1)

    def run(client: Client, queue: Queue, sent: Sent) -> None:
        gate.wait()
        try:
            for request, num_rows in zip(queue.requests, queue.num_rows, strict=True):
                begin = time.perf_counter()
                if until is not None and time.monotonic() >= until:
                    break
                while (status := client.ask(request)) in _AGAIN:
                    sent.num_again += 1
                    time.sleep(0.05)
                if status != 200:
                    problems.append(Failed(f"a request was answered with {status}"))
                    return
                sent.latencies_ms.append((time.perf_counter() - begin) * 1000)
                sent.num_rows += num_rows
        except Exception as error:
            problems.append(error)

    threads = [
        threading.Thread(target=run, args=args, daemon=True)
        for args in zip(clients, queues, parts, strict=True)
    ]
    for thread in threads:
        thread.start()
    cpu = _cpu_s()
    gate.wait()
    begin = time.monotonic()
    for thread in threads:
        thread.join()
    end = time.monotonic()
    cpu = _cpu_s() - cpu
    for client in clients:
        client.close()
    if problems:
        raise Failed(f"a client failed: {problems[0]!r}") from problems[0]
    return Sent(
        num_rows=sum(s.num_rows for s in parts),
        seconds=end - begin,
        latencies_ms=[ms for s in parts for ms in s.latencies_ms],
        num_again=sum(s.num_again for s in parts),
        cpu_s=cpu,
        end=end,
    )


def _cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


class Load:
    """A process that encodes its requests once and then sends them as often as it is told.

    Args:
        make_queues: makes the requests; runs in the process, like ``make_client``.
        arguments: of ``make_queues``.
        make_client: one connection.
    """

    def __init__(
        self, make_queues: MakeQueues, arguments: tuple[Any, ...], make_client: MakeClient
    ) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(
            target=_serve, args=(theirs, make_queues, arguments, make_client), daemon=True
        )
        self._process.start()
        theirs.close()

    def __enter__(self) -> Load:
        return self

    def __exit__(self, *_: object) -> None:
        self._pipe.close()  # it ends by itself
        self._process.join(TIMEOUT_S)

    def ready(self) -> int:
        """Wait until everything is encoded; the number of rows of one run."""
        return int(self._get())

    def start(self, address: Any, seconds: float | None = None) -> None:
        """Begin one run; ``seconds``: after that long no new request is begun."""
        self._pipe.send((address, seconds))

    def result(self) -> Sent:
        """Of the run that was begun.

        Raises:
            Failed: a client failed.
        """
        found: Sent = self._get()
        return found

    def run(self, address: Any) -> Sent:
        """One run, from start to end."""
        self.start(address)
        return self.result()

    def _get(self) -> Any:
        try:
            found = self._pipe.recv()
        except EOFError:
            raise Failed("the load generator died") from None
        if isinstance(found, Exception):
            raise found
        return found


def _serve(
    pipe: Connection, make_queues: MakeQueues, arguments: tuple[Any, ...], make: MakeClient
) -> None:
    gc.disable()  # what is encoded lives on; looking through it again and again is what costs
    try:
        queues = make_queues(*arguments)
        pipe.send(sum(sum(queue.num_rows) for queue in queues))
        while True:
            address, seconds = pipe.recv()
            until = None if seconds is None else time.monotonic() + seconds
            try:
                pipe.send(closed_loop(queues, make, address, until))
            except Failed as error:
                pipe.send(Failed(str(error)))
    except (EOFError, BrokenPipeError):
        return  # whoever asked has gone
