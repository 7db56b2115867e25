"""An address that no page has."""

from __future__ import annotations

from dash import dcc

from dashboard.shell.context import Shell
from dashboard.shell.pages._page import Content, Page, notice, title
from dashboard.shell.paths import Place, address


def _content(shell: Shell, place: Place, query: dict[str, str]) -> Content:
    said = notice("There is no page at this address.", dcc.Link("all runs", address("runs")))
    return [title("No such page"), said]


PLUGIN = Page("nowhere", _content)
