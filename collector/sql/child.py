"""A child process that runs one stranger's statement and ends.

It is started before there is a statement: it loads what it needs, gives up what it does not need,
says that it is ready and waits. See ``pool.py`` for the other side.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import BinaryIO, TypeVar

import duckdb
import msgspec
import pyarrow as pa

from collector.sql import landlock
from collector.sql.confine import confine_cpu, confine_process, no_more_processes
from collector.sql.encode import MEDIA_TYPES, ROWS_A_BATCH, Body, TooLarge, encode
from collector.sql.errors import SqlFailed, SqlRefused
from collector.sql.guard import Checked, check
from collector.sql.messages import (
    LENGTH,
    RUNS,
    Answer,
    Outcome,
    Question,
    Ready,
    Setup,
    frame,
    needed,
)
from collector.sql.told import told

_T = TypeVar("_T", bound=msgspec.Struct)

_LOCKED = (
    "SET autoinstall_known_extensions = false",
    "SET autoload_known_extensions = false",
    "SET allow_community_extensions = false",
    "SET allow_persistent_secrets = false",
    "SET python_enable_replacements = false",
    "SET enable_external_file_cache = false",
    "SET secret_directory = 'none'",
    "SET temp_directory = ''",
    "SET TimeZone = 'UTC'",
    f"SET allowed_directories = ['{RUNS}/']",
    "SET enable_external_access = false",
    "SET lock_configuration = true",
)


def main() -> None:
    """Serve one question on the pipes that are stdin and stdout; never returns."""
    questions, answers = _own_pipes()
    setup = _receive(questions, Setup)
    if setup is None:
        os._exit(0)
    try:
        confine_process(setup.address_bytes)
        db = _connect(setup)
        _warm_up(db)
        walled = setup.landlock and landlock.read_only_below([setup.runs])
        _lock(db, setup)
        no_more_processes()
    except Exception as error:  # told to the parent: this process has nobody else to tell it to
        _send(answers, Ready(landlock=False, problem=f"{type(error).__name__}: {error}"))
        os._exit(1)
    _send(answers, Ready(walled))
    question = _receive(questions, Question)
    if question is not None:
        confine_cpu(setup.time_s, setup.num_threads)
        answer, body = _answer(db, setup, question)
        _send(answers, answer, body)
    os._exit(0)  # no tidying: what a statement left behind is not to be run


def _own_pipes() -> tuple[BinaryIO, BinaryIO]:
    """The two pipes on numbers of their own, so that nothing printed can pass for an answer."""
    questions, answers = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(nothing, standard)
    os.close(nothing)
    return os.fdopen(questions, "rb"), os.fdopen(answers, "wb")


def _connect(setup: Setup) -> duckdb.DuckDBPyConnection:
    """A database without threads as yet: what the kernel takes away holds for later ones only."""
    config: dict[str, str | bool | int | float | list[str]] = {
        "threads": 1,
        "memory_limit": f"{setup.memory_bytes}B",
    }
    if not duckdb.__version__.startswith("1."):
        config["async_threads"] = 0  # there from DuckDB 2.0
    return duckdb.connect(config=config)


def _lock(db: duckdb.DuckDBPyConnection, setup: Setup) -> None:
    with suppress(duckdb.CatalogException):  # there from DuckDB 2.0; the parent has a clock too
        db.execute(f"SET max_execution_time = {int(setup.time_s * 1000)}")
    db.execute(f"SET threads = {setup.num_threads}")
    for statement in _LOCKED:
        db.execute(statement)


def _warm_up(db: duckdb.DuckDBPyConnection) -> None:
    """Load what is loaded on first use: later no module can be read, and somebody waits."""
    check(db, "EXPLAIN SELECT 1", ())
    for form in MEDIA_TYPES:
        rows = db.sql("SELECT 1 AS i, [now()] AS t, 1.5::DECIMAL(9, 2) AS d, INTERVAL 1 DAY AS n")
        encode(rows.to_arrow_reader(1), *_form(rows), form, limit=9, max_bytes=9999)


def _form(found: duckdb.DuckDBPyRelation) -> tuple[list[str], list[str]]:
    """Names and DuckDB types of the columns."""
    return list(found.columns), [str(kind) for kind in found.types]


def _answer(
    db: duckdb.DuckDBPyConnection, setup: Setup, question: Question
) -> tuple[Answer, bytes]:
    try:
        body = _run(db, setup, question)
    except SqlRefused as error:
        return Answer("refused", told(error.message), error.hint), b""
    except SqlFailed as error:
        return Answer("failed", told(error.message), error.hint), b""
    except TooLarge:
        hint = "ask for fewer rows or columns, or aggregate"
        return Answer(
            "too_large", f"the answer is larger than {setup.output_bytes} bytes", hint
        ), b""
    except (MemoryError, pa.ArrowMemoryError, duckdb.OutOfMemoryException) as error:
        message = f"the statement needs more memory than it may use: {told(str(error), lines=1)}"
        return Answer("too_large", message, "aggregate, or ask about less at a time"), b""
    except duckdb.InterruptException:
        return Answer("too_long"), b""
    except (
        duckdb.Error,
        UnicodeDecodeError,
    ) as error:  # a damaged name in a footer, or in a column
        outcome = _outcome(error)
        return Answer(outcome, told(str(error), lines=1 if outcome == "gone" else 3)), b""
    except Exception as error:  # a fault of ours, in words: nobody reads this process's traceback
        return Answer("failed", f"{type(error).__name__}: {told(str(error))}"), b""
    answer = Answer(
        "ok",
        media_type=MEDIA_TYPES[question.format],
        truncated=body.truncated,
        num_rows=body.num_rows,
        num_bytes=len(body.data),
    )
    return answer, body.data


def _run(db: duckdb.DuckDBPyConnection, setup: Setup, question: Question) -> Body:
    views = question.views
    if question.guard:
        checked = check(db, question.sql, views)
    else:
        checked = Checked(question.sql, frozenset(views), catalog=False)
    # Only what the statement reads is made over files: making such a view opens every one of them.
    wanted = {view.name for view in needed(views, checked.views)}
    for name, view in views.items():
        if name in wanted:
            db.execute(view.sql)
        elif checked.catalog:
            db.execute(view.bare)
    db.execute("BEGIN TRANSACTION READ ONLY")
    found = db.sql(checked.sql)
    if found is None:
        raise SqlFailed("the statement gave no rows")
    names, types = _form(found)
    return encode(
        found.to_arrow_reader(ROWS_A_BATCH),
        names,
        types,
        question.format,
        limit=question.limit,
        max_bytes=setup.output_bytes,
    )


def _outcome(error: duckdb.Error | UnicodeDecodeError) -> Outcome:
    """Whether a file that went away may be the cause: a tail is replaced, a segment is sealed.

    One that is damaged looks the same here; what the Parquet reader says of a damaged footer comes
    as an error of no kind.
    """
    text = str(error)
    if isinstance(error, duckdb.IOException | duckdb.InternalException | UnicodeDecodeError):
        return "gone"
    if type(error) is duckdb.Error:
        return "gone"
    return "gone" if ".parquet" in text and "Permission" not in text else "failed"


def _receive(pipe: BinaryIO, kind: type[_T]) -> _T | None:
    """The next message; None when the other side has gone."""
    head = pipe.read(LENGTH.size)
    if len(head) < LENGTH.size:
        return None
    (length,) = LENGTH.unpack(head)
    data = pipe.read(length)
    return msgspec.msgpack.decode(data, type=kind) if len(data) == length else None


def _send(pipe: BinaryIO, message: msgspec.Struct, body: bytes = b"") -> None:
    pipe.write(frame(message))
    pipe.write(body)
    pipe.flush()
