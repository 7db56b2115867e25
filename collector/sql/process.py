"""The parent's side of one child process: start it, ask it, end it, always reap it."""

from __future__ import annotations

import os
import select
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import msgspec

from collector.sql.messages import (
    LARGEST_HEADER,
    LENGTH,
    Answer,
    Question,
    Ready,
    Setup,
    frame,
)

_CHUNK = 1 << 20


class ChildEnded(Exception):
    """The child ended without an answer; ``returncode`` as subprocess gives it."""

    def __init__(self, returncode: int) -> None:
        super().__init__(f"ended with {returncode}")
        self.returncode = returncode


class ChildTooSlow(Exception):
    """The deadline passed."""


class Reply(NamedTuple):
    """A child's answer and its body."""

    answer: Answer
    body: bytes


class Child:
    """One child process.

    Args:
        place: its working folder, which holds nothing but a link to the runs.
        setup: its limits.

    Raises:
        OSError: no process can be started.
    """

    def __init__(self, place: Path, setup: Setup) -> None:
        # Isolated, and with our own idea of where modules are: no variable and no file of the
        # place where the collector was started says what it imports.
        code = (
            f"import sys; sys.path[:] = {_import_path()!r}; "
            "sys.modules['numpy'] = None; "  # pyarrow does without, and starts in half the time
            "from collector.sql.child import main; main()"
        )
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-B", "-X", "utf8", "-c", code],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=place,
            env={"MALLOC_ARENA_MAX": "2"},  # else every thread sets 64 MB of addresses aside
            start_new_session=True,
            bufsize=0,
        )
        self._max_bytes = setup.output_bytes
        self.ready: Ready | None = None
        with suppress(BrokenPipeError):  # then it ended, and waiting for it will say so
            self._write(frame(setup), time.monotonic() + 5)

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    def alive(self) -> bool:
        """Whether it still runs."""
        return self._process.poll() is None

    def wait_ready(self, deadline: float) -> Ready:
        """Wait until it can take a statement.

        Raises:
            ChildEnded, ChildTooSlow.
        """
        if self.ready is None:
            self.ready = msgspec.msgpack.decode(self._frame(deadline), type=Ready)
        return self.ready

    def ask(self, question: Question, deadline: float) -> Reply:
        """Let it run its one statement.

        Raises:
            ChildEnded: it died of it.
            ChildTooSlow: no answer at the deadline (of ``time.monotonic()``).
            msgspec.MsgspecError: it said something that is no answer.
        """
        try:
            self._write(frame(question), deadline)
        except BrokenPipeError as error:
            raise ChildEnded(self._returncode(deadline)) from error
        answer = msgspec.msgpack.decode(self._frame(deadline), type=Answer)
        if not 0 <= answer.num_bytes <= self._max_bytes:
            raise msgspec.ValidationError("the body is larger than it may be")
        return Reply(answer, self._read(answer.num_bytes, deadline))

    def kill(self) -> None:
        """Kill it; whoever has it reaps it."""
        self._process.kill()

    def end(self) -> None:
        """Kill it if it runs, and reap it."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()

    def _frame(self, deadline: float) -> bytes:
        (length,) = LENGTH.unpack(self._read(LENGTH.size, deadline))
        if length > LARGEST_HEADER:
            raise msgspec.ValidationError("the header is larger than it may be")
        return self._read(length, deadline)

    def _read(self, num_bytes: int, deadline: float) -> bytes:
        assert self._process.stdout is not None
        fd = self._process.stdout.fileno()
        data = bytearray()
        while len(data) < num_bytes:
            self._wait_for(fd, select.POLLIN, deadline)
            chunk = os.read(fd, min(_CHUNK, num_bytes - len(data)))
            if not chunk:
                raise ChildEnded(self._returncode(deadline))
            data += chunk
        return bytes(data)

    def _write(self, data: bytes, deadline: float) -> None:
        assert self._process.stdin is not None
        fd = self._process.stdin.fileno()
        os.set_blocking(fd, False)
        left = memoryview(data)
        while left:
            self._wait_for(fd, select.POLLOUT, deadline)
            left = left[os.write(fd, left) :]

    def _wait_for(self, fd: int, event: int, deadline: float) -> None:
        poller = select.poll()
        poller.register(fd, event)
        left = deadline - time.monotonic()
        if left <= 0 or not poller.poll(left * 1000):
            raise ChildTooSlow

    def _returncode(self, deadline: float) -> int:
        try:
            return self._process.wait(max(0.1, deadline - time.monotonic()))
        except subprocess.TimeoutExpired as error:
            raise ChildTooSlow from error


def _import_path() -> list[str]:
    """Where this process finds modules, absolute; the checkout or installation itself included."""
    ours = str(Path(__file__).resolve().parents[2])
    places = [str(Path(place).resolve()) for place in sys.path if place and Path(place).exists()]
    return list(dict.fromkeys([*places, ours]))
