"""The run view for who comes from another page: an empty place that assets/90_mount.js fills.

Who opens its address gets a document of its own (run_document.py).
"""

from __future__ import annotations

from dash import html

from dashboard.shell.context import Shell
from dashboard.shell.pages._page import Content, Page
from dashboard.shell.paths import Place
from dashboard.shell.untyped import attributes


def _content(shell: Shell, place: Place, query: dict[str, str]) -> Content:
    # The key: another run is another element, so that the picture is mounted anew.
    return [
        html.Div(
            html.P("Loading the run ...", className="cs-loading"),
            id="cascade-run",
            key=f"run-{place.run_id}",
            **attributes(data_run=place.run_id),
        )
    ]


PLUGIN = Page("run", _content)
