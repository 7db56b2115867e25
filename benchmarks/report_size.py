"""Size of the report file of 64 ranks and 1e8 rows, and how long a browser takes to show it.

The trace is that of ``_big_trace``, made when it is not there (``--folder``; 1.4 GB). ``mb``: the file's
size. ``open_s``: from asking Chromium for the file to a timeline with its lanes drawn at the resolution of
the screen, a new page each time, the median. ``make_s``, for people: from the trace to the file, once.
"""

from __future__ import annotations

import contextlib
import shutil
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks import _harness
from benchmarks._big_trace import big_trace
from benchmarks._stats import median

TARGET = "at most 2 MB"
TARGET_MB = 2.0
ROWS = 100_000_000
QUICK_ROWS = 200_000
PATIENCE_MS = 120_000
_NAMES = ("chromium", "chromium-browser", "google-chrome")
_DRAWN = """() => Cascade.report && Cascade.report.view.story && Cascade.report.timeline
  && Cascade.report.timeline.tiles.sharp() && !Cascade.report.timeline.frame"""


def make(trace: Path, path: Path) -> float:
    """Writes the report; seconds."""
    from dashboard.report import composed, gathered
    from dashboard.story.trace_source import TraceRun

    began = time.monotonic()
    with contextlib.closing(TraceRun(trace)) as run:
        found = gathered(run, lambda _what, _share: None)
        path.write_bytes(composed(found, "0", lambda _what, _share: None).text)
        found.tiles.close()
    return time.monotonic() - began


def open_once(browser: Any, path: Path) -> float:
    """Seconds until the report is drawn in a new page."""
    page = browser.new_page(viewport={"width": 1600, "height": 1000})
    try:
        began = time.monotonic()
        page.goto(path.as_uri())
        page.wait_for_function(_DRAWN, timeout=PATIENCE_MS, polling="raf")
        return time.monotonic() - began
    finally:
        page.close()


def main(argv: Sequence[str]) -> int:
    """Makes the report and opens it; 0 when it is small enough."""
    made = _harness.parser(__doc__)
    made.add_argument("--folder", type=Path, help="where traces of all sizes are kept")
    args = _harness.parse(made, argv)
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory(prefix="report-size-") as scratch:
        folder = args.folder or Path(scratch)
        trace = big_trace(folder, QUICK_ROWS if args.quick else ROWS)
        path = Path(scratch) / "report.html"
        make_s = make(trace, path)
        mb = path.stat().st_size / 1e6
        with sync_playwright() as playwright:
            program = next(filter(None, map(shutil.which, _NAMES)))
            switches = ["--no-sandbox", "--disable-gpu"]
            browser = playwright.chromium.launch(executable_path=program, args=switches)
            arms = {"report": lambda: open_once(browser, path)}
            times = _harness.alternate(arms, args.repeats)["report"]
            browser.close()
    result = _harness.Result(
        name="report_size",
        figure={"mb": round(mb, 2), "open_s": round(median(times), 2)},
        unit="megabytes (1e6 bytes); seconds",
        target={"mb": TARGET_MB},
        holds=mb <= TARGET_MB,
        spread={"open_s": [round(min(times), 2), round(max(times), 2)]},
        notes=[f"made from the trace in {make_s:.0f} s"],
    )
    return _harness.report(result, args, argv)
