"""Rows as a table that people read on a terminal."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import msgspec

_WIDEST_CELL = 160
_NARROWEST_CELL = 6
_GAP = "  "


def text_table(names: Sequence[str], rows: Sequence[Sequence[Any]], width: int | None) -> str:
    """Rows below their names, numbers to the right; what is too wide is cut and marked with ``…``.

    Args:
        names: the columns' names.
        rows: values as ``plain_values`` gives them.
        width: of the terminal; texts give way before numbers do, columns that have no room at all
            are left out, and the last line names them. None cuts nothing.
    """
    cells = [[_cell(value) for value in row] for row in rows]
    head = [_printable(name) for name in names]
    columns = list(range(len(names)))
    widths = [max([_width(head[i]), *(_width(row[i]) for row in cells)]) for i in columns]
    numbers = {i for i in columns if rows and all(_is_number(row[i]) for row in rows)}
    if width is not None:
        widths = _fit([min(_WIDEST_CELL, w) for w in widths], width, numbers)
    shown = columns[: len(widths)]
    lines = [
        _line([head[i] for i in shown], widths, numbers),
        _GAP.join("-" * w for w in widths),
        *(_line([row[i] for i in shown], widths, numbers) for row in cells),
    ]
    left = ", ".join(head[len(widths) :])
    if left:
        lines.append(f"(no room for: {left})")
    return "\n".join(lines) + "\n"


def _fit(wanted: Sequence[int], width: int, numbers: set[int]) -> list[int]:
    """Widths that fit: columns without room for a least width go, then the widest texts give, then numbers."""
    least = [min(w, _NARROWEST_CELL) for w in wanted]
    num = len(least)
    while num > 1 and _total(least[:num]) > width:
        num -= 1
    widths = list(wanted[:num])
    texts = [i for i in range(num) if i not in numbers]
    for giving in (texts, range(num)):
        while _total(widths) > width and giving:
            widest = max(giving, key=widths.__getitem__)
            if widths[widest] <= _NARROWEST_CELL:
                break
            widths[widest] -= 1
    return widths


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + len(_GAP) * (len(widths) - 1)


def _line(cells: Sequence[str], widths: Sequence[int], numbers: set[int]) -> str:
    padded = []
    for i, (cell, width) in enumerate(zip(cells, widths, strict=True)):
        cut = _cut(cell, width)
        space = " " * (width - _width(cut))
        padded.append(space + cut if i in numbers else cut + space)
    return _GAP.join(padded).rstrip()


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return f"{value:.6g}" if value else "0"
    if isinstance(value, dict | list):
        return _printable(msgspec.json.encode(value).decode())
    return _printable(str(value))


def _is_number(value: Any) -> bool:
    return value is None or (
        isinstance(value, int | float | Decimal) and not isinstance(value, bool)
    )


def _printable(text: str) -> str:
    """Without what a terminal would obey: a trace may be anybody's."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def _width(text: str) -> int:
    """Columns on the screen; east Asian letters take two."""
    if text.isascii():
        return len(text)
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def _cut(text: str, width: int) -> str:
    if _width(text) <= width:
        return text
    kept = ""
    for c in text:
        if _width(kept + c) > width - 1:
            break
        kept += c
    return kept + "…"
