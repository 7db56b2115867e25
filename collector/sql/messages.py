"""What the service and its child processes say to each other over two pipes.

Every message is a frame: its length in four bytes, then MessagePack. The child answers each question
with one ``Answer`` frame and the bare body behind it.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import Literal

import msgspec

Format = Literal["json", "csv", "arrow"]

Outcome = Literal["ok", "refused", "failed", "gone", "too_long", "too_large"]
"""How a statement ended; ``gone``: a file went away while it was read, try again."""

RUNS = "runs"
"""How statements call the folder of runs: a link in the working folder, so that no view and no
message of DuckDB holds a path of this machine."""

LENGTH = struct.Struct("!I")

LARGEST_HEADER = 1 << 20
"""An Answer frame is smaller: a child that says otherwise is not to be believed."""


class DataView(msgspec.Struct, frozen=True):
    """One view.

    Attributes:
        name, doc: its name, and what it says.
        needs: the views that it reads.
        sql: its CREATE VIEW.
        bare: its CREATE VIEW over no file, for a statement that only asks which views there are.
    """

    name: str
    doc: str
    needs: tuple[str, ...]
    sql: str
    bare: str


def needed(views: dict[str, DataView], names: Iterable[str]) -> list[DataView]:
    """The views called ``names`` and all that they read, each after those that it reads."""
    found: set[str] = set()
    left = [name for name in names if name in views]
    while left:
        name = left.pop()
        if name not in found:
            found.add(name)
            left += views[name].needs
    return [view for name, view in views.items() if name in found]


class Setup(msgspec.Struct, frozen=True):
    """The first message to a child.

    Attributes:
        runs: the folder of runs, absolute.
        memory_bytes, address_bytes, output_bytes, num_threads, time_s: its limits.
        landlock: whether to give up all other file access, where the kernel can.
    """

    runs: str
    memory_bytes: int
    address_bytes: int
    output_bytes: int
    num_threads: int
    time_s: float
    landlock: bool = True


class Ready(msgspec.Struct, frozen=True):
    """What a child says when it can take a statement.

    Attributes:
        landlock: it has given up all file access but reading the runs.
        problem: why it cannot; empty when it can.
    """

    landlock: bool
    problem: str = ""


class Question(msgspec.Struct, frozen=True):
    """The one statement that a child runs.

    Attributes:
        sql: its text.
        views: all views by name; those that the statement reads are made.
        format: of the body.
        limit: rows of the answer.
        guard: False runs it unchecked; for tests of the walls behind the guard.
    """

    sql: str
    views: dict[str, DataView]
    format: Format
    limit: int
    guard: bool = True


class Answer(msgspec.Struct, frozen=True):
    """How it went; ``num_bytes`` of body follow."""

    outcome: Outcome
    message: str = ""
    hint: str = ""
    media_type: str = ""
    truncated: bool = False
    num_rows: int = 0
    num_bytes: int = 0


def frame(message: msgspec.Struct) -> bytes:
    """A message as it goes through a pipe."""
    data = msgspec.msgpack.encode(message)
    return LENGTH.pack(len(data)) + data
