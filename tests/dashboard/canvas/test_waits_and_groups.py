"""Waits that are not known, the group that is shown, and the sides of an epoch."""

from __future__ import annotations

import pytest

from tests.dashboard.canvas.stage import MOUNT, SECOND
from tests.dashboard.canvas.test_timeline import colour, settled

pytestmark = pytest.mark.browser


def lane_words(page, name):
    """What is written in the middle of a lane."""
    return page.evaluate(
        """(name) => {
          const lane = tl.shown.find((one) => one.name === name);
          const said = [];
          const words = lane.words;
          lane.words = (context, y, height, text) => said.push(text);
          lane.draw(tl.base.getContext("2d"), 0);
          lane.words = words;
          return said;
        }""",
        name,
    )


def test_waits_that_were_not_measured_are_said_and_not_drawn_as_nought(page, stub):
    why = "the hosts share no clock"
    stub.story["measured"]["waits"] = {"state": "not_measured", "why": why}
    page.evaluate(MOUNT, {})
    page.wait_for_function("view.story")
    page.evaluate("view.whole()")
    settled(page)
    for lane in ("waited", "caused"):
        assert lane_words(page, lane) == [f"not measured: {why}"]


def test_waits_past_what_was_read_are_hatched(page, stub):
    stub.tile_head = {"source": "provisional", "upto_ns": 30 * SECOND}
    page.evaluate(MOUNT, {})
    page.wait_for_function("view.story")
    page.evaluate("view.whole()")
    page.wait_for_function("tl.tiles.wanted && tl.tiles.sharp()")
    settled(page)
    read, unread = (colour(page, "waited", 0, at * SECOND) for at in (20, 45))
    assert read != unread


def test_the_window_is_asked_for_the_group_that_is_shown(page, stub):
    stub.story["groups"] = ["plan", "world"]
    page.evaluate(MOUNT, {})
    page.wait_for_function("view.story")
    page.evaluate("view.set({ group: 'plan' })")
    page.evaluate("view.show(0, 20e9)")
    page.wait_for_function("tl.sums.exact && tl.sums.exact.key.includes('plan')")
    assert stub.windows[-1]["group"] == "plan"


def test_each_side_of_an_epoch_can_be_selected(plain):
    got = plain.evaluate(
        """() => {
          const side = (id, members) => ({ id, group: "world", epoch: 1, at_ns: 5, members });
          const walks = [side("world:1", [0, 1]), side("world:1:2", [2, 3])];
          return walks.map((walk) => Cascade.seek.find({ walks }, Cascade.seek.walkSel(walk)).item.members);
        }"""
    )
    assert got == [[0, 1], [2, 3]]
