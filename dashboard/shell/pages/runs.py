"""All runs; where there is none, how to get one."""

from __future__ import annotations

import time
from typing import Any

from dash import Dash, Input, Output, State, dcc, html

from collector.storage._interface import RunSummary
from dashboard.shell.context import Shell
from dashboard.shell.pages._grid import column, grid, link
from dashboard.shell.pages._page import Content, Page, notice, title
from dashboard.shell.parties import parties
from dashboard.shell.paths import Place, address
from dashboard.shell.untyped import in_browser
from dashboard.shell.words import count, duration, ended, going_on, moment

_COLUMNS = [
    link("name", "Name", flex=2, minWidth=170, tooltipField="name"),
    column(
        "state",
        width=150,
        headerTooltip="quiet: its end is not known, and no row has come for a while; "
        "it was killed, or its host agents cannot reach this collector",
    ),
    column("verdict", width=140, cellRenderer="CascadeVerdict"),
    column("mode", width=100),
    column("party", "Took part", width=165, headerTooltip="ranks train; host agents watch them"),
    column("rows", number=True, width=110, cellRenderer="CascadeNumber"),
    column("started", "Started (UTC)", width=165),
    column("duration", "Duration", width=110),
    column("run_id", "Run id", flex=1, minWidth=130, tooltipField="run_id"),
]
_FILTER_FROM = 12
"""Runs; fewer are read at a glance."""


def _content(shell: Shell, place: Place, query: dict[str, str]) -> Content:
    runs = shell.runs()
    if not runs:
        return [title("Runs"), _none()]
    began = {run.run_id: shell.store.meta(run.run_id).created_ns for run in runs}
    runs.sort(key=lambda run: (run.state != "live", -began[run.run_id]))
    states = [_state(run) for run in runs]
    waiting = sum(state.startswith(_WAITING) for state in states)
    said = f"{count(len(runs))} in all, {count(states.count('live'))} live"
    said += f", {count(waiting)} waiting" if waiting else ""
    party = parties(shell.store, runs)
    rows = [
        _row(run, state, party[run.run_id], began[run.run_id])
        for run, state in zip(runs, states, strict=True)
    ]
    return [
        title("Runs", html.Span(said, className="cs-dim"), *_filter(len(runs))),
        grid(rows, _COLUMNS, label="runs", id="runs-grid"),
    ]


def _filter(num_runs: int) -> Content:
    box = dcc.Input(
        id="runs-filter",
        type="search",
        placeholder="Filter: name, state, verdict, run id",
        debounce=False,
        className="cs-filter",
    )
    label = html.Label("Filter runs", htmlFor="runs-filter", className="cs-unseen")
    # It is there for few runs too, as its callback is; out of sight.
    return [html.Div([label, box], className="cs-push", hidden=num_runs < _FILTER_FROM)]


_WAITING = "waiting"


def _state(run: RunSummary) -> str:
    if run.state == "live":
        said = going_on(run.last_seen_ns)
        if run.num_rows:
            return said
        return _WAITING if said == "live" else said.replace("quiet", _WAITING, 1)
    return ended(run.clean_end, run.ended_ns)


def _row(run: RunSummary, state: str, party: str, created_ns: int) -> dict[str, Any]:
    """One run; it began when its trace says so: what was pushed came later."""
    waiting = state.startswith(_WAITING)
    until = run.ended_ns or (time.time_ns() if state == "live" else run.last_seen_ns)
    return {
        "name": run.name,
        "name_href": address("run", run.run_id),
        "state": state,
        "verdict": "no row yet" if waiting else _verdict(run),
        "mode": run.mode,
        "party": party,
        "rows": run.num_rows,
        "started": moment(created_ns).removesuffix(" UTC"),
        "duration": "" if waiting else duration(max(0.0, (until - created_ns) / 1e9)),
        "run_id": run.run_id,
    }


def _verdict(run: RunSummary) -> str:
    """Of a run that goes on it is of so far; what is unknown may still be answered."""
    if run.verdict is None:
        return "not judged yet"
    if run.state != "live":
        return run.verdict
    return "not judged yet" if run.verdict == "unknown" else f"{run.verdict} so far"


def _none() -> html.Div:
    commands = (
        ("a real job with a real fault, here and now", "cascade demo"),
        ("a job of your own", "cascade run --collector URL -n 4 train.py"),
        ("a trace that was saved", "cascade push TRACE URL"),
    )
    return notice(
        "This collector has no run yet. Start with:",
        *([html.Code(command), html.Span(f": {what}")] for what, command in commands),
        "URL is this page's address without /dash. A run appears here with its first row.",
    )


def _callbacks(dash: Dash, shell: Shell) -> None:
    in_browser(
        dash,
        "filter_runs",
        Output("runs-grid", "dashGridOptions"),
        Input("runs-filter", "value"),
        State("runs-grid", "dashGridOptions"),
        prevent_initial_call=True,
    )


PLUGIN = Page("runs", _content, _callbacks)
