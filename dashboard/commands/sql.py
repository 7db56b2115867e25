"""``cascade sql``: a question in SQL to a trace, to a data folder or to a live collector."""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import sys
from collections.abc import Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dashboard.commands._verb import Verb

if TYPE_CHECKING:
    import httpx
    import pyarrow as pa

    from collector.sql.local import Answer
    from collector.trace.trace_folder import TraceFolder

_FORMATS = ("table", "csv", "json", "parquet")
_ROWS_OF_A_TABLE = 100
_ROWS_OVER_HTTP = 10_000
_NO_LIMIT = 1 << 62
_TRUNCATED = "cascade-truncated"
_BUSY_S = 6.0
"""How long a collector that is busy, or being opened again, is asked again."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument(
        "target",
        metavar="TARGET",
        help="a trace folder, a .cascade.zip, a sample, a data folder, or a collector's http(s) URL",
    )
    parser.add_argument(
        "sql",
        metavar="SQL",
        nargs="?",
        help="one SELECT; - reads it from stdin; without it the tables and views are listed",
    )
    parser.add_argument(
        "--format", choices=_FORMATS, help="of the answer; by FILE's ending, else table"
    )
    parser.add_argument("--json", action="store_true", help="the same as --format json")
    parser.add_argument("-o", "--output", metavar="FILE", help="write the answer to FILE")
    parser.add_argument("--run", metavar="RUN_ID", help="this run only")
    parser.add_argument("--limit", metavar="N", type=int, help="at most N rows")


def run(args: argparse.Namespace) -> int:
    """Print the answer; 0.

    Raises:
        BadTrace: no such trace or sample, or one that cannot be read.
        BadUsage: the statement fails, writes, or is not one; the options do not go together.
        CollectorRefused, CollectorAway: see collector.client.
    """
    from cascade_runtime.vocabulary.errors import BadUsage

    form = args.format or ("json" if args.json else _form_of(args.output))
    if args.json and form != "json":
        raise BadUsage(f"--json and --format {form} do not go together")
    if args.limit is not None and args.limit < 0:
        raise BadUsage("--limit counts rows from 0", where=f"--limit {args.limit}")
    if form == "parquet" and args.output is None and sys.stdout.isatty():
        raise BadUsage("Parquet is not for the screen", hint="give -o FILE, or send it into a pipe")
    if args.sql is None:
        return _list(args, form)
    sql = sys.stdin.read() if args.sql == "-" else args.sql
    if _is_url(args.target):
        _ask_collector(args, sql, form)
    else:
        _ask_here(args, sql, form)
    return 0


def _form_of(output: str | None) -> str:
    """The format that a file's name asks for; a table for people where it asks for none."""
    ending = Path(output).suffix.removeprefix(".").lower() if output else ""
    return ending if ending in _FORMATS else "table"


def _ask_here(args: argparse.Namespace, sql: str, form: str) -> None:
    import duckdb

    from cascade_runtime.vocabulary.errors import BadUsage

    limit = args.limit if args.limit is not None else _NO_LIMIT
    try:
        with _local(args, sql) as answer:
            if form == "table":
                _print_table(args, answer)
            elif form == "parquet":
                _put(args, _parquet(answer, limit))
            else:
                _put(args, _encoded(answer, form, limit))
    except duckdb.Error as error:  # an answer comes as it is read: it may fail half-way
        raise BadUsage(str(error).strip()) from error


def _local(args: argparse.Namespace, sql: str) -> AbstractContextManager[Answer]:
    from collector.sql.local import asked_of_data, asked_of_trace, is_data_folder
    from collector.trace.samples import resolve_trace

    path = Path(args.target)
    if is_data_folder(path):
        return asked_of_data(path, sql, args.run)
    return asked_of_trace(resolve_trace(args.target), sql, args.run, analyze=_results)


def _results(source: TraceFolder) -> Mapping[str, pa.Table]:
    """Result tables of a trace that was not analyzed with ``--write``."""
    from analyzer import analyze

    return analyze(source).results


def _print_table(args: argparse.Namespace, answer: Answer) -> None:
    from collector.sql.plain import plain_values

    most = _NO_LIMIT if args.output else _ROWS_OF_A_TABLE  # a file is not read on a screen
    limit = args.limit if args.limit is not None else most
    rows: list[Any] = []
    total = 0
    for batch in answer.batches:
        total += batch.num_rows
        part = batch.slice(0, max(0, limit - len(rows)))
        rows += zip(*(plain_values(column) for column in part.columns), strict=True)
    _put_table(args, answer.names, rows, f"{total:,}" if total > len(rows) else None)


def _put_table(args: argparse.Namespace, names: list[str], rows: list[Any], of: str | None) -> None:
    from collector.sql.table import text_table

    text = text_table(names, rows, _width(args))
    if of is not None:
        text += f"({len(rows):,} of {of} rows; --limit N shows more)\n"
    elif not rows:
        text += "(no rows)\n"
    _put(args, text.encode("utf-8", "replace"))


def _width(args: argparse.Namespace) -> int | None:
    """Of the terminal, or as COLUMNS says; None for a file or a pipe: who reads that can scroll."""
    if args.output or not (sys.stdout.isatty() or os.environ.get("COLUMNS", "").isdigit()):
        return None
    return shutil.get_terminal_size().columns


def _encoded(answer: Answer, form: str, limit: int) -> bytes:
    from collector.sql.encode import encode

    body = encode(
        answer.batches,
        answer.names,
        answer.types,
        "json" if form == "json" else "csv",
        limit=limit,
        max_bytes=_NO_LIMIT,
    )
    return body.data + (b"\n" if form == "json" else b"")


def _parquet(answer: Answer, limit: int) -> bytes:
    return _parquet_bytes(answer.batches.read_all(), answer.names, limit)


def _parquet_bytes(table: pa.Table, names: list[str], limit: int) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    from cascade_runtime.vocabulary.errors import BadUsage

    out = pa.BufferOutputStream()
    try:
        pq.write_table(table.slice(0, limit).rename_columns(names), out, compression="zstd")
    except pa.ArrowException as error:
        hint = "give columns names of their own, and cast what Parquet has no type for"
        raise BadUsage(f"this answer is not one for Parquet: {error}", hint=hint) from error
    data: bytes = out.getvalue().to_pybytes()
    return data


# --- a live collector ----------------------------------------------------------------------------


def _is_url(target: str) -> bool:
    return target.startswith(("http://", "https://"))


def _ask_collector(args: argparse.Namespace, sql: str, form: str) -> None:
    default = _ROWS_OF_A_TABLE if form == "table" else _ROWS_OVER_HTTP
    limit = args.limit if args.limit is not None else default
    if form == "parquet":
        import pyarrow as pa
        import pyarrow.ipc

        answer = _post(args, sql, "arrow", limit)
        table = pa.ipc.open_stream(answer.content).read_all()
        _put(args, _parquet_bytes(table, table.column_names, limit))
        # An Arrow stream has no place to say that there were more.
        _tell_cut(answer.headers.get(_TRUNCATED) == "true", limit)
        return
    data = _post(args, sql, "json", limit).content
    names, rows, truncated = _parsed(args, data)
    if form == "table":
        _put_table(args, names, rows, "more" if truncated else None)
        return
    _put(args, data + b"\n" if form == "json" else _csv(names, rows))
    _tell_cut(truncated, limit)


def _tell_cut(truncated: bool, limit: int) -> None:
    if truncated:
        print(f"cascade sql: only the first {limit:,} rows; --limit N gives more", file=sys.stderr)


def _post(args: argparse.Namespace, sql: str, form: str, limit: int) -> httpx.Response:
    import msgspec

    from cascade_runtime.vocabulary.collector_address import token_from_environment
    from collector.client import Client, readable_on_the_way

    token = token_from_environment()
    body: dict[str, Any] = {"sql": sql, "format": form, "limit": limit}
    if args.run is not None:
        body["run_id"] = args.run
    client = Client(args.target, token, scope="read", timeout_s=_BUSY_S, wait_for_it=False)
    warning = readable_on_the_way(client.url, token)
    if warning is not None:
        print(f"cascade sql: {warning}", file=sys.stderr)
    with contextlib.closing(client):
        return client.ask("POST", "/v1/sql", content=msgspec.json.encode(body))


def _parsed(args: argparse.Namespace, data: bytes) -> tuple[list[str], list[Any], bool]:
    import msgspec

    from cascade_runtime.vocabulary.errors import BadUsage

    try:
        answer = msgspec.json.decode(data)
        names = [str(column["name"]) for column in answer["columns"]]
        return names, list(answer["rows"]), bool(answer["truncated"])
    except (msgspec.MsgspecError, KeyError, TypeError) as error:
        message = "this is not the answer of a collector"
        raise BadUsage(message, where=args.target, hint="check the address") from error


def _csv(names: list[str], rows: list[Any]) -> bytes:
    from collector.sql.encode import csv_text

    return (csv_text([names]) + csv_text(rows)).encode("utf-8", "replace")


# --- what there is to ask ------------------------------------------------------------------------


def _list(args: argparse.Namespace, form: str) -> int:
    """Tables and named views, one line each."""
    from cascade_runtime.vocabulary.schema import EVENT_TABLES, RESULT_TABLES
    from collector.schema.views import named_views

    if _is_url(args.target):
        _post(args, "SELECT 1", "json", 1)  # a wrong address or token is told here too
    else:
        with _local(args, "SELECT 1"):
            pass
    rows = [
        *((table.name, "event table", table.doc) for table in EVENT_TABLES.values()),
        *((table.name, "result table", table.doc) for table in RESULT_TABLES.values()),
        *((view.name, "named view", view.doc) for view in sorted(named_views().values())),
    ]
    names = ["name", "kind", "says"]
    if form == "table":
        _put_table(args, names, rows, None)
    elif form == "csv":
        _put(args, _csv(names, rows))
    else:
        import pyarrow as pa

        from collector.sql.local import Answer

        table = pa.Table.from_arrays([pa.array(c) for c in zip(*rows, strict=True)], names=names)
        answer = Answer(table.to_reader(), names, ["VARCHAR"] * len(names))
        _put(
            args,
            _parquet(answer, len(rows)) if form == "parquet" else _encoded(answer, form, len(rows)),
        )
    return 0


def _put(args: argparse.Namespace, data: bytes) -> None:
    from cascade_runtime.vocabulary.errors import BadUsage

    if args.output is None:
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
        return
    try:
        Path(args.output).write_bytes(data)
    except OSError as error:
        message = f"this file cannot be written: {error.strerror or error}"
        raise BadUsage(message, where=args.output) from error


PLUGIN = Verb("sql", "ask", "ask a trace or a collector in SQL", add_arguments, run)
