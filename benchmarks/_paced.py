"""An open-loop load: many connections, each with a timetable that does not wait for answers.

A request's time runs from the moment at which its timetable has it, also when an earlier answer on its
connection was late; so a stalled server is charged for all that should have been sent meanwhile. When a
connection was free and the request still went out late, that is the generator's own lag, told beside.
"""

from __future__ import annotations

import gc
import heapq
import multiprocessing
import resource
import selectors
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from typing import Any

from benchmarks._load import Failed, parse_answer

TIMEOUT_S = 60.0


@dataclass
class Plan:
    """What one connection sends, and when."""

    requests: list[bytes]
    num_rows: list[int]
    phase_s: float
    """Of the first request, from the start."""


@dataclass
class Paced:
    """What a paced load did. Times in ms; the warm-up is left out of them."""

    num_rows: int = 0
    """Acknowledged, warm-up included."""
    num_requests: int = 0
    latencies_ms: list[float] = field(default_factory=list)
    lags_ms: list[float] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    num_resets: int = 0
    seconds: float = 0.0
    """From the first request to the last answer."""
    cpu_s: float = 0.0
    """Of the generator."""
    server_cpu_s: float = 0.0
    """Of the collector; filled in by whoever runs it."""


class _Line:
    """One connection."""

    def __init__(self, address: tuple[str, int], plan: Plan) -> None:
        self.socket = socket.create_connection(address, timeout=TIMEOUT_S)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.plan = plan
        self.next = 0
        self.due: list[float] = []
        """Timetabled and not yet sent: an earlier answer is out."""
        self.waiting_since: float | None = None
        self.data = b""


def run_paced(
    address: tuple[str, int], plans: list[Plan], period_s: float, warm_up_s: float
) -> Paced:
    """Send every plan, one request a ``period_s`` on each connection."""
    done = Paced()
    lines = [_Line(address, plan) for plan in plans]
    selector = selectors.DefaultSelector()
    for line in lines:
        selector.register(line.socket, selectors.EVENT_READ, line)
    start = time.monotonic() + 0.2
    timetable = [(start + line.plan.phase_s, i) for i, line in enumerate(lines)]
    heapq.heapify(timetable)
    num_open = sum(len(plan.requests) for plan in plans)
    cpu = _cpu_s()

    def send(line: _Line, due: float) -> None:
        line.waiting_since = due
        try:
            line.socket.sendall(line.plan.requests[line.next])
        except OSError as error:
            lost(line, error)

    def lost(line: _Line, error: Exception) -> None:
        nonlocal num_open
        done.num_resets += 1
        done.errors.append(repr(error))
        num_open -= len(line.plan.requests) - line.next
        line.next = len(line.plan.requests)
        line.due.clear()
        selector.unregister(line.socket)
        line.socket.close()

    def receive(line: _Line) -> None:
        nonlocal num_open
        try:
            part = line.socket.recv(1 << 16)
            if not part:
                raise ConnectionResetError("closed by the collector")
        except OSError as error:
            lost(line, error)
            return
        line.data += part
        answer = parse_answer(line.data)
        if answer is None or line.waiting_since is None:
            return
        now = time.monotonic()
        status, body = answer
        if status != 200:
            done.errors.append(f"{status} {body[:200].decode(errors='replace')}")
        else:
            done.num_rows += line.plan.num_rows[line.next]
        if line.waiting_since >= start + warm_up_s:
            done.latencies_ms.append((now - line.waiting_since) * 1000)
        done.num_requests += 1
        num_open -= 1
        line.next += 1
        line.data, line.waiting_since = b"", None
        if line.due:
            send(line, line.due.pop(0))

    while num_open:
        now = time.monotonic()
        while timetable and timetable[0][0] <= now:
            due, number = heapq.heappop(timetable)
            line = lines[number]
            num_begun = line.next + len(line.due) + (line.waiting_since is not None)
            if num_begun + 1 < len(line.plan.requests):
                heapq.heappush(timetable, (due + period_s, number))
            if num_begun >= len(line.plan.requests):
                continue  # its connection was lost
            if line.waiting_since is not None:
                line.due.append(due)
                continue
            if due >= start + warm_up_s:
                done.lags_ms.append((time.monotonic() - due) * 1000)
            send(line, due)
        wait = max(0.0, timetable[0][0] - time.monotonic()) if timetable else 1.0
        for key, _ in selector.select(wait):
            receive(key.data)
        if time.monotonic() > start + TIMEOUT_S + period_s * max(len(p.requests) for p in plans):
            done.errors.append(f"{num_open} requests were never answered")
            break
    done.seconds = time.monotonic() - start
    done.cpu_s = _cpu_s() - cpu
    for line in lines:
        line.socket.close()
    return done


def _cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


class PacedLoad:
    """A process that encodes a paced load once and runs it as often as it is asked to.

    Args:
        make_plans: makes the plans; runs in the process.
        arguments: of ``make_plans``.
    """

    def __init__(self, make_plans: Callable[..., list[Plan]], arguments: tuple[Any, ...]) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(
            target=_serve, args=(theirs, make_plans, arguments), daemon=True
        )
        self._process.start()
        theirs.close()

    def __enter__(self) -> PacedLoad:
        return self

    def __exit__(self, *_: object) -> None:
        self._pipe.close()  # it ends by itself
        self._process.join(TIMEOUT_S)

    def ready(self) -> int:
        """Wait until everything is encoded; the number of rows of one run.

        Raises:
            Failed: the generator died.
        """
        return int(self._get())

    def start(self, address: tuple[str, int], period_s: float, warm_up_s: float) -> None:
        """Begin to send; after ``ready``."""
        self._pipe.send((address, period_s, warm_up_s))

    def result(self) -> Paced:
        """Of the run that was begun.

        Raises:
            Failed: the generator died.
        """
        found: Paced = self._get()
        return found

    def _get(self) -> Any:
        try:
            return self._pipe.recv()
        except (EOFError, ConnectionResetError):
            raise Failed("the load generator died") from None


def _serve(
    pipe: Connection, make_plans: Callable[..., list[Plan]], arguments: tuple[Any, ...]
) -> None:
    gc.disable()
    plans = make_plans(*arguments)
    pipe.send(sum(sum(plan.num_rows) for plan in plans))
    while True:
        try:
            address, period_s, warm_up_s = pipe.recv()
        except EOFError:
            return
        pipe.send(run_paced(address, plans, period_s, warm_up_s))
