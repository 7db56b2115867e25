"""How the collector is: queue, lag, drops, disk, and ranks that went silent."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from dash import Dash, Input, Output, dcc, html
from starlette.concurrency import run_in_threadpool

from collector.storage._interface import RunSummary
from dashboard.shell.context import Shell
from dashboard.shell.pages._page import Content, Page, notice, title
from dashboard.shell.paths import Place, address
from dashboard.shell.words import ago, count, duration, size
from dashboard.story.silence import quiet_ns
from dashboard.story.tellers import tellers_of

_REFRESH_MS = 2000


def _content(shell: Shell, place: Place, query: dict[str, str]) -> Content:
    return [
        title("Health of the collector" if shell.replayed is None else "Health"),
        html.Div(_now(shell), id="health"),
        dcc.Interval(id="health-clock", interval=_REFRESH_MS),
    ]


def _now(shell: Shell) -> Content:
    if shell.replayed is not None:
        return [
            notice(
                "A saved trace is replayed here: nothing comes in, so there is nothing to watch.",
                html.Span(["A collector takes rows: start one with ", html.Code("cascade serve")]),
            )
        ]
    stats = shell.store.stats()
    problem = shell.store.problem()
    live = [run for run in shell.runs() if run.state == "live"]
    confined = shell.sql.health().landlock
    rows: list[tuple[str, str, str]] = [
        ("Rows stored since the start", count(stats.num_rows), "durable, duplicates left out"),
        ("Duplicates dropped", count(stats.num_duplicates), "sent again, already stored"),
        ("Rows in the queue", count(stats.num_queued_rows), "taken and not yet durable"),
        ("Rows not yet in a segment", count(stats.num_hot_rows), size(stats.hot_row_bytes)),
        ("Journal", size(stats.hot_bytes), f"{count(stats.num_commits)} commits"),
        ("Segments written", count(stats.num_segments), "Parquet files of the runs"),
        ("Free on its disk", size(stats.free_bytes), "where the data folder is"),
        ("Opened again after a fatal error", count(stats.num_reopened), "times, by itself"),
        (
            "SQL typed by people",
            "confined by the kernel" if confined else "confined by DuckDB's lock alone",
            "" if confined else "this kernel has no Landlock",
        ),
    ]
    state = (
        notice("Rows can be stored.", kind="good")
        if problem is None
        else notice(f"Rows cannot be stored: {problem}", "senders keep their rows", kind="bad")
    )
    more: Content = ["More figures, for Prometheus: ", html.A("/metrics", href="/metrics")]
    figures = [
        html.H2("Figures"),
        _table(("Figure", "Now", "What it is"), rows, "figures since the start", numbers={1}),
        html.P(more, className="cs-dim"),
    ]
    runs = [
        html.H2("Live runs"),
        _lags(live) if live else html.P("No run is live.", className="cs-dim"),
        *_silent(shell, live),
    ]
    both = [html.Section(part, className="cs-panel") for part in (figures, runs)]
    return [state, html.Div(both, className="cs-panels")]


def _lags(live: list[RunSummary]) -> html.Table:
    rows = [
        (
            dcc.Link(run.name, href=address("run", run.run_id)),
            ago(run.last_seen_ns) if run.num_rows else "no row yet",
            count(run.num_rows),
        )
        for run in live
    ]
    return _table(("Run", "Last row came", "Rows stored"), rows, "live runs", numbers={2})


def _silent(shell: Shell, live: list[RunSummary]) -> Content:
    """Ranks of live runs that are silent now, as their pages say it."""
    found: list[tuple[Any, ...]] = []
    for run in live:
        told = tellers_of(shell.sources).of(run.run_id).story()
        now = told.facts.since(told.facts.t1_ns) + quiet_ns(told.facts)
        for silence in told.story.silent:
            if silence.to_ns is None:
                quiet_s = (now - silence.from_ns) / 1e9
                link = dcc.Link(
                    run.name, href=address("run", run.run_id, sel=f"rank:{silence.rank}")
                )
                found.append((link, f"rank {silence.rank}", f"for {duration(quiet_s)}"))
    if not found:
        return []
    return [html.H2("Silent ranks"), _table(("Run", "Who", "No row"), found, "silent ranks")]


def _table(
    heads: tuple[str, ...], rows: list[Any], caption: str, numbers: Collection[int] = ()
) -> html.Table:
    """A table; columns of numbers, by their place, are flush right."""
    kinds = ["cs-num" if i in numbers else "" for i in range(len(heads))]
    head = [html.Th(text, scope="col", className=k) for text, k in zip(heads, kinds, strict=True)]
    body = [
        html.Tr([html.Td(cell, className=k) for cell, k in zip(row, kinds, strict=True)])
        for row in rows
    ]
    return html.Table(
        [
            html.Caption(caption, className="cs-unseen"),
            html.Thead(html.Tr(head)),
            html.Tbody(body),
        ],
        className="cs-table",
    )


def _callbacks(dash: Dash, shell: Shell) -> None:
    @dash.callback(
        Output("health", "children"),
        Input("health-clock", "n_intervals"),
        prevent_initial_call=True,
    )
    async def refresh(num: int) -> Content:
        return await run_in_threadpool(_now, shell)


PLUGIN = Page("health", _content, _callbacks)
