"""Asks the SQL of the box, and makes what the page shows of the answer."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import msgspec

from cascade_runtime.vocabulary.errors import CascadeError
from collector.sql.service import SqlRequest
from collector.web.sql import SqlRunner
from dashboard.shell.words import count, duration

CAP = 10_000
"""Rows that are shown."""

MOST_CELLS = 200_000
"""Of wide answers fewer rows are shown: all of it is one message to the browser, made in one go."""

_decode = msgspec.json.Decoder(float_hook=Decimal).decode
"""Digits as they were written: a DECIMAL may have more of them than a float holds."""

_EXACT = 1 << 53
"""Beyond it a browser's numbers have holes: larger ones are shown as text, all their digits."""

_encode = msgspec.json.Encoder(decimal_format="number").encode

_POSITION = re.compile(r"^LINE (\d+): ", re.MULTILINE)
_NAMED = re.compile(r"""(?:column|with name|table or view) ["']?(\w+)""")
_NUMBERS = re.compile(r"(U?(TINY|SMALL|BIG|HUGE)INT|U?INTEGER|FLOAT|DOUBLE|DECIMAL.*)")


@dataclass(frozen=True)
class Shown:
    """An answer as the page shows it.

    Attributes:
        said: rows and time in words.
        columns: name and DuckDB type of each.
        rows: values by ``c0``, ``c1``, ...: names of columns may repeat.
        numbers: which columns are numbers a browser holds exactly.
        truncated: there were more rows than are shown.
    """

    said: str
    columns: list[tuple[str, str]]
    rows: list[dict[str, Any]]
    numbers: list[bool]
    truncated: bool


@dataclass(frozen=True)
class Refused:
    """Why there is no answer.

    Attributes:
        message: DuckDB's or ours; with the line and a caret where it is about a place.
        hint: what to do.
        line, column: of the place in the statement, from 1; None where none is told.
    """

    message: str
    hint: str
    line: int | None = None
    column: int | None = None


def ask(sql: SqlRunner, text: str, run_id: str | None) -> Shown | Refused:
    """Ask a statement; in a thread, it may take as long as its limits allow."""
    began = time.perf_counter()
    try:
        answer = sql.run(SqlRequest(text, run_id=run_id, format="json", limit=CAP))
    except CascadeError as error:
        return _refused(error, text)
    took_s = time.perf_counter() - began
    parsed = _decode(answer.body)
    columns = [(str(c["name"]), str(c["type"])) for c in parsed["columns"]]
    found = parsed["rows"]
    shown = found[: max(1, MOST_CELLS // max(1, len(columns)))]
    numbers = [
        _NUMBERS.fullmatch(kind) is not None and all(_exact(row[i]) for row in shown)
        for i, (_, kind) in enumerate(columns)
    ]
    rows = [{f"c{i}": _plain(value, numbers[i]) for i, value in enumerate(row)} for row in shown]
    said = f"{count(len(rows))} {'row' if len(rows) == 1 else 'rows'}"
    if answer.truncated:
        said = f"the first {count(len(rows))} {_behind(sql, text, run_id)}"
    elif len(shown) < len(found):
        said = f"the first {count(len(rows))} of {count(len(found))} rows"
    is_cut = answer.truncated or len(shown) < len(found)
    return Shown(f"{said}, {duration(took_s)}", columns, rows, numbers, is_cut)


def _behind(sql: SqlRunner, text: str, run_id: str | None) -> str:
    """How much the cap hides: asked for only when it hides something."""
    statement = text.strip().rstrip(";")
    asked = f"SELECT count(*) AS num FROM (\n{statement}\n) AS asked"  # noqa: S608  # confined, as all here
    try:
        answer = sql.run(SqlRequest(asked, run_id=run_id, format="json", limit=1))
        total = int(msgspec.json.decode(answer.body)["rows"][0][0])
    except (CascadeError, LookupError, TypeError, ValueError):
        return "rows; there are more"
    return f"of {count(total)} rows"


def _refused(error: CascadeError, text: str) -> Refused:
    found = _POSITION.search(error.message)
    if found is None:
        return Refused(error.message, error.hint, *_place_of_name(error.message, text))
    # DuckDB quotes the line and puts a caret under the place, both behind "LINE n: ".
    caret = re.search(r"^( *)\^", error.message[found.end() :], re.MULTILINE)
    quoted = error.message[found.end() :].partition("\n")[0]
    column = len(caret[1]) - len(found[0]) + 1 if caret and not quoted.startswith("...") else None
    column = None if column is None or column < 1 else column
    return Refused(error.message, error.hint, int(found[1]), column)


def _place_of_name(message: str, text: str) -> tuple[int | None, int | None]:
    """Where the name stands that a message is about, when DuckDB tells no place and it stands once."""
    named = _NAMED.search(message)
    places = re.findall(rf"\b{re.escape(named[1])}\b", text) if named else []
    if named is None or len(places) != 1:
        return None, None
    at = re.search(rf"\b{re.escape(named[1])}\b", text)
    assert at is not None
    before = text[: at.start()]
    return before.count("\n") + 1, at.start() - (before.rfind("\n") + 1) + 1


def _exact(value: Any) -> bool:
    if value is None:
        return True
    if isinstance(value, Decimal):
        return Decimal(repr(float(value))) == value
    return isinstance(value, int) and abs(value) <= _EXACT


def _plain(value: Any, number: bool) -> Any:
    if value is None:
        return None
    if number:
        return float(value) if isinstance(value, Decimal) else value
    return value if isinstance(value, str) else _encode(value).decode()
