"""Reads the two text forms in which histories of databases are passed around.

- Blocks: ``r KEY VALUE`` and ``w KEY VALUE``, a line each; a line of dashes ends a transaction, a line of
  equals signs a session.
- One operation a line: ``r(KEY,VALUE,SESSION,TRANSACTION)`` and ``w(...)``, in the order of each session.

Keys and values are whole numbers. The initial value is 0. In blocks a 0 that is written is the initial value
written out, as histories in that form do it; in the other form it is one more 0.
"""

from __future__ import annotations

from pathlib import Path

import numba
import numpy as np
import numpy.typing as npt

from analyzer.columns import Ints
from analyzer.database.history import DatabaseHistory
from cascade_runtime.vocabulary.errors import BadTrace

Bytes = npt.NDArray[np.uint8]

_READ, _WRITE, _END_TRANSACTION, _END_SESSION = 0, 1, 2, 3
_LARGEST = 2**62
_HEAD = 4096


def read_history(path: Path) -> DatabaseHistory:
    """The history in a text file, whichever of the two forms it has.

    Raises:
        BadTrace: a line has neither form, a number is out of range, or there is no operation.
    """
    data = np.frombuffer(path.read_bytes(), dtype=np.uint8)
    kind, numbers, line, fault = _lines(data)
    if fault:
        raise BadTrace(
            f"line {fault} is no operation of a history",
            where=str(path),
            hint="a line is `r KEY VALUE`, `w KEY VALUE`, dashes, equals signs, or "
            "`r(KEY,VALUE,SESSION,TRANSACTION)`, the same form in all of the file",
        )
    operations = kind <= _WRITE
    if not operations.any():
        raise BadTrace("the file holds no operation", where=str(path))
    key, value = numbers[operations, 0], numbers[operations, 1]
    by_lines = bool(numbers[operations, 2].min() >= 0)
    if by_lines:
        session, transaction = numbers[operations, 2], numbers[operations, 3]
    else:
        session = np.cumsum(kind == _END_SESSION)[operations]
        transaction = np.cumsum(kind >= _END_TRANSACTION)[operations]
    order = np.argsort(session, kind="stable")
    session, transaction = session[order], transaction[order]
    new = np.ones(len(order), dtype=np.bool_)
    new[1:] = (session[1:] != session[:-1]) | (transaction[1:] != transaction[:-1])
    names, number = np.unique(session[new], return_inverse=True)
    return DatabaseHistory(
        is_write=(kind[operations] == _WRITE)[order],
        key=key[order],
        value=value[order],
        transaction=(np.cumsum(new) - 1).astype(np.int64),
        session=number.astype(np.int64),
        names=names,
        line=line[operations][order],
        zero_is_initial=by_lines,
    )


def looks_like_history(path: Path) -> bool:
    """True when a file begins as one of the two forms does."""
    try:
        with path.open("rb") as file:
            head = file.read(_HEAD)
    except OSError:
        return False
    # A line that is cut in two says nothing.
    whole = head if len(head) < _HEAD else head[: head.rfind(b"\n") + 1]
    kind, _, _, fault = _lines(np.frombuffer(whole, dtype=np.uint8))
    return not fault and bool((kind <= _WRITE).any())


@numba.njit(cache=True)
def _lines(data: Bytes) -> tuple[Ints, Ints, Ints, int]:
    """(kind of each line, its numbers, its number, the line that is at fault or 0); blank ones left out.

    The numbers are key, value, session and transaction; -1 where the form has none.
    """
    n = len(data)
    total = 1
    for byte in data:
        total += byte == 10
    kind = np.empty(total, dtype=np.int64)
    numbers = np.full((total, 4), -1, dtype=np.int64)
    line = np.empty(total, dtype=np.int64)
    found, at, number, form = 0, 0, 0, 0
    while at < n:
        number += 1
        end = at
        while end < n and data[end] != 10:
            end += 1
        stop = end
        while stop > at and (data[stop - 1] == 13 or data[stop - 1] == 32):
            stop -= 1
        if stop > at:
            first = data[at]
            if first == 45 or first == 61:  # - or =
                for i in range(at, stop):
                    if data[i] != first:
                        return kind, numbers, line, number
                kind[found] = 2 if first == 45 else 3
            elif first == 114 or first == 119:  # r or w
                kind[found] = 0 if first == 114 else 1
                count = _numbers(data, at + 1, stop, numbers[found])
                if (count != 2 and count != 4) or (form and form != count):
                    return kind, numbers, line, number
                form = count
            else:
                return kind, numbers, line, number
            line[found] = number
            found += 1
        at = end + 1
    return kind[:found], numbers[:found], line[:found], 0


@numba.njit(cache=True)
def _numbers(data: Bytes, at: int, stop: int, into: Ints) -> int:
    """How many numbers stand there; 0 where something else does, or one is out of range."""
    count = 0
    inside = False
    for i in range(at, stop):
        byte = data[i]
        if 48 <= byte <= 57:
            if not inside:
                if count == 4:
                    return 0
                into[count] = 0
                count += 1
                inside = True
            into[count - 1] = into[count - 1] * 10 + (byte - 48)
            if into[count - 1] > _LARGEST // 10:
                return 0
        elif byte == 32 or byte == 44 or byte == 40 or byte == 41 or byte == 9:  # space , ( ) tab
            inside = False
        else:
            return 0
    return count
