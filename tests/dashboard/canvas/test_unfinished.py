"""What is not here yet, or not read to its end, never looks like a figure."""

from __future__ import annotations

import pytest

from tests.dashboard.canvas.stage import MOUNT, SECOND

pytestmark = pytest.mark.browser

READING = {"share": 0.4, "what": "reading waits"}
LANE = "tl.lanes.find((one) => one.name === 'waited')"

HOLD = """() => {
  const tell = Cascade.ServerSource.prototype.tile;
  window.release = null;
  Cascade.ServerSource.prototype.tile = async function (...question) {
    await new Promise((resolve) => { window.release = resolve; });
    return tell.apply(this, question);
  };
}"""

PIXEL = """([x, y]) => {
  const canvas = tl.base;
  const at = (dx, dy) => [...canvas.getContext("2d").getImageData(
    Math.round((x + dx) * tl.ratio), Math.round((y + dy) * tl.ratio), 1, 1).data.slice(0, 3)].join();
  const seen = new Set();
  for (let dx = 0; dx < 12; dx += 1) for (let dy = 0; dy < 8; dy += 1) seen.add(at(dx, dy));
  return seen.size;
}"""


def gutter(page):
    """What the figures beside the lane of waits say."""
    return page.evaluate(
        f"""() => {{
          const lane = {LANE};
          const sums = tl.sums.of("waited");
          return sums ? tl.rows.map((row, r) => lane.sumText(sums, sums.values[r])) : null;
        }}"""
    )


def reading(page, t):
    """The card's lines over the first row of the lane of waits."""
    return page.evaluate(f"(t) => {LANE}.reading(t, {LANE}.titleHeight + 4).lines", t)


def test_a_lane_says_loading_until_its_first_tile_is_there(page, stub):
    page.evaluate(HOLD)
    page.evaluate("Cascade.WindowSums.SETTLED_MS = 1e6")
    page.evaluate(MOUNT, {})
    page.wait_for_function("window.release && !tl.frame")
    assert gutter(page) is None
    assert page.evaluate(f"{LANE}.note(view.t)") == "loading…"
    assert reading(page, 10 * SECOND)[0] == "loading…"
    busy = "tl.lanes.find((one) => one.name === 'cpu')"
    assert page.evaluate(f"{busy}.reading(1e9).lines")[0] == "loading…"
    # Dots, and not the hatching of "no row" (lines), nor the plain ground of "no wait".
    where = page.evaluate(f"[tl.left + 300, tl.topOf({LANE}) + {LANE}.titleHeight + 22]")
    assert page.evaluate(PIXEL, where) > 1
    page.evaluate("release()")
    page.wait_for_function("tl.tiles.sharp() && !tl.frame")
    assert page.evaluate(f"{LANE}.note(view.t)").startswith("about ")
    assert not any("loading" in line for line in reading(page, 10 * SECOND))


def test_what_the_server_still_reads_is_of_so_far(page, stub):
    stub.pulse = {"building": READING}
    stub.window_head = {"building": READING, "source": "judged"}
    page.evaluate(MOUNT, {})
    page.wait_for_function("tl.sums.exact && !tl.frame")
    assert gutter(page) == ["1.5 s…"] * 4
    note = page.evaluate(f"{LANE}.note(view.t)")
    assert note == "6 s so far in this window, all ranks together, reading waits: 40%"
    assert "1.5 s so far waited in this window" in reading(page, 10 * SECOND)
    # It is through: the very same numbers, now without a mark.
    page.evaluate("Cascade.WindowSums.AGAIN_MS = 10")
    stub.pulse, stub.window_head = {"tiles_version": "2"}, {"source": "judged"}
    page.wait_for_function(
        "tl.sums.exact && !tl.sums.exact.reading && view.pulse.building === null"
    )
    assert gutter(page) == ["1.5 s"] * 4
    note = page.evaluate(f"{LANE}.note(view.t)")
    assert note == "6 s in this window, all ranks together"


def test_nought_that_is_still_read_is_no_figure(page, stub):
    stub.pulse = {"building": READING}
    stub.window_head, stub.waited_s, stub.tile_value = {"building": READING}, 0, 0
    stub.tile_head = {"building": READING}
    page.evaluate(MOUNT, {})
    page.wait_for_function("tl.sums.exact && tl.tiles.kept.length && !tl.frame")
    assert gutter(page) == ["loading…"] * 4
    assert page.evaluate(f"{LANE}.note(view.t)") == "loading… (reading waits: 40%)"
    assert reading(page, 10 * SECOND)[0] == "loading…: not read to here yet"


def test_provisional_is_what_the_numbers_are_and_not_what_the_story_was(page, stub):
    """The analysis is there, and the lanes are still those from before it."""
    stub.story["waits"] = {"source": "judged", "by_rank": [], "pairs": [], "kind": "raw"}
    stub.window_head = {"source": "provisional"}
    page.evaluate(MOUNT, {})
    page.wait_for_function("tl.sums.exact && !tl.frame")
    assert page.evaluate(f"{LANE}.note(view.t)").endswith(", provisional")
    assert any(line.endswith(", provisional") for line in reading(page, 10 * SECOND))


def test_what_cannot_be_read_says_why_and_is_tried_again(page, stub, errors):
    stub.refused = {"tile", "window"}
    page.evaluate(MOUNT, {})
    said = page.locator(".ct-trouble")
    said.wait_for()
    assert "the disk is full (data): make room" in said.inner_text()
    assert "the disk is full" in page.evaluate(f"{LANE}.note(view.t)")
    assert gutter(page) is None
    stub.refused = set()
    said.get_by_role("button", name="Try again").click()
    page.wait_for_function("tl.tiles.sharp() && tl.sums.exact && !tl.frame")
    said.wait_for(state="hidden")
    assert gutter(page) == ["1.5 s"] * 4
    assert all("422" in error for error in errors)  # the browser's own line of each answer
    errors.clear()


def test_who_is_still_there_is_not_drawn_as_gone(page, stub):
    """A live run's pulse is ahead of its story: a rank's next row is only due."""
    stub.story["run"]["state"] = "live"
    for actor in stub.story["actors"][:3]:
        actor["last_ns"] = 90 * SECOND
    stub.pulse = {"state": "live", "t1_ns": 100 * SECOND}
    page.evaluate(MOUNT, {})
    page.wait_for_function("tl.tiles.kept.length && view.pulse")
    there = page.evaluate("[0, 3].map((rank) => tl.lookup.isThere(rank, 95e9))")
    assert there == [True, False]


def test_the_lane_of_who_died_says_why_it_ends_before_that(page, stub):
    fall = 40 * SECOND
    stub.story["actors"][3]["last_ns"] = fall - 33_000_000
    mark = {"kind": "departure", "severity": "warning", "rank": 3, "incarnation": 0}
    told = {"fault": None, "epoch": 1, "sentence": "Rank 3 left the view: failed."}
    stub.story["marks"].append({"at_ns": fall, **mark, **told})
    page.evaluate(MOUNT, {})
    page.wait_for_function("view.story && tl.tiles.kept.length && !tl.frame")
    lines = page.evaluate("tl.lookup.absences(3, 60e9)")
    assert lines[0] == "left (failed)"
    assert lines[1].endswith("that it was gone was seen 33 ms later.")
    assert page.evaluate("tl.lookup.absences(3, 60e9)[1] && tl.lookup.whyEnded(0, 60e9)") == ""
    marks = "tl.lanes.find((one) => one.name === 'marks')"
    at = page.evaluate("(t) => [t, 10, tl.x(t)]", fall)
    said = page.evaluate(f"(at) => {marks}.reading(...at).lines", at)
    assert any("Its lane ends 33 ms earlier" in line for line in said)
