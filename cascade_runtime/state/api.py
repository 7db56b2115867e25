"""``cascade.State``: what a script calls (docs/state.md)."""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass
from typing import Any, Literal

from cascade_runtime import job
from cascade_runtime.state.coming import a_fork
from cascade_runtime.state.opening import open_session
from cascade_runtime.state.replica import Update
from cascade_runtime.state.session import StateSession
from cascade_runtime.state.values import check_key, check_name, decode, encode
from cascade_runtime.vocabulary.errors import BadUsage, CascadeError, NotSupported
from cascade_runtime.vocabulary.identity import Actor

Kind = Literal["plan", "state", "kv_prefix"]


class NotYet(CascadeError):
    """A version that was waited for has not come in time; the message says why."""


@dataclass(frozen=True)
class Entry:
    """One version of one key, as it was read.

    Attributes:
        key: what was read.
        value: a copy of the value.
        version: of the key, from 1; it grows along cause and effect. Two processes that put without
            knowing of each other may give the same one; all then settle on the higher rank's.
        author: who put it.
    """

    key: str
    value: Any
    version: int
    author: Actor
    _update: Update


class State:
    """Versioned keys that all processes of a job share, each with a copy of its own.

    For processes that do not train: planners, workers, servers of a model, started by ``cascade run``.
    torch is not needed. The first State of a process waits until all ranks of the job have opened one.

    A ``put`` is seen at once here and some time later elsewhere, after everything that had been seen
    here before it (``enforce``; under ``--observe`` as it arrives). Reads never wait unless they are
    given a timeout.

    Args:
        name: the same in all processes; letters, digits, dots, dashes and underscores.
        kind: what the keys are, for the report: ``plan`` is what processes act on (rule T1).

    Raises:
        BadUsage: not under ``cascade run``, a bad name or kind, the other ranks do not come, or this
            is a fork of a process that has opened one.
        NotSupported: this process trains a model that is attached.
    """

    def __init__(self, name: str, *, kind: Kind = "plan") -> None:
        self.name = check_name(name)
        if kind not in ("plan", "state", "kv_prefix"):
            raise BadUsage(f"{kind!r} is no kind of state", where="State", hint="plan or state")
        self._kind = kind
        self._session = _opened()

    def put(self, key: str, value: Any) -> int:
        """Give the key a new value; returns its version, from 1.

        Args:
            key: a printable string of at most 200 characters.
            value: None, bool, int, float, str, bytes, lists and dicts by str of these; at most 64 KiB
                as MessagePack.

        Raises:
            BadUsage: no such value or key, or all keys together are too many or too large.
        """
        where = f"{self.name}.put"
        data = encode(value, where)
        return self._session.put(self.name, check_key(key, where), self._kind, data).version

    def get(
        self, key: str, default: Any = None, *, at_least: int = 1, timeout: float | None = None
    ) -> Any:
        """The newest value that is known here; ``default`` where there is none.

        Args:
            key: which.
            default: returned where no version, or none of ``at_least``, is known here.
            at_least: the least version that will do.
            timeout: seconds to wait for it; None: do not wait.

        Raises:
            NotYet: it did not come within ``timeout``.
        """
        entry = self.entry(key, at_least=at_least, timeout=timeout)
        return default if entry is None else entry.value

    def entry(self, key: str, *, at_least: int = 1, timeout: float | None = None) -> Entry | None:
        """As ``get``, with version and author: what ``act`` takes.

        Raises:
            NotYet: it did not come within ``timeout``.
        """
        check_key(key, f"{self.name}.get")
        session = self._session
        if timeout is not None and not session.wait(self.name, key, at_least, timeout):
            raise NotYet(
                f"version {at_least} of {self.name}/{key} did not come within {timeout:g} s",
                where=f"{self.name}.get",
                hint=session.why_not(self.name, key),
            )
        seen = session.read(self.name, key, self._kind)
        if seen is None or seen.version < at_least:
            return None
        return Entry(key, decode(seen.value), seen.version, seen.author, seen)

    def act(self, entry: Entry) -> bool:
        """Say that this process acts now on what it has read; whether it may.

        In ``enforce`` it is False when a newer version is known here: read again, and act on that.
        Under ``--observe`` it is always True, and the report tells of acts on what was known to be
        replaced (T1).
        """
        if entry._update.state != self.name:
            raise BadUsage(
                f"this entry is of State {entry._update.state}", where=f"{self.name}.act"
            )
        return self._session.act(entry._update, self._kind)

    def version(self, key: str) -> int:
        """The newest version that is known here; 0 before the first. Not recorded as a read."""
        return self._session.version(self.name, key)

    def versions(self) -> dict[str, int]:
        """Of every key the newest version that is known here. Not recorded as a read."""
        return {key: u.version for key, u in self._session.entries(self.name).items()}

    def __repr__(self) -> str:
        return f"State({self.name!r}, rank {self._session.actor})"


class _Process:
    """What the States of this process share."""

    opening = threading.Lock()
    pid: int | None = None
    """The process that opened, or opens, its first State."""
    session: StateSession | None = None


def _opened() -> StateSession:
    """This process's session, opened by its first State.

    Raises:
        BadUsage: this is a fork of a process that has one; nobody here would let go of its lock.
    """
    if _Process.pid is None:
        _Process.pid = os.getpid()
    elif _Process.pid != os.getpid():
        raise a_fork()
    try:
        return _open()
    finally:
        if _Process.session is None:
            _Process.pid = None


def _open() -> StateSession:
    with _Process.opening:
        if _Process.session is None:
            if job.attached() is not None:
                raise NotSupported(
                    "a process that trains an attached model cannot share a State in this release",
                    where="State",
                    hint="put planners and workers into a job of their own",
                )
            _Process.session = open_session()
            job.also_finish(_Process.session.finish)
        return _Process.session
