"""Records that were scanned, as Arrow columns: no record is made on the way."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from collector.schema.arrow import arrow_schema, arrow_type
from collector.wire.msgpack_native import fields_of, gather, gather_dots
from collector.wire.scan_plan import BOOL, DOTS, FLOAT, INT, NUMBER, PLAN, Ints

_SCRATCH_CELLS = 1 << 20


class _Scratch(threading.local):
    """Room for the cells of one kind, a thread's own: fresh memory costs as much as filling it."""

    def __init__(self) -> None:
        self._numbers = np.empty((2, 0), np.int64)
        self._known = np.empty(0, np.uint8)

    def take(self, num_fields: int, num_rows: int) -> tuple[Ints, Ints, npt.NDArray[np.uint8]]:
        """Cells, sizes and flags for so many fields and rows, with anything in them."""
        num, shape = num_fields * num_rows, (num_fields, num_rows)
        if num > _SCRATCH_CELLS:  # not to be kept
            numbers, known = np.empty((2, num), np.int64), np.empty(num, np.uint8)
        else:
            if num > len(self._known):
                self._numbers, self._known = np.empty((2, num), np.int64), np.empty(num, np.uint8)
            numbers, known = self._numbers[:, :num], self._known[:num]
        return numbers[0].reshape(shape), numbers[1].reshape(shape), known.reshape(shape)


_scratch = _Scratch()


def table_of(name: str, data: np.ndarray, starts: Ints) -> pa.Table:
    """Records of one event table.

    Args:
        name: the table; one of scan_plan.FLAT.
        data: the body, uint8.
        starts: first byte of each record.
    """
    schema = arrow_schema(name)
    arrays = columns_of(name, data, starts, 0, [field.type for field in schema])
    return pa.Table.from_arrays(arrays, schema=schema)


def columns_of(
    name: str, data: np.ndarray, starts: Ints, first: int, types: list[pa.DataType]
) -> list[pa.Array]:
    """The fields from ``first`` on of records of one kind, as arrays of ``types``."""
    kind = NUMBER[name]
    cells, sizes, known = _scratch.take(len(types), len(starts))
    fields_of(data, starts, first, first + len(types), cells, sizes, known)
    return [
        _column(int(PLAN.code[kind, first + f]), dtype, data, cells[f], sizes[f], known[f])
        for f, dtype in enumerate(types)
    ]


def _column(
    code: int, dtype: pa.DataType, data: np.ndarray, cells: Ints, sizes: Ints, known: np.ndarray
) -> pa.Array:
    num = len(cells)
    valid = None if known.all() else pa.py_buffer(np.packbits(known, bitorder="little"))
    if code == INT:
        width = np.int32 if pa.types.is_int32(dtype) else np.int64
        return _array(dtype, num, [valid, pa.py_buffer(cells.astype(width))])
    if code == FLOAT:
        return _array(dtype, num, [valid, pa.py_buffer(cells.copy())])
    if code == BOOL:
        bits = np.packbits(cells.astype(np.uint8), bitorder="little")
        return _array(dtype, num, [valid, pa.py_buffer(bits)])
    ends = np.cumsum(sizes)
    offsets = np.concatenate(([0], ends)).astype(np.int32)
    if code == DOTS:
        return _dots(dtype, data, cells, sizes, offsets, valid)
    text = np.empty(int(ends[-1]) if num else 0, np.uint8)
    gather(data, cells, sizes, ends, text)
    return _array(dtype, num, [valid, pa.py_buffer(offsets), pa.py_buffer(text)])


def _dots(
    dtype: pa.DataType, data: np.ndarray, cells: Ints, sizes: Ints, offsets: Any, valid: Any
) -> pa.Array:
    num = int(offsets[-1])
    rank, incarnation, counter = np.empty((3, num), np.int64)
    gather_dots(data, cells, sizes, rank, incarnation, counter)
    numbers = (rank.astype(np.int32), incarnation.astype(np.int32), counter)
    fields = [pa.array(part) for part in numbers]
    dots = pa.StructArray.from_arrays(fields, fields=list(arrow_type("dot")))
    buffers = [valid, pa.py_buffer(offsets)]
    return pa.Array.from_buffers(dtype, len(cells), buffers, children=[dots])


def _array(dtype: pa.DataType, num: int, buffers: list[Any]) -> pa.Array:
    return pa.Array.from_buffers(dtype, num, buffers)
