"""Rows as the body of an answer: JSON, CSV or an Arrow stream, cut and bounded as they come."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import msgspec
import pyarrow as pa
import pyarrow.ipc

from collector.sql.messages import Format
from collector.sql.plain import plain_values

MEDIA_TYPES: dict[Format, str] = {
    "json": "application/json",
    "csv": "text/csv; charset=utf-8",
    "arrow": "application/vnd.apache.arrow.stream",
}

ROWS_A_BATCH = 2048

_json = msgspec.json.Encoder(decimal_format="number")


class Body(NamedTuple):
    """An encoded answer."""

    data: bytes
    truncated: bool
    num_rows: int


class TooLarge(Exception):
    """The body is larger than it may be."""


def encode(
    batches: pa.RecordBatchReader,
    names: Sequence[str],
    types: Sequence[str],
    form: Format,
    *,
    limit: int,
    max_bytes: int,
) -> Body:
    """Read at most ``limit`` rows and encode them.

    Args:
        batches: the rows; no more of them is read than is needed.
        names: the columns' names.
        types: their DuckDB types.
        form: of the body.
        limit: rows of the body; when there are more, ``truncated`` says so.
        max_bytes: size of the body.

    Raises:
        TooLarge: it would be larger.
    """
    cut = _Cut(batches, limit)
    out = _Bounded(max_bytes)
    if form == "arrow":
        _arrow(cut, batches.schema, names, out)
    elif form == "csv":
        _csv(cut, names, out)
    else:
        _write_json(cut, names, types, out)
    return Body(out.getvalue(), cut.truncated, cut.num_rows)


class _Cut:
    """The first ``limit`` rows, and whether there were more."""

    def __init__(self, batches: pa.RecordBatchReader, limit: int) -> None:
        self._batches = batches
        self._limit = limit
        self.num_rows = 0
        self.truncated = False

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        for batch in self._batches:
            room = self._limit - self.num_rows
            if batch.num_rows > room:
                self.truncated = True
                batch = batch.slice(0, room)  # noqa: PLW2901  # the part of it that is taken
            self.num_rows += batch.num_rows
            if batch.num_rows:
                yield batch
            if self.truncated:
                return


class _Bounded(io.BytesIO):
    def __init__(self, max_bytes: int) -> None:
        super().__init__()
        self._max_bytes = max_bytes

    def write(self, data: Any) -> int:
        if self.tell() + memoryview(data).nbytes > self._max_bytes:
            raise TooLarge
        return super().write(data)


def _arrow(cut: _Cut, schema: pa.Schema, names: Sequence[str], out: _Bounded) -> None:
    named = pa.schema([field.with_name(name) for field, name in zip(schema, names, strict=True)])
    with pa.ipc.new_stream(out, named) as stream:
        for batch in cut:
            stream.write_batch(pa.RecordBatch.from_arrays(batch.columns, schema=named))


def _csv(cut: _Cut, names: Sequence[str], out: _Bounded) -> None:
    out.write(csv_text([names]).encode("utf-8", "replace"))
    for batch in cut:
        columns = [plain_values(column) for column in batch.columns]
        out.write(csv_text(zip(*columns, strict=True)).encode("utf-8", "replace"))


def csv_text(rows: Iterable[Sequence[Any]]) -> str:
    """Rows of plain values as lines of CSV; null is an empty field, nested values are JSON."""
    lines = io.StringIO()
    writer = csv.writer(lines, lineterminator="\n")
    writer.writerows([_csv_cell(value) for value in row] for row in rows)
    return lines.getvalue()


def _csv_cell(value: Any) -> Any:
    if isinstance(value, bool):
        return "true" if value else "false"
    return _json.encode(value).decode() if isinstance(value, dict | list) else value


def _write_json(cut: _Cut, names: Sequence[str], types: Sequence[str], out: _Bounded) -> None:
    columns = [{"name": name, "type": kind} for name, kind in zip(names, types, strict=True)]
    out.write(b'{"columns":' + _json.encode(columns) + b',"rows":[')
    first = True
    for batch in cut:
        rows = list(zip(*(plain_values(column) for column in batch.columns), strict=True))
        out.write((b"" if first else b",") + _json.encode(rows)[1:-1])
        first = False
    out.write(b'],"truncated":' + (b"true" if cut.truncated else b"false") + b"}")
