"""Whole numbers as bytes that deflate well: differences, zigzag, and one plane for each byte."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]


class Columns:
    """Columns of whole numbers one after the other, and where each begins.

    A number is kept as the difference to the one before it in its column (``delta``) or as it is,
    zigzag (0, -1, 1, -2, ... become 0, 1, 2, 3, ...), and its bytes lie apart: first the lowest byte of
    all numbers, then the next, as many as the column's largest number needs.
    """

    def __init__(self) -> None:
        self.head: list[dict[str, Any]] = []
        self._parts: list[bytes] = []
        self._offset = 0

    def add(self, name: str, values: Ints, *, delta: bool) -> None:
        """Add a column; numbers and their differences stay below 2**53."""
        kept = np.diff(values, prepend=0) if delta else values
        coded = np.where(kept < 0, -2 * kept - 1, 2 * kept).astype("<u8")
        planes = (int(coded.max(initial=0)).bit_length() + 7) // 8
        body = coded.view(np.uint8).reshape(-1, 8)[:, :planes].T.tobytes()
        self.head.append(
            {
                "name": name,
                "num": len(values),
                "planes": planes,
                "delta": delta,
                "offset": self._offset,
            }
        )
        self._parts.append(body)
        self._offset += len(body)

    @property
    def body(self) -> bytes:
        """The columns' bytes."""
        return b"".join(self._parts)


def read_column(head: dict[str, Any], body: bytes) -> Ints:
    """One column again, as the file's script reads it."""
    num, planes = head["num"], head["planes"]
    raw = np.frombuffer(body, np.uint8, num * planes, head["offset"]).reshape(planes, num)
    coded = np.zeros(num, np.int64)
    for place in range(planes):
        coded |= raw[place].astype(np.int64) << (8 * place)
    kept = np.where(coded % 2, -(coded + 1) // 2, coded // 2)
    values: Ints = np.cumsum(kept) if head["delta"] else kept
    return values
