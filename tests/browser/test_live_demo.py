"""A real job of four processes, one of which is killed, watched from before its beginning to its verdict.

One job for the whole file; its tests are in the order of what happens.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
from typing import Any

import pytest

from tests.browser.visit import Visit, serious
from tests.serving import MAIN, ROOT

pytestmark = pytest.mark.chaos
LONG_S = 150.0


class Demo:
    """``cascade demo`` as a process; what it says is kept."""

    def __init__(self, folder: Any) -> None:
        words = ["demo", "--no-open", "--scenario", "kill-one"]
        words += ["--data", folder / "data", "--out", folder / "out"]
        self.process = subprocess.Popen(
            [sys.executable, "-c", MAIN, *map(str, words)],
            env=os.environ | {"PYTHONPATH": str(ROOT), "DISPLAY": ""},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.said: list[str] = []
        self.url = ""
        told = threading.Event()

        def listen() -> None:
            for line in self.process.stderr or ():
                self.said.append(line.rstrip())
                if found := re.search(r"open (http\S+)", line):
                    self.url = found[1]
                    told.set()
            told.set()

        self._listening = threading.Thread(target=listen, daemon=True)
        self._listening.start()
        assert told.wait(LONG_S) and self.url, self.said
        self.base = self.url.partition("/dash/")[0]

    def end(self) -> str:
        """As Ctrl-C ends it: its trace is closed and judged."""
        self.process.send_signal(signal.SIGINT)
        out = self.process.stdout.read() if self.process.stdout else ""
        assert self.process.wait(LONG_S) == 0, self.said
        self._listening.join(LONG_S)
        return out


@pytest.fixture(scope="module")
def watched(chromium, tmp_path_factory):
    """The job, and a page that was opened before its first row."""
    demo = Demo(tmp_path_factory.mktemp("demo"))
    v = Visit(chromium, demo.base)
    try:
        v.open(demo.url, "#cascade-run .cr-badges")
        v.page.evaluate("window.same = true")
        yield demo, v
    finally:
        v.context.close()
        if demo.process.poll() is None:
            demo.process.send_signal(signal.SIGINT)
            demo.process.wait(LONG_S)
        for stream in (demo.process.stdout, demo.process.stderr):
            if stream is not None:
                stream.close()


def test_the_page_says_what_will_happen_next(watched):
    _, v = watched
    plan = v.until_text(".cr-plan", "Rank 2 is killed", LONG_S)
    assert "the survivors walk to CAUSAL" in plan


def test_it_follows_the_job_by_itself(watched):
    _, v = watched
    v.until(lambda: v.page.locator("canvas.ct-base").count(), "lanes")
    ranks = v.page.get_by_role("region", name="Ranks at the cursor").locator("tbody tr")
    v.until(lambda: ranks.count() == 4, "four ranks appear", LONG_S)
    assert v.query.get("follow") == "1" or "live" not in v.text(".cr-badges")
    at = v.text(".cr-replay output")
    v.until(lambda: v.text(".cr-replay output") != at, "the axis moves")


def test_the_kill_and_the_walk_appear_as_they_happen(watched):
    _, v = watched
    v.until_text(".cr-incident", "Rank 2 died", LONG_S)
    v.until(lambda: v.page.locator(".cr-tick").count() >= 1, "the walk is marked on the bar")
    v.until(lambda: v.page.locator(".cr-plan .cr-done").count() >= 3, "the plan is ticked", LONG_S)


def test_the_verdict_comes_at_the_end_without_a_reload(watched):
    _, v = watched
    v.until_text(".cr-badges", "^ended", LONG_S)
    v.until_text(".cr-verdict-word", "^ok$", LONG_S)
    assert v.page.locator(".cr-plan li").count() == v.page.locator(".cr-plan .cr-done").count()
    assert v.page.evaluate("window.same === true")
    assert serious(v.page) == []
    v.check()


def test_the_table_names_the_death_and_every_walk(watched):
    _, v = watched
    page = v.page
    page.get_by_role("button", name="Whole run", exact=True).click()
    page.get_by_role("button", name="View as table").click()
    dialog = page.get_by_role("dialog", name="Timeline as a table")
    dialog.get_by_role("heading", name=re.compile("What happened")).wait_for()
    text = dialog.inner_text()
    for words in ("GPU_FAIL_STOP", "STABLE_SYNC", "debt opened", "debt settled"):
        assert words in text
    page.keyboard.press("Escape")


def test_the_demo_ends_by_itself_with_the_same_verdict(watched):
    demo, v = watched
    v.until(
        lambda: any("the page shows the same" in line for line in demo.said), "it says so", LONG_S
    )
    v.page.goto("about:blank")
    assert "OK: no promise was broken" in demo.end()
