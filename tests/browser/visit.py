"""A page of a real server in a real browser, and what may not happen in any of them."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest

WAIT_S = 60.0
"""Patience: the machine may be busy with other things."""

PIXELS = """([x, width]) => {
  const canvas = document.querySelector("canvas.ct-base");
  const ratio = canvas.width / canvas.clientWidth;
  const { data } = canvas.getContext("2d").getImageData(Math.round(x * ratio), 0, width, canvas.height);
  return [...Array(canvas.height).keys()].map((y) =>
    [...Array(width).keys()].map((i) => [...data.slice(4 * (y * width + i), 4 * (y * width + i) + 3)]));
}"""


class Visit:
    """One browser context with one page. ``close`` says what went wrong in it.

    Args:
        browser: Playwright's.
        base: the server's address.
        expected: console errors that belong to the test, as a pattern.
        context: options of the browser's context.
    """

    def __init__(self, browser: Any, base: str, *, expected: str = "", **context: Any) -> None:
        self.base = base
        self.complaints: list[str] = []
        self.strangers: list[str] = []
        self._expected = expected
        options = {"viewport": {"width": 1280, "height": 900}, "color_scheme": "light"} | context
        self.context = browser.new_context(**options)
        self.page = self.context.new_page()
        self.page.set_default_timeout(WAIT_S * 1e3)
        self.page.on("console", self._said)
        self.page.on("pageerror", lambda error: self.complaints.append(error.stack or str(error)))
        self.context.on("request", self._requested)

    def _said(self, message: Any) -> None:
        if message.type == "error" and not (
            self._expected and re.search(self._expected, message.text)
        ):
            self.complaints.append(message.text)

    def _requested(self, request: Any) -> None:
        if not request.url.startswith((f"{self.base}/", f"blob:{self.base}/", "data:")):
            self.strangers.append(request.url)

    def open(self, path: str, there: str = ".cs-head") -> Any:
        """Goes there, and waits until it shows what is asked for."""
        self.page.goto(self.base + path if path.startswith("/") else path)
        self.page.wait_for_selector(there)
        return self.page

    def check(self) -> None:
        """Nothing was refused by the policy, thrown, or asked of another host."""
        assert not self.complaints, self.complaints
        assert not self.strangers, self.strangers

    def close(self) -> None:
        self.context.close()
        self.check()

    # --- waiting -----------------------------------------------------------------------------

    def until(self, holds: Callable[[], Any], what: str = "", limit_s: float = WAIT_S) -> Any:
        """The first answer that is true. wait_for_function would need eval, which the policy forbids."""
        deadline = time.monotonic() + limit_s
        while not (answer := holds()):
            assert time.monotonic() < deadline, f"never: {what} ({self.page.url})"
            self.page.wait_for_timeout(25)
        return answer

    def text(self, selector: str) -> str:
        return str(self.page.locator(selector).first.inner_text())

    def until_text(self, selector: str, pattern: str, limit_s: float = WAIT_S) -> str:
        """The text of the first such element, once it matches."""
        found = self.page.locator(selector)

        def matching() -> str:
            text = found.first.inner_text() if found.count() else ""
            return text if re.search(pattern, text) else ""

        return str(self.until(matching, f"{selector} says {pattern}", limit_s))

    # --- the view, as the address tells it ---------------------------------------------------

    @property
    def query(self) -> dict[str, str]:
        return dict(parse_qsl(urlsplit(self.page.url).query))

    def number(self, name: str) -> int:
        return int(self.query.get(name, "0"))

    @property
    def span(self) -> int:
        return self.number("b") - self.number("a")

    def settled(self) -> dict[str, str]:
        """The view's place, once the address tells it."""
        self.until(lambda: {"t", "a", "b"} <= self.query.keys(), "the address tells the place")
        return self.query

    def press(self, key: str, holds: Callable[[], Any]) -> None:
        """Presses a key; it must have this effect."""
        self.page.keyboard.press(key)
        self.until(holds, f"{key} has its effect")

    # --- pixels ------------------------------------------------------------------------------

    def token(self, name: str) -> list[int]:
        """A colour of the theme as [r, g, b]."""
        css = self.page.evaluate(
            "(name) => getComputedStyle(document.documentElement).getPropertyValue(name)", name
        )
        return [int(css.strip().lstrip("#")[i : i + 2], 16) for i in (0, 2, 4)]

    def column(self, x: float, width: int = 3) -> list[list[list[int]]]:
        """Pixels of the lower canvas about x, from its top to its bottom."""
        return list(self.page.evaluate(PIXELS, [x - width // 2, width]))

    def plot(self) -> tuple[float, float]:
        """Where the plot begins on the canvas, and how wide it is (as in 50_timeline.js)."""
        width = self.page.evaluate("document.querySelector('.ct-scroll').clientWidth")
        left, right = (136, 56) if width < 720 else (168, 84)
        return left, width - left - right

    def x_of(self, at_ns: float) -> float:
        """Where a moment of the window is on the canvas."""
        left, width = self.plot()
        return left + (at_ns - self.number("a")) / self.span * width


def serious(page: Any) -> list[Any]:
    """What axe finds that is serious or critical: (rule, the elements' beginnings)."""
    axe = pytest.importorskip(
        "axe_playwright_python.sync_playwright", reason="axe-playwright-python is not installed"
    )
    return [
        (found["id"], [node["html"][:160] for node in found["nodes"]])
        for found in axe.Axe().run(page).response["violations"]
        if found["impact"] in ("serious", "critical")
    ]
