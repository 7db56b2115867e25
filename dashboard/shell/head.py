"""The head of every page: which run, the tabs, theme, help, sign out."""

from __future__ import annotations

from typing import Any

from dash import dcc, html

from collector.storage._interface import RunSummary
from dashboard.shell.context import Shell
from dashboard.shell.paths import Place, address
from dashboard.shell.untyped import attributes

_OF_A_RUN = (("run", "Timeline"), ("waits", "Waits"), ("violations", "Violations"), ("sql", "SQL"))
_OF_ALL = (("runs", "Runs"), ("sql", "SQL"), ("health", "Health"))

_STATES = {
    "ok": ("ok", "ok"),
    "violated": ("bad", "violated"),
    "unknown": ("unknown", "unknown"),
}


def head(shell: Shell, place: Place, run: RunSummary | None) -> html.Header:
    """The head for a place.

    Args:
        shell: what is shown.
        place: where the person is.
        run: the run that it is about; None for pages about all runs.
    """
    named = [] if run is None else _run(run)
    tabs = _OF_ALL if run is None else _OF_A_RUN
    run_id = None if run is None else run.run_id
    return html.Header(
        [
            dcc.Link("CASCADE", href=address("runs"), className="cs-brand", title="All runs"),
            *named,
            html.Nav(
                [_tab(name, text, run_id, place) for name, text in tabs],
                className="cs-tabs",
                **attributes(aria_label="Pages"),
            ),
            html.Div(_tools(shell), className="cs-tools"),
        ],
        className="cs-head",
        **attributes(data_run=run_id or "", data_title=_title(place, run)),
    )


def verdict_badge(verdict: str | None) -> html.Span:
    """The last analysis in a word."""
    kind, text = _STATES.get(verdict or "", ("none", "not judged yet"))
    return html.Span(text, className=f"cs-badge cs-{kind}", title="verdict of the last analysis")


def state_badge(run: RunSummary) -> html.Span:
    """Whether rows may still come."""
    if run.state == "live":
        return html.Span("live", className="cs-badge cs-live", title="rows may still come")
    text, kind = ("ended", "none") if run.clean_end else ("ended, not cleanly", "warn")
    return html.Span(text, className=f"cs-badge cs-{kind}")


def _run(run: RunSummary) -> list[Any]:
    return [
        html.Span("/", className="cs-slash", **attributes(aria_hidden="true")),
        html.Span(run.name, className="cs-name", title=f"run {run.run_id}"),
        state_badge(run),
    ]


def _tab(name: str, text: str, run_id: str | None, place: Place) -> dcc.Link:
    here = name == place.page or (place.page, name) == ("home", "runs")
    # Only classes: dcc.Link passes no aria-current on.
    return dcc.Link(
        text, href=address(name, run_id), className="cs-tab cs-here" if here else "cs-tab"
    )


def _tools(shell: Shell) -> list[Any]:
    tools: list[Any] = []
    if shell.replayed is not None:
        said = "nothing is written to the trace that is shown"
        tools.append(html.Span("replay", className="cs-badge cs-none", title=said))
    tools += [
        html.Button("Theme", id="cs-theme", className="cs-tool", title="Theme: system, light, dark"),
        html.Button("?", id="cs-help", className="cs-tool", title="Keys and words (?)",
                    **attributes(aria_label="Help")),
    ]  # fmt: skip
    if shell.sessions.needed:
        out = html.Button("Sign out", className="cs-tool", type="submit")
        tools.append(html.Form(out, action="/sign-out", method="POST"))
    return tools


def _title(place: Place, run: RunSummary | None) -> str:
    words = {"run": "Timeline", "home": "Runs", "sql": "SQL", "nowhere": "No such page"}
    what = words.get(place.page, place.page.capitalize())
    return f"{what} - {run.name if run else 'CASCADE Timelines'}"
