"""Summary charts of a run, each with its statement and its table."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from dash import MATCH, Dash, Input, Output, dcc, html

from cascade_runtime.vocabulary.errors import CascadeError
from cascade_runtime.vocabulary.plug import discover
from dashboard import panels
from dashboard.panels._panel import Figure, Panel
from dashboard.shell.context import Shell
from dashboard.shell.pages._page import Content, Page, failed, notice, so_far, title
from dashboard.shell.paths import Place, address
from dashboard.shell.untyped import attributes, in_browser
from dashboard.story.source import RunSource

_MOST_ROWS = 1000
_CONFIG: Any = {
    "displaylogo": False,
    "responsive": True,
    "showTips": False,
    "toImageButtonOptions": {},
}
_BUTTONS = ["select2d", "lasso2d", "autoScale2d"]


def _content(shell: Shell, place: Place, query: dict[str, str]) -> Content:
    run_id = str(place.run_id)
    source = shell.source(run_id)
    found: dict[str, Panel] = discover(panels)
    parts: Content = [title("Waits, regimes and debts")]
    if source.report() is None:
        parts.append(
            notice(
                "This run is not judged yet, and waits are found by the analyzer.",
                "wait some seconds: the page looks again by itself",
                "a collector started with --no-analysis judges nothing",
            )
        )
    elif not source.is_judged_whole():
        parts.append(so_far())
    ordered = sorted(found.values(), key=lambda panel: panel.order)
    made = [_panel(panel, source, run_id) for panel in ordered]
    return [*parts, html.Div(made, className="cs-panels")]


def _panel(panel: Panel, source: RunSource, run_id: str) -> html.Section:
    heading = html.H2(panel.title)
    try:
        table = source.query(panel.sql)
    except CascadeError as error:
        return html.Section([heading, *failed(error)], className="cs-panel")
    figure = panel.figure(table)
    if figure is None:
        shown: list[Any] = [html.P(f"Nothing to show: {panel.empty}.", className="cs-dim")]
    else:
        shown = [
            dcc.Store(id={"chart": panel.name, "part": "raw"}, data=with_layout(figure)),
            dcc.Graph(
                id={"chart": panel.name, "part": "graph"},
                config=_CONFIG | {"modeBarButtonsToRemove": _BUTTONS},
                responsive=True,
                style={"height": _height(figure)},
            ),
        ]
    note = [html.P(panel.note, className="cs-dim cs-note")] if panel.note and figure else []
    return html.Section(
        [heading, *note, *shown, html.Div(_twins(panel, table, run_id), className="cs-twins")],
        className="cs-panel",
        **attributes(data_panel=panel.name),
    )


def _height(figure: Figure) -> str:
    """What the chart says, else a good part of the screen."""
    given = figure["layout"].get("height")
    return f"{given}px" if given else "max(320px, 40vh)"


def with_layout(figure: Figure) -> Figure:
    """A panel's figure in the clothes that all charts wear; its own layout comes last."""
    axis = {
        "gridcolor": "token:line",
        "linecolor": "token:line-strong",
        "zerolinecolor": "token:line-strong",
        "automargin": True,
    }
    layout: dict[str, Any] = {
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "font": {"family": "token:sans", "size": 12, "color": "token:fg"},
        "margin": {"l": 48, "r": 12, "t": 28, "b": 40},
        "legend": {
            "orientation": "h",
            "x": 0,
            "y": 1.02,
            "yanchor": "bottom",
            "traceorder": "normal",
        },
        "hoverlabel": {
            "bgcolor": "token:bg-raised",
            "bordercolor": "token:line-strong",
            "font": {"color": "token:fg"},
        },
        "showlegend": len(figure["data"]) > 1,
        "bargap": 0.25,
        "uniformtext": {"mode": "hide", "minsize": 10},
    }
    given = dict(figure["layout"])
    for name in ("xaxis", "yaxis"):
        mine = axis | given.pop(name, {})
        if "title" in mine:
            mine["title"] = {"font": {"size": 12, "color": "token:fg-dim"}, **mine["title"]}
        layout[name] = mine
    return {"data": figure["data"], "layout": layout | given}


def _twins(panel: Panel, table: pa.Table, run_id: str) -> list[Any]:
    """The same as a table, and the statement behind it."""
    rows = table.slice(0, _MOST_ROWS)
    cut = f" (the first {_MOST_ROWS:,} of {table.num_rows:,} rows)"
    note = cut if table.num_rows > _MOST_ROWS else ""
    head = html.Thead(html.Tr([html.Th(name, scope="col") for name in table.column_names]))
    columns = [rows[name].to_pylist() for name in table.column_names]
    body = html.Tbody(
        [html.Tr([_cell(value) for value in row]) for row in zip(*columns, strict=True)]
    )
    in_box = address("sql", run_id, q=panel.sql)
    return [
        html.Details(
            [
                html.Summary(f"View as table{note}"),
                html.Div(html.Table([head, body]), className="cs-scroll", tabIndex="0"),
            ]
        ),
        html.Details(
            [html.Summary("Show SQL"), html.Pre(panel.sql), dcc.Link("ask in the box", href=in_box)]
        ),
    ]


def _cell(value: Any) -> html.Td:
    if value is None:
        return html.Td("")
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return html.Td(f"{value:,}" if number else str(value), className="cs-num" if number else "")


def _callbacks(dash: Dash, shell: Shell) -> None:
    in_browser(
        dash,
        "coloured",
        Output({"chart": MATCH, "part": "graph"}, "figure"),
        Input({"chart": MATCH, "part": "raw"}, "data"),
        Input("theme", "data"),
    )


PLUGIN = Page("waits", _content, _callbacks)
