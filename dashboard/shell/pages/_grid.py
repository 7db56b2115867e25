"""Tables: AG Grid, with types said and never guessed, and no text run as code."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import dash_ag_grid as dag
from dash import html

from dashboard.shell.untyped import attributes

_ROW_HEIGHT = 28
_HEAD_HEIGHT = 32
_MOST_ROWS_HIGH = 200
_LEAST_HIGH = 320


def column(
    field: str, head: str | None = None, *, number: bool = False, **more: Any
) -> dict[str, Any]:
    """A column's definition.

    Its type is said: AG Grid would guess it from the first row, and show "Invalid Number" where a
    later one holds words.
    """
    made: dict[str, Any] = {
        "field": field,
        "headerName": field.replace("_", " ").capitalize() if head is None else head,
        "cellDataType": "number" if number else "text",
        "sortable": True,
        "resizable": True,
        "filter": "agNumberColumnFilter" if number else "agTextColumnFilter",
        **more,
    }
    if number:
        made |= {"type": "rightAligned"}
    return made


def link(field: str, head: str, **more: Any) -> dict[str, Any]:
    """A column of links, drawn by assets/90_grid.js: a row has the text, and as ``<field>_href`` where it leads."""
    return column(field, head, cellRenderer="CascadeLink", **more)


def grid(
    rows: Sequence[dict[str, Any]],
    columns: Sequence[dict[str, Any]],
    *,
    label: str,
    above: int = 116,
    **more: Any,
) -> html.Div:
    """A table of rows; as high as they need, up to what the screen has left.

    Args:
        rows: by field.
        columns: made by ``column`` and ``link``.
        label: what it holds, for screen readers.
        above: px of the screen that stand above it.
        more: of dash_ag_grid.AgGrid.
    """
    high = _HEAD_HEIGHT + _ROW_HEIGHT * max(2, min(len(rows), _MOST_ROWS_HIGH)) + 18
    options = {
        "rowHeight": _ROW_HEIGHT,
        "headerHeight": _HEAD_HEIGHT,
        "enableCellTextSelection": True,
        "ensureDomOrder": True,
        "suppressFieldDotNotation": True,
        "animateRows": False,
        "suppressMenuHide": False,  # the column menus show where the pointer is
        **more.pop("options", {}),
    }
    table = dag.AgGrid(
        rowData=list(rows),
        columnDefs=list(columns),
        dashGridOptions=options,
        dangerously_allow_code=False,
        className="cs-grid",
        style={"height": f"min({high}px, max({_LEAST_HIGH}px, 100vh - {above}px))"},
        **more,
    )
    return html.Div(table, role="region", className="cs-table-of", **attributes(aria_label=label))
