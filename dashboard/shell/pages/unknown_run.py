"""A run that is not here."""

from __future__ import annotations

from dash import dcc, html

from dashboard.shell.context import Shell
from dashboard.shell.pages._page import Content, Page, notice, title
from dashboard.shell.paths import Place, address

_MOST = 20


def _content(shell: Shell, place: Place, query: dict[str, str]) -> Content:
    runs = shell.runs()
    what: Content = ["There is no run ", html.Code((place.run_id or "")[:200]), " here."]
    if not runs:
        none = notice("This collector has no run yet.", dcc.Link("how to get one", address("runs")))
        return [title("No such run"), html.P(what), none]
    links: Content = [
        dcc.Link(f"{run.name} ({run.run_id})", address("run", run.run_id)) for run in runs
    ]
    more = [f"and {len(links) - _MOST:,} more on the page of all runs"][: len(links) > _MOST]
    return [
        title("No such run"),
        html.Div(
            [
                html.P(what),
                html.P("Runs that are here:"),
                html.Ul([html.Li(item) for item in [*links[:_MOST], *more]]),
            ],
            className="cs-notice cs-empty",
            role="alert",
        ),
    ]


PLUGIN = Page("unknown-run", _content)
