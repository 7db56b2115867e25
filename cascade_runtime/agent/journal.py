"""The agent's journal: what it must remember across its own death. Same framing as the spool.

Only process death matters here (the host's death takes the ranks with it), so pages left to the
kernel are enough and nothing is fsynced.
"""

from __future__ import annotations

import os
import zlib
from pathlib import Path
from typing import Any

import msgspec

from cascade_runtime.agent.protocol import NO_BALLOT, Ballot, DebtInfo, Facts, View
from cascade_runtime.vocabulary import spool_format
from cascade_runtime.vocabulary.identity import Actor, EventRef


class JournalLost(RuntimeError):
    """It cannot be written. What an agent cannot remember it must not do, so the agent ends."""


class Memory(msgspec.Struct):
    """What a journal adds up to."""

    num_starts: int = 0
    promised: Ballot = NO_BALLOT
    accepted: tuple[Ballot, View] | None = None
    walking: bool = False
    """A ballot was promised and no view committed since: members may stand halted."""
    views: list[View] = []
    spawned: dict[int, tuple[Actor, int]] = {}
    """Rank -> (actor, pid) of the newest incarnation."""
    dead: list[tuple[Actor, Facts]] = []
    evidence: dict[Actor, EventRef] = {}
    """Dead rank -> the first row that was written of its death."""
    exited: list[tuple[Actor, int]] = []
    debts: dict[str, DebtInfo] = {}
    """Open ones."""
    closed_debts: set[str] = set()


class Journal:
    """Append-only; ``memory`` is what it held at opening.

    Raises:
        JournalLost: as ``append``.
    """

    def __init__(self, path: Path) -> None:
        self.memory = Memory()
        end = spool_format.HEADER.size
        fresh = not path.exists() or path.stat().st_size < end
        self._fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        if fresh:
            self._write(spool_format.pack_header(0), 0)
        else:
            for item in spool_format.read_records(path.read_bytes()):
                if isinstance(item, spool_format.Torn):
                    break
                _apply(self.memory, bytes(item))
                end += spool_format.RECORD.size + len(item)
            os.ftruncate(self._fd, end)  # a torn tail was never acted on
        self._end = end
        self.append("started", None)

    @staticmethod
    def read(path: Path) -> Memory:
        """What the journal at ``path`` holds, for readers that are not its agent."""
        memory = Memory()
        try:
            data = path.read_bytes()
        except OSError:
            return memory
        for item in spool_format.read_records(data):
            if isinstance(item, spool_format.Torn):
                break
            _apply(memory, bytes(item))
        return memory

    def append(self, what: str, value: Any) -> None:
        """Remember one fact.

        Raises:
            JournalLost: the disk is full, or fails; an agent that starts again does not know of it.
        """
        payload = msgspec.msgpack.encode((what, value))
        record = spool_format.RECORD.pack(len(payload), zlib.crc32(payload)) + payload
        self._write(record, self._end)
        self._end += len(record)

    def _write(self, data: bytes, at: int) -> None:
        try:
            written = os.pwrite(self._fd, data, at)
        except OSError as error:
            raise JournalLost(f"its journal cannot be written ({error})") from error
        if written != len(data):  # what fitted is a torn tail
            raise JournalLost(f"its journal cannot be written ({written} of {len(data)} bytes)")

    def close(self) -> None:
        """Close the file."""
        os.close(self._fd)


def _apply(memory: Memory, payload: bytes) -> None:
    what, value = msgspec.msgpack.decode(payload)
    match what:
        case "started":
            memory.num_starts += 1
        case "promised":
            memory.promised = msgspec.convert(value, Ballot)
            memory.walking = True
        case "accepted":
            memory.accepted = msgspec.convert(value, tuple[Ballot, View])
        case "committed":
            memory.views.append(msgspec.convert(value, View))
            memory.walking = False
        case "spawned":
            actor, pid = msgspec.convert(value, tuple[Actor, int])
            memory.spawned[actor.rank] = (actor, pid)
        case "dead":
            memory.dead.append(msgspec.convert(value, tuple[Actor, Facts]))
        case "evidence":
            actor, ref = msgspec.convert(value, tuple[Actor, EventRef])
            memory.evidence.setdefault(actor, ref)
        case "exited":
            memory.exited.append(msgspec.convert(value, tuple[Actor, int]))
        case "debt_opened":
            debt = msgspec.convert(value, DebtInfo)
            memory.debts[debt.debt_id] = debt
        case "debt_closed":
            memory.debts.pop(value, None)
            memory.closed_debts.add(value)
