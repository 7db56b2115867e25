"""The run's page of a replay: where it opens, what every key does, and that numbers are the run's."""

from __future__ import annotations

import re

import httpx
import pytest

from tests.browser.conftest import run_path
from tests.browser.visit import Visit

SECOND = 1_000_000_000


@pytest.fixture
def opened(visit):
    """opened(command, query): its run's page, settled."""

    def begin(command, query=""):
        v = visit(command.base)
        v.open(run_path(command, query), "canvas.ct-base")
        v.until_text(".cr-verdict-word", "^(?!judging)")  # what it opens at may change until then
        v.settled()
        return v

    return begin


@pytest.fixture(scope="module")
def one_page(chromium, kill_one):
    v = Visit(chromium, kill_one.base)
    v.open(run_path(kill_one), "canvas.ct-base")
    v.until_text(".cr-verdict-word", "^ok$")
    v.settled()
    yield v
    v.close()


@pytest.fixture
def keyed(one_page):
    """The page of kill-one as it opens: all keys can be tried on one page."""
    v = one_page
    for name in ("area", "sel", "flags"):
        if name in v.query:
            v.press("Escape", lambda name=name: name not in v.query)
    v.press(".", lambda: "sel" in v.query)
    return v


def story_of(command):
    return httpx.get(f"{command.base}/v1/runs/{command.ready['run_id']}/story").json()


def test_a_run_without_violations_opens_at_its_worst_incident(opened, kill_one):
    v = opened(kill_one)
    worst = story_of(kill_one)["incidents"][0]
    assert v.query["sel"] == (worst["sel"] or f"incident:{worst['id']}")
    assert v.number("t") == worst["at_ns"]
    assert v.number("a") <= worst["at_ns"] <= v.number("b")
    v.until_text(".cr-verdict-word", "^ok$")
    assert "Rank 2 died" in v.text(".cr-incident[aria-current=true]")
    ranks = v.page.get_by_role("region", name="Ranks at the cursor").locator("tbody tr")
    v.until(lambda: ranks.count() == 4, "the four ranks at the cursor")


def test_a_run_with_a_violation_opens_at_the_first(opened, broken):
    v = opened(broken)
    first = min(story_of(broken)["violations"], key=lambda one: one["at_ns"])
    assert v.query["sel"] == f"violation:{first['id']}"
    assert v.number("a") <= first["at_ns"] <= v.number("b")
    v.until_text(".cr-verdict-word", "^violated$")
    assert "L3" in v.page.get_by_role("region", name="Violation").first.inner_text()


def test_a_run_in_which_nothing_happened_says_so(opened, clean):
    v = opened(clean)
    v.until_text(".cr-verdict-word", "^ok$")
    told = story_of(clean)["incidents"]
    assert {(one["kind"], one["severity"]) for one in told} <= {("wait", "info")}
    assert v.page.locator(".cr-incident").count() == len(told)
    assert v.number("a") < 0 < story_of(clean)["t1_ns"] < v.number("b")
    regimes = story_of(clean)["regimes"]
    firsts = {}
    for rank, start in zip(regimes["rank"], regimes["start_ns"], strict=True):
        firsts[rank] = min(start, firsts.get(rank, start))
    assert v.number("t") == max(firsts.values())  # every rank is there


def test_keys_of_the_window_and_the_cursor(keyed, kill_one):
    v = keyed
    a, t, span = v.number("a"), v.number("t"), v.span
    v.press("w", lambda: v.span == pytest.approx(span * 0.75, rel=0.01))
    v.press("s", lambda: v.span == pytest.approx(span, rel=0.01))
    v.press("d", lambda: v.number("a") > a)
    v.press("a", lambda: v.number("a") == pytest.approx(a, abs=span * 0.01))
    v.press("Shift+ArrowRight", lambda: v.number("t") == t + SECOND)
    v.press("Shift+ArrowLeft", lambda: v.number("t") == t)
    # The incident begins with the death, a little before the first walk.
    v.press("ArrowRight", lambda: v.query["sel"] == "walk:world:1" and v.number("t") > t)
    walk = v.number("t")
    v.press("ArrowRight", lambda: v.query["sel"] == "walk:world:2" and v.number("t") > walk)
    v.press("ArrowLeft", lambda: v.query["sel"] == "walk:world:1" and v.number("t") == walk)
    v.press("Home", lambda: v.number("t") == 0)
    v.press("End", lambda: v.number("t") == story_of(kill_one)["t1_ns"])


def test_keys_of_the_replay(keyed):
    v = keyed
    play = v.page.locator(".cr-replay button").nth(1)
    t = v.number("t")
    v.press("Space", lambda: play.get_attribute("aria-label") == "Pause")
    v.until(lambda: v.number("t") > t, "the cursor goes on")
    v.press("Space", lambda: play.get_attribute("aria-label") == "Play")
    v.press("l", lambda: play.get_attribute("aria-label") == "Pause")
    v.press("k", lambda: play.get_attribute("aria-label") == "Play")


def test_keys_of_the_selection(keyed, kill_one):
    v = keyed
    run = v.page.locator(".cr-incident").count()
    whole = story_of(kill_one)["t1_ns"]
    v.press("f", lambda: v.span < whole)
    v.press("f", lambda: v.span >= whole)
    v.press("r", lambda: "area" in v.query)
    v.press("m", lambda: v.query.get("flags") == v.query["t"])
    v.press("m", lambda: "flags" not in v.query)
    v.press("Escape", lambda: "area" not in v.query)
    v.press("Escape", lambda: "sel" not in v.query)
    current = v.page.locator(".cr-incident[aria-current=true]")
    v.press(".", lambda: current.count() == 1 and "sel" in v.query)
    first = v.query["sel"]
    if run > 1:
        v.press(".", lambda: v.query["sel"] != first)
        v.press(",", lambda: v.query["sel"] == first)


def test_keys_of_a_violation_s_steps(opened, broken):
    v = opened(broken)
    v.press("]", lambda: v.number("step") == 1)
    assert v.page.locator(".cr-steps button[aria-current=step]").count() == 1
    v.press("[", lambda: v.number("step") == 0)


def test_keys_that_open_something(keyed):
    v = keyed
    page = v.page
    v.press("/", lambda: page.evaluate("document.activeElement.type") == "search")
    page.keyboard.type("GPU_FAIL_STOP")
    page.keyboard.press("Enter")
    v.until(lambda: re.match(r"1 of \d", v.text(".ct-search-said")), "it is found")
    v.press("Escape", lambda: page.locator(".ct-search-input").input_value() == "")
    v.press("?", lambda: page.locator("dialog.ct-keys[open]").count() == 1)
    v.press("Escape", lambda: page.locator("dialog.ct-keys").count() == 0)
    page.locator("#cs-help").click()
    v.until(lambda: page.locator("dialog.ct-keys[open]").count() == 1, "the head's button opens it")
    v.press("Escape", lambda: page.locator("dialog.ct-keys").count() == 0)
    v.press("t", lambda: page.locator("html").get_attribute("data-theme") == "dark")
    v.press("t", lambda: page.locator("html").get_attribute("data-theme") == "light")


def test_a_theme_is_kept_over_pages_and_the_system_s_is_followed(opened, kill_one):
    v = opened(kill_one)
    root = v.page.locator("html")

    def ground():
        return v.column(v.plot()[0] / 2, 1)[-2][0]

    light = ground()
    v.page.emulate_media(color_scheme="dark")
    v.until(lambda: root.get_attribute("data-theme") == "dark" and ground() != light, "dark lanes")
    v.press("t", lambda: v.query.get("theme") == "light" and ground() == light)
    v.open("/dash/runs", ".ag-row")
    assert root.get_attribute("data-theme") == "light"
    v.open(run_path(kill_one), "canvas.ct-base")
    assert root.get_attribute("data-theme") == "light"


def test_a_link_shows_the_same_in_another_browser(opened, kill_one):
    v = opened(kill_one)
    t = v.number("t")
    v.press("ArrowRight", lambda: v.number("t") > t)
    v.press("ArrowRight", lambda: v.query["sel"] == "walk:world:2")
    span = v.span
    v.press("w", lambda: v.span < span)
    v.press("t", lambda: v.query.get("theme") == "dark")
    v.press("m", lambda: "flags" in v.query)
    here, url = v.query, v.page.url
    other = opened(kill_one, url.partition(v.page.url.split("?")[0])[2])
    assert other.query == here
    assert other.page.locator("html").get_attribute("data-theme") == "dark"
    first, second = (x.page.locator(".cr-replay output").inner_text() for x in (v, other))
    assert first == second


def test_a_drag_selects_and_a_click_moves_the_cursor(keyed):
    v = keyed
    box = v.page.locator("canvas.ct-overlay").bounding_box()
    left, width = v.plot()
    y = box["y"] + 150
    v.page.mouse.move(box["x"] + left + width * 0.25, y)
    v.page.mouse.down()
    v.page.mouse.move(box["x"] + left + width * 0.5, y, steps=4)
    v.page.mouse.up()

    def selected():
        a, b = (int(x) for x in v.query.get("area", "0-0").split("-"))
        return b - a

    quarter = pytest.approx(v.span / 4, rel=0.02)
    v.until(lambda: selected() == quarter, "the stretch of the drag is selected")
    v.page.mouse.click(box["x"] + left + width * 0.75, y)
    v.until(
        lambda: v.number("t") == pytest.approx(v.number("a") + v.span * 0.75, abs=v.span * 0.01),
        "the cursor is where the click was",
    )
