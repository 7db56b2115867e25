"""Serving newcomers: a snapshot at a step's beginning, then the log of every step, by a thread.

The training thread copies memory and never touches the socket. What it cannot hand over fast enough is
not waited for: the newcomer is let go and may ask again.
"""

from __future__ import annotations

import socket
import threading
from collections import deque
from typing import Any

from cascade_runtime.agent.protocol import Serve, View
from cascade_runtime.rank.member import Member
from cascade_runtime.rank.snapshot import TrainingState, Tree
from cascade_runtime.rank.state_codec import pack, size_of
from cascade_runtime.recorder import Recorder
from cascade_runtime.vocabulary.errors import CascadeError
from cascade_runtime.vocabulary.events import Checkpoints
from cascade_runtime.vocabulary.identity import Actor, Dot
from cascade_runtime.vocabulary.regime import Regime

MAX_BACKLOG_BYTES = 256 << 20
"""What may wait to be sent; a snapshot and the entry after it may always."""

ALL_DIGESTS = 2
"""So many entries after a snapshot carry the digests of all objects; later ones one in rotation."""

CONNECT_S = 10.0
READY = b"+"
Pieces = list[bytes | memoryview]


class Feed:
    """One newcomer's connection and the thread that writes to it."""

    def __init__(self, newcomer: Actor, source: Actor, address: str) -> None:
        self.newcomer = newcomer
        self.is_ready = False
        """The newcomer takes this member as its source."""
        self.is_over = False
        self.num_sent = 0
        """Messages handed over; the first is the snapshot."""
        self._address = address
        self._hello = pack("hello", {"source": [source.rank, source.incarnation]})
        self._backlog: deque[Pieces | None] = deque()
        self._bytes = 0
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._run, name="cascade-feed", daemon=True)
        self._thread.start()

    def push(self, pieces: Pieces) -> None:
        """Hand a message over; ends the feed when too much waits already."""
        with self._changed:
            if self.num_sent > 1 and self._bytes > MAX_BACKLOG_BYTES:
                self.is_over = True
            else:
                self.num_sent += 1
                self._bytes += size_of(pieces)
                self._backlog.append(pieces)
            self._changed.notify()

    def finish(self) -> None:
        """Send what waits, then close."""
        with self._changed:
            self._backlog.append(None)
            self._changed.notify()

    def stop(self) -> None:
        """Close at once."""
        with self._changed:
            self.is_over = True
            self._changed.notify()

    def _run(self) -> None:
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as sock:
                sock.settimeout(CONNECT_S)
                sock.connect(self._address)
                sock.settimeout(None)
                if sock.recv(1) != READY:
                    return
                pieces: Pieces | None = self._hello
                self.is_ready = True
                while pieces is not None:
                    for piece in pieces:
                        sock.sendall(piece)
                    pieces = self._next()
        except OSError:
            return  # the newcomer is gone, or has taken another source
        finally:
            self.is_over = True

    def _next(self) -> Pieces | None:
        with self._changed:
            while not self._backlog and not self.is_over:
                self._changed.wait()
            if self.is_over:
                return None
            pieces = self._backlog.popleft()
            self._bytes -= size_of(pieces) if pieces is not None else 0
            return pieces


class Feeds:
    """All that one member serves.

    ``boundary`` is called at each step's beginning, ``before_optimizer`` by the optimizer's pre-hook.
    """

    def __init__(self, member: Member, state: TrainingState, recorder: Recorder) -> None:
        self._member = member
        self._state = state
        self._recorder = recorder
        self._feeds: dict[Actor, Feed] = {}
        self._calls: list[Tree] = []
        self._applied: list[list[Any]] = []
        self._num_snapshots = 0
        self._refusal: str | None = None
        self.layout: list[list[str]] = []
        """Names of the parameters in each bucket of the last step; the reducer keeps it."""

    @property
    def any(self) -> bool:
        """Somebody is served, or wants to be."""
        return bool(self._feeds)

    @property
    def is_logging(self) -> bool:
        """Somebody has a snapshot: a step's end is not this member's stand until it is logged."""
        return any(f.num_sent and not f.is_over for f in self._feeds.values())

    def request(self, serve: Serve) -> None:
        """A newcomer's agent asks for it; the feed begins when the newcomer has answered."""
        old = self._feeds.pop(serve.newcomer, None)
        if old is not None:
            old.stop()
        try:
            self._feeds[serve.newcomer] = Feed(serve.newcomer, serve.source, serve.address)
        except RuntimeError:  # no thread to be had here: the newcomer asks another member
            return
        self._member.on_applied = self._on_applied

    def before_optimizer(self, optimizer: object, arguments: tuple[Any, ...], named: Tree) -> None:
        """The optimizer's step begins: what it sees goes into the log. ``arguments`` begin with it."""
        del optimizer
        if not self.is_logging:
            return
        if any(a is not None for a in arguments[1:]) or named.get("closure") is not None:
            self._refusal = "the optimizer steps with a closure, which cannot be replayed"
            return
        try:
            self._calls.append(
                {"groups": self._state.tell_groups(), "gradients": self._state.tell_gradients()}
            )
        except Exception as error:  # no memory for the copies: the newcomer's loss, not ours
            self._refusal = _why(error)

    def boundary(self) -> None:
        """A step begins: log the last one, give a snapshot to who waits for one."""
        if not self._feeds:
            return
        for newcomer, feed in list(self._feeds.items()):
            if feed.is_over:
                del self._feeds[newcomer]
        eventual = self._member.view.regime is Regime.EVENTUAL
        try:
            if self.is_logging and self._refusal is None:
                self._log()
            for feed in self._feeds.values():
                if feed.is_ready and not feed.num_sent and self.layout and not eventual:
                    feed.push(self._snapshot(feed.newcomer))
        except Exception as error:  # whatever the script keeps in its state, this member trains on
            self._refusal = _why(error)
        if self._refusal is not None:
            self._end_all(self._refusal)
        self._calls, self._applied = [], []
        if not self._feeds:
            self._member.on_applied = None

    def committed(self, view: View) -> None:
        """A new view: newcomers in it need no log any more."""
        for feed in self._feeds.values():
            if feed.newcomer in view.members:
                feed.finish()

    def let_go(self) -> None:
        """Cohorts part: this member's log is not all members' any more. Who was served asks again."""
        self.stop()
        self._feeds.clear()
        self._calls, self._applied = [], []
        self._member.on_applied = None

    def stop(self) -> None:
        """This member leaves."""
        for feed in self._feeds.values():
            feed.stop()

    # ---- what is sent ----------------------------------------------------------------------------

    def _log(self) -> None:
        rest = self._state.tell_rest()
        digests: dict[bool, dict[int, str]] = {}
        for feed in self._feeds.values():
            if not feed.num_sent or feed.is_over:
                continue
            full = feed.num_sent <= ALL_DIGESTS
            if full not in digests:
                digests[full] = self._digests(full)
            entry = {
                "standing": self._standing(),
                "calls": self._calls,
                "applied": self._applied,
                "digests": digests[full],
                "layout": self.layout,
            }
            feed.push(pack("entry", entry | rest))

    def _snapshot(self, newcomer: Actor) -> Pieces:
        self._num_snapshots += 1
        checkpoint_id = f"live/{newcomer}/{self._member.actor}/{self._num_snapshots}"
        told = self._state.tell()
        digests = self._digests(full=True)
        self._recorder.row(
            Checkpoints,
            action="saved",
            checkpoint_id=checkpoint_id,
            durable=False,
            scope="self",
            frontier=self._member.frontier.dots(),
            world_size=len(self._member.view.members),
            params_digest=digests[0],
            optim_digest=digests[max(digests)],
        )
        about = {
            "checkpoint_id": checkpoint_id,
            "standing": self._standing(),
            "digests": digests,
            "layout": self.layout,
        }
        return pack("snapshot", told | about)

    def _digests(self, full: bool) -> dict[int, str]:
        number = len(self._state.objects.names)
        indices = range(number) if full else [self._member.decided % number]
        return self._state.digests(list(indices))

    def _standing(self) -> Tree:
        member = self._member
        return {
            "source": [member.actor.rank, member.actor.incarnation],
            "epoch": member.view.epoch,
            "regime": member.view.regime.value,
            "decided": member.decided,
            "version": member.version,
            "frontier": [_plain(d) for d in member.frontier.dots()],
            "last_dots": [None if d is None else _plain(d) for d in member.last_dots],
        }

    def _on_applied(self, dots: list[Dot]) -> None:
        member = self._member
        version = member.version if member.strong else None
        where = [member.view.epoch, member.view.regime.value, self._recorder.step, version]
        self._applied.append([*where, [_plain(d) for d in dots]])

    def _end_all(self, why: str) -> None:
        self._refusal = None
        for feed in self._feeds.values():  # one that is not connected yet hears it when it is
            feed.push(pack("refused", {"why": why}))
            feed.finish()
        self._feeds.clear()


def _why(error: Exception) -> str:
    if isinstance(error, CascadeError):
        return str(error)
    said = f"{type(error).__name__}: {ascii(str(error))[1:-1]}"[:300]
    return f"its source could not tell the training state ({said})"


def _plain(dot: Dot) -> list[int]:
    return [dot.rank, dot.incarnation, dot.counter]
