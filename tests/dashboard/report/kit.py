"""Reports in a browser, from file://."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dashboard.report import composed, gathered
from dashboard.story.trace_source import TraceRun

PATIENCE_MS = 60_000
DRAWN = """() => Cascade.report && Cascade.report.view.story
  && document.querySelector(".ct-timeline canvas") && Cascade.report.timeline.tiles.wanted
  && (!Cascade.report.timeline.tiles.wanted.lanes.length || Cascade.report.timeline.tiles.sharp())"""


def quiet(_what: str, _share: float | None) -> None:
    """Nobody wants to know."""


def report_of(trace: Path | str, into: Path) -> Path:
    """The report of a trace, as the verb makes it."""
    with contextlib.closing(TraceRun(trace)) as run:
        found = gathered(run, quiet)
        into.write_bytes(composed(found, "0", quiet).text)
        found.tiles.close()
    return into


class Opened:
    """A report on screen: ``page``, and what it asked for and complained of."""

    def __init__(self, page: Any, path: Path) -> None:
        self.page = page
        self.path = path
        self.asked: list[str] = []
        self.errors: list[str] = []
        page.on("request", lambda request: self.asked.append(request.url))
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("console", lambda s: self.errors.append(s.text) if s.type == "error" else None)

    def go(self, place: str = "") -> None:
        """Open it at a place (``#...``), anew."""
        self.page.goto("about:blank")
        self.page.goto(self.path.as_uri() + place)
        self.page.wait_for_function(DRAWN)


@contextlib.contextmanager
def opened(chromium: Any, path: Path, place: str = "", **how: Any) -> Iterator[Opened]:
    """The report in a browser of its own; at the end it has asked for nothing and complained of nothing."""
    context = chromium.new_context(viewport={"width": 1400, "height": 1000}, **how)
    page = context.new_page()
    page.set_default_timeout(PATIENCE_MS)
    shown = Opened(page, path)
    try:
        shown.go(place)
        yield shown
        assert not shown.errors
        strangers = {url.partition("#")[0] for url in shown.asked}
        assert strangers <= {path.as_uri(), "about:blank", "data:,"}, strangers
    finally:
        context.close()
