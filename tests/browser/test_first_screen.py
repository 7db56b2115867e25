"""What a person comes for is there without scrolling, on the screens that people have."""

from __future__ import annotations

import pytest

from tests.browser.conftest import run_path

SIZES = [(1280, 800), (1440, 900), (1920, 1080), (2560, 1440)]
ONE_LINE_PX = 50  # two are 77


def box(page, selector):
    """(top, bottom) on the screen."""
    found = page.locator(selector).first.bounding_box()
    return found["y"], found["y"] + found["height"]


def opened(visit, command, width, height):
    v = visit(command.base, viewport={"width": width, "height": height})
    page = v.open(run_path(command), "canvas.ct-base")
    page.wait_for_selector(".cr-replay")
    page.wait_for_selector(".cr-incident, .cr-incidents .cr-empty")
    return v, page


@pytest.mark.parametrize(("width", "height"), SIZES)
@pytest.mark.parametrize("which", ["kill_one", "clean", "broken"])
def test_verdict_incidents_timeline_and_replay_bar(request, visit, which, width, height):
    v, page = opened(visit, request.getfixturevalue(which), width, height)
    top, bottom = box(page, ".ct-toolbar")
    assert bottom - top <= ONE_LINE_PX
    v.until(lambda: box(page, ".cr-replay")[1] <= height, "the replay bar is on the first screen")
    assert box(page, ".cr-verdict-line")[1] < box(page, ".ct-scroll")[0] < height / 2
    assert box(page, ".cr-incidents")[0] < height / 2
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")


@pytest.mark.parametrize(("width", "height"), SIZES)
def test_of_a_broken_promise_the_witness_too(visit, broken, width, height):
    v, page = opened(visit, broken, width, height)
    page.wait_for_selector(".cr-at-violation .cr-steps button")
    v.until(lambda: box(page, ".cr-at-violation .cr-claim")[1] <= height, "its sentence")
    if height >= 900:
        assert box(page, ".cr-at-violation .cr-steps")[0] + 24 <= height
    # Beside each other, so that sentence, steps and picture are read together.
    text, picture = box(page, ".cr-at-violation .cr-steps"), box(page, ".cr-at-violation .cr-cut")
    assert picture[0] < text[1]


def test_the_timeline_takes_the_room_that_a_taller_screen_gives(visit, clean):
    v, page = opened(visit, clean, 1440, 640)
    low = box(page, ".ct-scroll")
    page.set_viewport_size({"width": 1440, "height": 1200})
    v.until(lambda: box(page, ".ct-scroll")[1] - box(page, ".ct-scroll")[0] > low[1] - low[0], "")
