"""The rank's socket to its host agent: no thread, polled where the job waits anyway.

When the agent dies the rank goes on in its epoch; the link dials again until the agent is back.
"""

from __future__ import annotations

import os
import select
import socket
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path

import msgspec

from cascade_runtime.agent.control_log import ControlLog
from cascade_runtime.agent.protocol import (
    LENGTH,
    MAX_FRAME,
    AgentHello,
    Hello,
    Message,
    pack_frame,
    unpack_frame,
)
from cascade_runtime.vocabulary.errors import CascadeError
from cascade_runtime.vocabulary.identity import Actor

_REDIAL_S = 0.05
_SEND_PATIENCE_S = 1.0


class AgentLost(CascadeError):
    """The agent has been away for longer than a job can wait."""

    exit_code = 75


class AgentLink:
    """Frames to and from the agent.

    Args:
        path: the agent's socket.
        actor: this rank.
        control: numbers and records the messages of the walk.
        patience_s: how long a blocking receive bears an absent agent.
    """

    def __init__(
        self, path: Path, actor: Actor, control: ControlLog, patience_s: float = 60.0
    ) -> None:
        self._path = path
        self._actor = actor
        self._control = control
        self._patience_s = patience_s
        self._socket: socket.socket | None = None
        self._buffer = bytearray()
        self._next_dial = 0.0
        self.agent: Actor | None = None
        self.inbox: deque[Message] = deque()
        self._met = False
        self.on_pump: Callable[[], None] | None = None
        """Called wherever the rank looks at its agent."""
        self.on_wait: Callable[[], None] | None = None
        """Called about once a second while the rank waits for a message."""
        self.on_return: Callable[[], None] | None = None
        """Called when the agent is back after it was away."""
        self.epoch = -1
        """The rank's epoch, told at (re)connection so that the agent can send what was missed."""

    @property
    def fd(self) -> int:
        """To poll on; -1 while the agent is away."""
        return self._socket.fileno() if self._socket is not None else -1

    def send(self, message: Message) -> None:
        """Send a frame; lost when the agent is away (it asks again when it is back)."""
        self.pump()
        if self._socket is None or self.agent is None:  # until it says hello nobody knows who it is
            return
        try:
            # An agent that is stopped reads nothing: it is as good as away before it can stop us too.
            self._socket.settimeout(_SEND_PATIENCE_S)
            self._socket.sendall(self._control.outgoing(self.agent, message))
        except OSError:
            self._drop()
        else:
            self._socket.setblocking(False)

    def pump(self) -> None:
        """Move what has arrived into the inbox, without waiting; dial when there is no connection."""
        if self.on_pump is not None:
            self.on_pump()
        if self._socket is None and not self._dial():
            return
        while self._socket is not None:  # a frame that is none of ours ends the connection
            try:
                data = self._socket.recv(1 << 16)
            except BlockingIOError:
                return
            except OSError:
                self._drop()
                return
            if not data:
                self._drop()
                return
            self._buffer += data
            self._parse()

    def receive(self, timeout_s: float | None = None) -> Message | None:
        """The next message; None after ``timeout_s``.

        Raises:
            AgentLost: the agent stayed away for ``patience_s``.
        """
        end = None if timeout_s is None else time.monotonic() + timeout_s
        away_since = time.monotonic()
        while True:
            self.pump()
            if self.inbox:
                return self.inbox.popleft()
            if self.on_wait is not None:
                self.on_wait()
            now = time.monotonic()
            if self._socket is not None:
                away_since = now
            elif now - away_since > self._patience_s:
                raise AgentLost(
                    f"its host agent has been away for {self._patience_s:.0f} s, so it cannot go on",
                    where=f"rank {self._actor}",
                    hint="the launcher's output says why the agent was not started again",
                )
            if end is not None and now >= end:
                return None
            wait = 1.0 if self._socket is not None else _REDIAL_S
            if end is not None:
                wait = min(wait, end - now)
            wait_readable([self.fd], wait)

    def close(self) -> None:
        """Close the socket."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _dial(self) -> bool:
        now = time.monotonic()
        if now < self._next_dial:
            return False
        self._next_dial = now + _REDIAL_S
        try:
            dialled = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        except OSError:  # no descriptor is left just now
            return False
        try:
            dialled.connect(str(self._path))
            dialled.sendall(pack_frame(Hello(self._actor, os.getpid(), self.epoch)))
        except OSError:
            dialled.close()
            return False
        dialled.setblocking(False)
        self._socket = dialled
        self._buffer.clear()
        return True

    def _drop(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None
        self.agent = None

    def _parse(self) -> None:
        view = self._buffer
        while len(view) >= LENGTH.size:
            (length,) = LENGTH.unpack_from(view)
            if length > MAX_FRAME:
                self._drop()
                return
            end = LENGTH.size + length
            if len(view) < end:
                return
            try:
                frame = unpack_frame(bytes(view[LENGTH.size : end]))
            except msgspec.DecodeError:
                self._drop()
                return
            del view[:end]
            if isinstance(frame.body, AgentHello):
                back = self._met
                self.agent, self._met = frame.body.actor, True
                if back and self.on_return is not None:
                    self.on_return()
                continue
            self._control.incoming(self.agent, frame.channel_seq, end)
            self.inbox.append(frame.body)


def wait_readable(fds: list[int], timeout_s: float) -> None:
    """Return when one of ``fds`` can be read (negative ones are ignored), or after ``timeout_s``."""
    poller = select.poll()
    for fd in fds:
        if fd >= 0:
            poller.register(fd, select.POLLIN)
    poller.poll(max(0.0, timeout_s) * 1000)
