"""What a page that followed a run does when the run ends."""

from __future__ import annotations

import pytest

from tests.dashboard.canvas.stage import MOUNT, SECOND, story

pytestmark = pytest.mark.browser


def live(stub, seconds):
    """A run that goes on, looked at from its first second."""
    stub.story = story(seconds=seconds)
    stub.story["run"]["state"] = "live"
    stub.story["verdict"]["state"] = "judging"


def ended(stub, **more):
    """The run is over, and its worst is the fall."""
    end = stub.story["t1_ns"]
    fall = end * 4 // 10
    worst = {
        **{"id": "excursion:1", "at_ns": fall, "end_ns": end // 2, "severity": "warning"},
        **{"title": "Rank 3 died", "sentence": "", "kind": "excursion", "sel": None},
        **{"a_ns": fall - SECOND, "b_ns": end // 2 + SECOND},
    }
    run = stub.story["run"] | {"state": "ended"}
    stub.story = stub.story | {"run": run, "version": "2", "incidents": [worst]} | more
    return fall


def test_a_short_run_stays_in_sight_as_a_whole_and_its_worst_is_chosen(page, stub):
    live(stub, 20)
    page.evaluate(MOUNT, {})
    page.wait_for_function("view.follow")
    fall = ended(stub)
    page.wait_for_function("!view.follow && view.sel")
    assert page.evaluate("[view.t, view.sel]") == [fall, "incident:excursion:1"]
    assert page.evaluate("view.a <= 0 && view.b >= view.t1")


def test_of_a_long_run_the_window_goes_to_the_worst(page, stub):
    live(stub, 600)
    page.evaluate(MOUNT, {})
    page.wait_for_function("view.follow")
    fall = ended(stub)
    page.wait_for_function("!view.follow && view.sel")
    assert page.evaluate("view.t") == fall
    assert page.evaluate("view.a > 0 && view.b < view.t1 && view.a < view.t && view.t < view.b")


def test_a_violation_that_the_analysis_finds_later_is_gone_to(page, stub):
    live(stub, 20)
    page.evaluate("Cascade.WindowSums.SETTLED_MS = 1e6")
    page.evaluate(MOUNT, {})
    page.wait_for_function("view.follow")
    ended(stub)
    page.wait_for_function("!view.follow && view.sel")
    broken = {
        **{"id": "L3:0:0:7", "code": "L3", "name": "n", "at_ns": 9 * SECOND, "rank": 0},
        **{"incarnation": 0, "seq": 7, "sentence": "s", "steps": [], "severity": "error"},
    }
    verdict = stub.story["verdict"] | {"state": "violated"}
    stub.story = stub.story | {"version": "3", "violations": [broken], "verdict": verdict}
    page.wait_for_function("view.sel === 'violation:L3:0:0:7'")
    assert page.evaluate("[view.t, view.a <= 0 && view.b >= view.t1]") == [9 * SECOND, True]


def test_who_has_moved_is_left_where_he_is(page, stub):
    live(stub, 20)
    page.evaluate(MOUNT, {})
    page.wait_for_function("view.follow")
    page.evaluate("view.look(2e9, 4e9)")
    ended(stub)
    page.wait_for_function("view.story.version === '2'")
    page.wait_for_function("view.pulse.state === 'ended'")
    assert page.evaluate("[view.a, view.b, view.sel]") == [2 * SECOND, 4 * SECOND, None]


def test_a_link_that_followed_opens_the_ended_run_at_its_worst(page, stub):
    stub.story = story(seconds=20)
    fall = ended(stub)
    page.evaluate("history.replaceState(null, '', '/?follow=1')")
    page.evaluate(MOUNT, {})
    page.wait_for_function("view.sel")
    assert page.evaluate("[view.t, view.follow]") == [fall, False]
