"""``/dash/`` itself: the page of all runs. With one run only, its address leads there before."""

from __future__ import annotations

from dashboard.shell.pages import runs
from dashboard.shell.pages._page import Page

PLUGIN = Page("home", runs.PLUGIN.content)
