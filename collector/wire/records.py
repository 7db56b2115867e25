"""Bodies of records: one MessagePack array of them, or one record a line as JSON.

A body of the usual kind is scanned in compiled code, 0.4 us a record, and its records are not made
before somebody asks for them. Where the scan finds anything else, the codec decodes the whole array in
one call, 1.6 us a record (one by one it takes 10), and says what is wrong.
"""

from __future__ import annotations

import io
import re
from functools import partial
from typing import Any

import msgspec

from cascade_runtime.vocabulary import codec
from cascade_runtime.vocabulary.events import CollectiveDone, Record
from cascade_runtime.vocabulary.schema import EVENT_TABLES
from collector.schema.words import NARROWED, breaks_words
from collector.wire.batch import MSGPACK, NDJSON, BadBatch, Batch, Scan
from collector.wire.run_ids import check_run_id, fits_a_path
from collector.wire.scan import scan_body

MAX_RECORDS = 100_000
"""Records of one body. They are decoded in one call that holds the interpreter lock, 0.2 s for these,
and cost up to a kilobyte of memory each; larger batches come as Arrow."""

MAX_BODY = 16 << 20
"""Bytes of one body of records, unpacked: small lists in it may become thirty times as large."""

LEAST_SCANNED = 100
"""Records from which on a scan pays: it costs some 0.2 ms whatever there is, in calls into numpy."""

_STRUCTS: dict[str, type[msgspec.Struct]] = {
    **{name: table.struct for name, table in EVENT_TABLES.items()},
    "collective_done": CollectiveDone,
}
_NULLABLE = {(t.name, c.name) for t in EVENT_TABLES.values() for c in t.columns if c.nullable}
_from_msgpack = msgspec.msgpack.Decoder(list[Record])
_from_json = msgspec.json.Decoder(list[Record])
_PLACE = re.compile(r" - at `\$\[(\d+)\](?:\[(\d+)\])?")
_ARRAY32 = 0xDD


def decode_msgpack(body: bytes) -> Batch:
    """A MessagePack array of records.

    Raises:
        BadBatch: no such array; a record that breaks the schema (number and field are named).
    """
    _check_size(body)
    length = array_length(body)
    _check_count(length)
    scan = scan_body(body, length) if length >= LEAST_SCANNED else None
    if scan is not None and fits_a_path(scan.run_id):
        return batch_of_scan(body, scan)
    try:
        records = _from_msgpack.decode(body)
    except RecursionError as error:
        raise BadBatch("values are nested too deep for an event", where="body") from error
    except msgspec.MsgspecError as error:
        raise _refusal(error, body, msgspec.msgpack.decode, "record") from error
    return _checked(MSGPACK, body, records, "record", list(range(1, len(records) + 1)))


def batch_of_scan(body: bytes, scan: Scan) -> Batch:
    """The batch of a body in which all is as it must be; its records are made on demand."""
    make = partial(_from_msgpack.decode, body)
    return Batch(MSGPACK, body, None, None, len(scan.kinds), scan=scan, make_records=make)


def decode_ndjson(body: bytes) -> Batch:
    """Records as JSON, one a line: arrays as in the spool, or objects with the key ``table``.

    Raises:
        BadBatch: a line that is no record; line and field are named.
    """
    _check_size(body)
    lines: list[bytes] = []
    numbers: list[int] = []
    for number, raw in enumerate(io.BytesIO(body), start=1):
        line = raw.strip()
        if line:
            _check_count(len(lines) + 1)
            lines.append(_from_object(line, number) if line.startswith(b"{") else line)
            numbers.append(number)
    try:
        records = _from_json.decode(b"[" + b",".join(lines) + b"]")
    except (RecursionError, msgspec.MsgspecError):
        records = []
    if len(records) != len(lines):  # also where a line holds two records, or a part of one
        records = [_one_line(line, number) for line, number in zip(lines, numbers, strict=True)]
    return _checked(NDJSON, body, records, "line", numbers)


def encode_msgpack(records: list[Record]) -> bytes:
    """Records as the body that ``decode_msgpack`` takes."""
    return msgspec.msgpack.encode(records)


def _check_count(num_rows: int) -> None:
    if num_rows > MAX_RECORDS:
        raise BadBatch(
            f"more than {MAX_RECORDS} records in one body",
            where="body",
            hint="send smaller batches",
        )


def _check_size(body: bytes) -> None:
    if len(body) > MAX_BODY:
        raise BadBatch(
            f"{len(body)} bytes of records in one body are more than {MAX_BODY}",
            where="body",
            hint="send smaller batches, or Arrow",
        )


def array_length(body: bytes) -> int:
    """The length that the body's first byte announces; 0 when it is no array (decoding will say so)."""
    first = body[0] if body else 0
    if first == _ARRAY32:
        return int.from_bytes(body[1:5], "big")
    if first == _ARRAY32 - 1:
        return int.from_bytes(body[1:3], "big")
    return first & 0x0F if first & 0xF0 == 0x90 else 0


def _checked(
    media_type: str, body: bytes, records: list[Record], unit: str, numbers: list[int]
) -> Batch:
    run_id: str | None = None
    for number, record in zip(numbers, records, strict=True):
        if record.run_id != run_id:
            run_id = record.run_id
            check_run_id(run_id, f"{unit} {number}: run_id")
        if type(record) in NARROWED:
            wrong = breaks_words(record)  # type: ignore[arg-type]  # NARROWED holds events only
            if wrong is not None:
                tag = type(record).__struct_config__.tag
                raise BadBatch(f"{wrong}, which it may not be", where=f"{unit} {number}: {tag}")
    return Batch(media_type, body, records, None, len(records))


def _one_line(line: bytes, number: int) -> Record:
    try:
        return codec.from_json(line)
    except msgspec.MsgspecError as error:
        one = msgspec.MsgspecError(str(error).replace("`$", "`$[0]"))
        raise _refusal(one, b"[" + line + b"]", msgspec.json.decode, "line", number) from error


def _from_object(line: bytes, number: int) -> bytes:
    """A record given as an object, in the array form."""
    where = f"line {number}"
    try:
        fields = msgspec.json.decode(line, type=dict[str, Any])
    except (msgspec.MsgspecError, RecursionError) as error:
        raise BadBatch(f"this is no JSON object: {error}", where=where) from error
    table = fields.pop("table", None)
    struct = _STRUCTS.get(table) if isinstance(table, str) else None
    if struct is None:
        raise BadBatch(f"{table!r} is no table of the schema", where=f"{where}: table")
    unknown = sorted(set(fields) - set(struct.__struct_fields__))
    if unknown:
        raise BadBatch("the table has no such column", where=f"{where}: {table}.{unknown[0]}")
    values: list[Any] = []
    for column in msgspec.structs.fields(struct):
        if column.name in fields:
            values.append(fields[column.name])
        elif column.required and (table, column.name) not in _NULLABLE:
            raise BadBatch("this column is missing", where=f"{where}: {table}.{column.name}")
        else:
            values.append(None if column.required else column.default)
    return msgspec.json.encode([table, *values])


def _refusal(
    error: Exception, body: bytes, loosely: Any, unit: str, number: int | None = None
) -> BadBatch:
    """The decoder's complaint, with record and field instead of positions."""
    text = str(error)
    place = _PLACE.search(text)
    if place is None:
        where = "body" if number is None else f"{unit} {number}"
        return BadBatch(f"this is not a batch of records: {text}", where=where)
    index = int(place[1])
    where = f"{unit} {index + 1 if number is None else number}"
    what = text[: place.start()]
    try:
        record = loosely(body)[index]
    except (msgspec.MsgspecError, RecursionError, IndexError):
        record = None
    table = record[0] if isinstance(record, list) and record else None
    struct = _STRUCTS.get(table) if isinstance(table, str) else None
    if struct is None:
        return BadBatch(f"{what} ({table!r} is no table of the schema)", where=where)
    if place[2] is None:
        return BadBatch(what, where=f"{where}: {table}")
    field = int(place[2]) - 1
    names = struct.__struct_fields__
    column = names[field] if 0 <= field < len(names) else str(field)
    return BadBatch(what, where=f"{where}: {table}.{column}")
