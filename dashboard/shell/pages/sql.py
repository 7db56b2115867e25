"""The SQL box: over all runs, or over one.

What is typed here runs where ``POST /v1/sql`` runs it: in a confined process of its own
(collector/sql). In a replay that process sees a copy of the trace and nothing else.
"""

from __future__ import annotations

from typing import Any

from dash import Dash, Input, Output, State, dcc, html, no_update
from starlette.concurrency import run_in_threadpool

from cascade_runtime.vocabulary.schema import EVENT_TABLES, RESULT_TABLES, Table
from collector.schema.views import duckdb_type, named_views
from dashboard.shell.context import Shell
from dashboard.shell.examples import EXAMPLES
from dashboard.shell.pages._grid import column, grid
from dashboard.shell.pages._page import Content, Page, title
from dashboard.shell.paths import Place
from dashboard.shell.sql_answer import Refused, Shown, ask
from dashboard.shell.untyped import attributes, in_browser

_FIRST = "FROM incidents"
_ABOVE = 320
"""px: head, title, statement and buttons."""

_HINT = html.P(
    "Choose a question at the left, or write a statement and run it: its rows stand here.",
    className="cs-dim",
)


def _content(shell: Shell, place: Place, query: dict[str, str]) -> Content:
    given = query.get("q", "")
    over = "all runs" if place.run_id is None else "this run"
    return [
        title("SQL", html.Span(f"over {over}; reads only", className="cs-dim")),
        dcc.Store(id="sql-run-id", data=place.run_id),
        html.Div(
            [
                html.Aside(
                    _side(), className="cs-side", **attributes(aria_label="Tables and examples")
                ),
                html.Div(_box(given), className="cs-box"),
            ],
            className="cs-sql",
        ),
    ]


def _box(given: str) -> Content:
    # A statement in the address runs at once: it only reads, within the limits of all statements.
    clicks = 1 if given else 0
    return [
        html.Label("Statement", htmlFor="sql-text", className="cs-unseen"),
        dcc.Textarea(
            id="sql-text",
            value=given or _FIRST,
            spellCheck=False,
            wrap="off",
            rows=8,
            className="cs-text",
        ),
        html.Div(
            [
                html.Button("Run", id="sql-go", n_clicks=clicks, className="primary"),
                html.Kbd("Ctrl+Enter"),
                html.Span(id="sql-said", className="cs-said", role="status"),
                html.Span(className="cs-spring"),
                html.Button("CSV", id="sql-csv", disabled=True, title="all rows, up to 1,000,000"),
                html.Button(
                    "Arrow", id="sql-arrow", disabled=True, title="an Arrow IPC stream of the same"
                ),
            ],
            className="cs-bar",
        ),
        dcc.Loading(html.Div(_HINT, id="sql-rows"), delay_show=300, type="dot"),
        html.Div(id="sql-done", hidden=True),
    ]


def _side() -> Content:
    events = [_table(table) for table in EVENT_TABLES.values()]
    results = [_table(table) for table in RESULT_TABLES.values()]
    views = [
        _tree(view.name, view.doc, [(name, "", doc) for name, doc in view.columns])
        for view in sorted(named_views().values())
    ]
    return [
        html.Details(
            [html.Summary("Questions"), html.Ul([_example(e.question, e.sql) for e in EXAMPLES])],
            open=True,
        ),
        html.Details([html.Summary("Named views"), *views], open=True),
        html.Details([html.Summary("Event tables"), *events]),
        html.Details([html.Summary("Result tables"), *results]),
    ]


def _example(question: str, sql: str) -> html.Li:
    return html.Li(html.Button(question, className="cs-example", **attributes(data_sql=sql)))


def _table(table: Table) -> html.Details:
    return _tree(
        table.name, table.doc, [(c.name, duckdb_type(c.type), c.doc) for c in table.columns]
    )


def _tree(name: str, doc: str, columns: list[tuple[str, str, str]]) -> html.Details:
    items = [
        html.Li([html.Code(column), " ", html.Span(kind, className="cs-kind")], title=said)
        for column, kind, said in columns
    ]
    ask_it = html.Button(
        "ask", className="cs-example cs-ask", **attributes(data_sql=f"FROM {name}")
    )
    return html.Details(
        [html.Summary(html.Code(name), title=doc), html.P([doc, " ", ask_it]), html.Ul(items)],
        className="cs-tree",
    )


def _callbacks(dash: Dash, shell: Shell) -> None:
    @dash.callback(
        Output("sql-said", "children"),
        Output("sql-rows", "children"),
        Output("sql-csv", "disabled"),
        Output("sql-arrow", "disabled"),
        Input("sql-go", "n_clicks"),
        State("sql-text", "value"),
        State("sql-run-id", "data"),
    )
    async def run(clicks: int, text: str | None, run_id: str | None) -> tuple[Any, ...]:
        if not clicks:
            return no_update, no_update, no_update, no_update
        answer = await run_in_threadpool(ask, shell.sql, text or "", run_id)
        if isinstance(answer, Refused):
            return "", _problem(answer), True, True
        return answer.said, _rows(answer), False, False

    in_browser(
        dash,
        "remember_sql",
        Output("sql-done", "data-address"),
        Input("sql-go", "n_clicks"),
        State("sql-text", "value"),
        prevent_initial_call=True,
    )
    for form in ("csv", "arrow"):
        in_browser(
            dash,
            f"download_{form}",
            Output("sql-said", "children", allow_duplicate=True),
            Input(f"sql-{form}", "n_clicks"),
            State("sql-text", "value"),
            State("sql-run-id", "data"),
            prevent_initial_call=True,
        )


def _problem(answer: Refused) -> html.Div:
    place = attributes(
        data_line=None if answer.line is None else str(answer.line),
        data_column=None if answer.column is None else str(answer.column),
    )
    where = [] if answer.line is None else [html.P(_where(answer), className="cs-dim")]
    return html.Div(
        [
            html.Pre(answer.message),
            *where,
            html.P(answer.hint) if answer.hint else None,
        ],
        className="cs-notice cs-bad",
        role="alert",
        id="sql-problem",
        **place,
    )


def _where(answer: Refused) -> str:
    column = "" if answer.column is None else f", column {answer.column}"
    return f"at line {answer.line}{column} of the statement"


def _rows(answer: Shown) -> Any:
    columns = [
        column(f"c{i}", name, number=answer.numbers[i], headerTooltip=kind, minWidth=80)
        for i, (name, kind) in enumerate(answer.columns)
    ]
    return grid(answer.rows, columns, label="answer", above=_ABOVE, columnSize="autoSize")


PLUGIN = Page("sql", _content, _callbacks)
