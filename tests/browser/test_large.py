"""Sixty-four ranks, and twenty milliseconds in four hours: what is small is still seen."""

from __future__ import annotations

import httpx
import pytest

from benchmarks._big_trace import big_trace
from tests.browser.visit import serious
from tests.dashboard.story.kit import trace_of
from tests.serving import replayed
from tests.story import Story

HOURS_2_MS = 2 * 3600 * 1e3
SHORT_MS = 20


def four_hours():
    """Three ranks in STRONG for four hours, but for 20 ms in EVENTUAL in their middle."""
    s = Story(ranks=3)
    for one in s.ranks:
        one.begin(1)
        one.end()
    s.wait(HOURS_2_MS)
    s.step_ns = 100_000
    a = s.ranks[0]
    for one in s.ranks:
        one.epoch, one.regime = 0, "STRONG"
        one.walk_row("committed", "EVENTUAL", s.ranks, fault="STATE_CORRUPTION", proposer=a)
    s.wait(SHORT_MS)
    for one in s.ranks:
        one.epoch, one.regime = 1, "EVENTUAL"
        one.walk_row("committed", "STRONG", s.ranks, fault="STABLE_SYNC", proposer=a)
    for one in s.ranks:
        one.epoch, one.regime = 2, "STRONG"
    s.wait(HOURS_2_MS)
    for one in s.ranks:
        one.begin(2)
        one.end()
    return s


def runs_of(column, colour):
    """[first, end) of the stretches of y in which a row of pixels has the colour."""
    found, begun = [], None
    for y, pixels in enumerate([*column, []]):
        hit = any(max(abs(p - c) for p, c in zip(px, colour, strict=True)) <= 2 for px in pixels)
        if hit and begun is None:
            begun = y
        elif not hit and begun is not None:
            found.append((begun, y))
            begun = None
    return found


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_twenty_milliseconds_are_seen_in_four_hours(visit, four_hour_run, theme):
    v = visit(four_hour_run.base, color_scheme=theme)
    page = v.open(four_hour_run.url, "canvas.ct-base")
    v.settled()
    moment = v.number("t")
    page.get_by_role("button", name="Whole run", exact=True).click()
    v.until(lambda: v.span > 2 * HOURS_2_MS * 1e6, "four hours are on screen")
    eventual, strong = v.token("--regime-eventual"), v.token("--regime-strong")
    # One mark in the overview, one in the fleet's share, one on each of the three ranks.
    v.until(
        lambda: len(runs_of(v.column(v.x_of(moment)), eventual)) >= 5, "the excursion is marked"
    )
    left, width = v.plot()
    beside = v.column(left + width * 0.3)
    assert runs_of(beside, eventual) == []
    assert len(runs_of(beside, strong)) >= 4


@pytest.fixture(scope="module")
def four_hour_run(chromium, tmp_path_factory):
    with replayed(trace_of(four_hours(), tmp_path_factory.mktemp("long") / "t")) as command:
        yield command


def test_sixty_four_ranks_on_one_page(visit, tmp_path):
    with replayed(big_trace(tmp_path, 200_000)) as command:
        v = visit(command.base)
        page = v.open(command.url, "canvas.ct-base")
        v.settled()
        ranks = page.get_by_role("region", name="Ranks at the cursor").locator("tbody tr")
        v.until(lambda: ranks.count() == 64, "a line for each rank")
        page.get_by_role("button", name="Whole run", exact=True).click()
        v.until(lambda: v.number("a") <= 0, "the address tells the whole run")
        left, width = v.plot()
        strong = v.token("--regime-strong")
        walks = httpx.get(f"{command.base}/v1/runs/{command.ready['run_id']}/story").json()["walks"]
        climb = next(i for i, walk in enumerate(walks[:-1]) if walk["to"] == "STRONG")
        strong_ns = (walks[climb]["at_ns"] + walks[climb + 1]["at_ns"]) / 2
        place = left + width * (strong_ns - v.number("a")) / v.span
        v.until(lambda: runs_of(v.column(place), strong), "lanes are drawn")
        for _ in range(6):
            span = v.span
            v.press("w", lambda span=span: v.span < span)
        v.press("ArrowRight", lambda: v.query.get("sel", "").startswith("walk:"))
        page.get_by_label("Sort ranks by").select_option("blamed")
        v.until(lambda: v.query.get("sort") == "blamed", "they are sorted")
        assert serious(page) == []
        v.close()
