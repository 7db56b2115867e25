"""The run view is a document of its own; whoever comes to its address inside Dash is led there."""

from __future__ import annotations

from dash import html

from dashboard.shell.context import Shell
from dashboard.shell.pages._page import Content, Page, notice
from dashboard.shell.paths import Place, address


def _content(shell: Shell, place: Place, query: dict[str, str]) -> Content:
    there = html.A("open its timeline", href=address("run", place.run_id, **query))
    return [notice("This run is here now.", there)]


PLUGIN = Page("run", _content)
