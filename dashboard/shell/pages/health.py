"""How the collector is: queue, lag, drops, disk, and ranks that went silent."""

from __future__ import annotations

import time
from typing import Any

from dash import Dash, Input, Output, dcc, html
from starlette.concurrency import run_in_threadpool

from collector.storage._interface import RunSummary
from dashboard.shell.context import Shell
from dashboard.shell.pages._page import Content, Page, notice, title
from dashboard.shell.paths import Place, address
from dashboard.shell.words import ago, count, duration, size

_REFRESH_MS = 2000
_SILENT_S = 5.0


def _content(shell: Shell, place: Place, query: dict[str, str]) -> Content:
    return [
        title("Health of the collector" if shell.replayed is None else "Health"),
        html.Div(_now(shell), id="health"),
        dcc.Interval(id="health-clock", interval=_REFRESH_MS),
    ]


def _now(shell: Shell) -> Content:
    if shell.replayed is not None:
        return [
            notice("A trace is replayed here: nothing comes in.", "cascade serve is a collector")
        ]
    stats = shell.store.stats()
    problem = shell.store.problem()
    live = [run for run in shell.runs() if run.state == "live"]
    confined = shell.sql.health().landlock
    rows: list[tuple[str, str, str]] = [
        ("rows stored since the start", count(stats.num_rows), "durable, duplicates left out"),
        ("duplicates dropped", count(stats.num_duplicates), "sent again, already stored"),
        ("rows in the queue", count(stats.num_queued_rows), "taken and not yet durable"),
        ("rows not yet in a segment", count(stats.num_hot_rows), size(stats.hot_row_bytes)),
        ("journal", size(stats.hot_bytes), f"{count(stats.num_commits)} commits"),
        ("segments written", count(stats.num_segments), "Parquet files of the runs"),
        ("free on its disk", size(stats.free_bytes), ""),
        ("opened again after a fatal error", count(stats.num_reopened), ""),
        (
            "strangers' SQL",
            "confined by the kernel" if confined else "confined by DuckDB's lock alone",
            "" if confined else "this kernel has no Landlock",
        ),
    ]
    state = (
        notice("Rows can be stored.", kind="good")
        if problem is None
        else notice(f"Rows cannot be stored: {problem}", "senders keep their rows", kind="bad")
    )
    return [
        state,
        _table(("what", "now", ""), rows, "figures since the start"),
        html.H2("Live runs"),
        _lags(live) if live else html.P("No run is live.", className="cs-dim"),
        *_silent(shell, live),
        html.P(
            ["More figures, for Prometheus: ", html.A("/metrics", href="/metrics")],
            className="cs-dim",
        ),
    ]


def _lags(live: list[RunSummary]) -> html.Table:
    rows = [
        (
            dcc.Link(run.name, href=address("run", run.run_id)),
            ago(run.last_seen_ns),
            f"{count(run.num_rows)} rows",
        )
        for run in live
    ]
    return _table(("run", "last row came", "stored"), rows, "live runs")


def _silent(shell: Shell, live: list[RunSummary]) -> Content:
    """Actors of live runs that sent no row for a while, though they have not said goodbye."""
    found: list[tuple[Any, ...]] = []
    for run in live:
        for row in shell.source(run.run_id).query(_LAST_ROWS).to_pylist():
            quiet_s = (time.time_ns() - row["last_ns"]) / 1e9
            if quiet_s > _SILENT_S:
                who = f"rank {row['rank']}, incarnation {row['incarnation']}"
                found.append((run.name, who, f"for {duration(quiet_s)}"))
    if not found:
        return []
    return [html.H2("Silent ranks"), _table(("run", "who", "no row"), found, "silent ranks")]


_LAST_ROWS = """\
SELECT rank, incarnation, max(wall_ns) AS last_ns
FROM steps ANTI JOIN (
    SELECT gone.rank, gone.incarnation
    FROM (SELECT unnest(departed) AS gone FROM membership WHERE departed IS NOT NULL)
) USING (rank, incarnation)
GROUP BY ALL ORDER BY ALL"""
"""By steps: agents and ranks that left are not missed."""


def _table(heads: tuple[str, ...], rows: list[Any], caption: str) -> html.Table:
    return html.Table(
        [
            html.Caption(caption, className="cs-unseen"),
            html.Thead(html.Tr([html.Th(text, scope="col") for text in heads])),
            html.Tbody([html.Tr([html.Td(cell) for cell in row]) for row in rows]),
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
