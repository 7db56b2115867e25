"""Headless Chromium on a page of ours, with a clock on every frame of the timeline.

The timeline leaves a mark ``cascade-frame`` for each frame that it drew (dashboard/assets/50_timeline.js).
A frame counts as on screen when the browser tells of its mark, which is after that frame's work.
"""

from __future__ import annotations

import contextlib
import shutil
import time
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from typing import Any

from benchmarks._load import Failed

NAMES = ("chromium", "chromium-browser", "google-chrome")
SIZE = {"width": 1600, "height": 1000}
PATIENCE_MS = 60_000

_CLOCK = """
window.bench = { frames: [], wheels: [], origin: performance.timeOrigin };
new PerformanceObserver((list) => {
  const seen = performance.now();
  for (const mark of list.getEntriesByName("cascade-frame")) {
    window.bench.frames.push({ drawn: mark.startTime, seen, ...mark.detail });
  }
}).observe({ type: "mark", buffered: true });
addEventListener("wheel", (event) => {
  window.bench.wheels.push({ at: event.timeStamp, frames: window.bench.frames.length });
}, { capture: true, passive: true });
"""


def has_browser() -> bool:
    """Whether there is a Chromium, and what drives it."""
    return find_spec("playwright") is not None and any(map(shutil.which, NAMES))


@contextlib.contextmanager
def chromium() -> Iterator[Any]:
    """The browser.

    Raises:
        Failed: there is none on this machine.
    """
    if not has_browser():
        raise Failed("this needs Chromium and the package playwright")
    from playwright.sync_api import sync_playwright

    path = next(filter(None, map(shutil.which, NAMES)))
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=path, args=["--no-sandbox", "--disable-gpu"]
        )
        try:
            yield browser
        finally:
            browser.close()


@contextlib.contextmanager
def page_of(browser: Any, url: str) -> Iterator[Any]:
    """A page of its own, with nothing cached, on its way to the address."""
    context = browser.new_context(viewport=SIZE)
    try:
        page = context.new_page()
        page.set_default_timeout(PATIENCE_MS)
        page.add_init_script(_CLOCK)
        page.goto(url, wait_until="commit")
        yield page
    finally:
        context.close()


def wait_for(page: Any, condition: str, argument: Any = None) -> Any:
    """Wait until a JavaScript function of one argument answers something true; what it answered.

    Raises:
        Failed: it never did.
    """
    from playwright.sync_api import TimeoutError as TooLate

    try:
        return page.wait_for_function(condition, arg=argument, polling=20).json_value()
    except TooLate:
        said = page.evaluate("document.body.innerText.slice(0, 500)")
        raise Failed(f"the page never came so far ({condition}); it shows: {said}") from None


def until(condition: Callable[[], bool], seconds: float, what: str) -> float:
    """Wait for it; the seconds that it took.

    Raises:
        Failed: it did not hold in time.
    """
    began = time.monotonic()
    while not condition():
        if time.monotonic() - began > seconds:
            raise Failed(f"{what} took more than {seconds:.0f} s")
        time.sleep(0.05)
    return time.monotonic() - began
