"""Children for statements: one is kept warm, few run at once, few wait, the rest is told to come later."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from collector.sql.errors import SqlBusy
from collector.sql.limits import SqlLimits
from collector.sql.messages import Setup
from collector.sql.process import Child


class ChildPool:
    """Starts and hands out children. Safe to call from several threads.

    Args:
        place: the working folder of children.
        setup: what they are told at the start.
        limits: how many at once, how many may wait, how long.
    """

    def __init__(self, place: Path, setup: Setup, limits: SqlLimits) -> None:
        self._place = place
        self._setup = setup
        self._limits = limits
        self._turns = threading.BoundedSemaphore(limits.at_once)
        self._lock = threading.Lock()
        self._spare: Child | None = None
        self._handed_out: set[Child] = set()
        self._waiting = 0
        self._closed = False

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Wait for a turn to run a statement.

        Raises:
            SqlBusy: too many wait already, or the wait was too long.
        """
        if not self._turns.acquire(blocking=False):
            self._wait_for_a_turn()
        try:
            yield
        finally:
            self._turns.release()

    @contextmanager
    def child(self) -> Iterator[Child]:
        """A child that nobody else has; it is killed and reaped in the end. Needs a turn.

        Raises:
            SqlBusy: the service is closing, or no process can be started.
        """
        child = self._take()
        try:
            yield child
        finally:
            child.end()
            with self._lock:
                self._handed_out.discard(child)

    def warm(self) -> None:
        """Have a spare child started; it gets ready by itself."""
        with self._lock:
            if self._spare is None and not self._closed:
                self._spare = Child(self._place, self._setup)

    def pids(self) -> list[int]:
        """Process ids of all children there are."""
        with self._lock:
            children = [*self._handed_out, *([self._spare] if self._spare else [])]
        return [child.pid for child in children]

    def close(self) -> None:
        """End every child, those at work too."""
        with self._lock:
            self._closed = True
            spare, self._spare = self._spare, None
            working = list(self._handed_out)
        if spare is not None:
            spare.end()
        for child in working:
            child.kill()  # reaped by the thread that waits for it

    def _take(self) -> Child:
        with self._lock:
            if self._closed:
                raise SqlBusy("the SQL service is closing")
            child, self._spare = self._spare, None
            if child is not None and not child.alive():
                child.end()
                child = None
            try:
                child = child or Child(self._place, self._setup)
            except OSError as error:
                hint = "the machine may be out of processes, memory or file descriptors"
                raise SqlBusy(f"no child process can be started: {error}", hint=hint) from error
            self._handed_out.add(child)
            return child

    def _wait_for_a_turn(self) -> None:
        hint = "come again in a second"
        with self._lock:
            if self._waiting >= self._limits.num_waiting:
                message = f"{self._limits.at_once} statements run and {self._waiting} wait"
                raise SqlBusy(message, hint=hint)
            self._waiting += 1
        try:
            started = time.monotonic()
            if not self._turns.acquire(timeout=self._limits.wait_s):
                waited = time.monotonic() - started
                raise SqlBusy(f"other statements ran for {waited:.1f} s", hint=hint)
        finally:
            with self._lock:
                self._waiting -= 1
