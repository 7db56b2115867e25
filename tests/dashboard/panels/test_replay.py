"""The replay bar: the test gives the frames, so nothing here waits for real time."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.browser

SECOND = 1_000_000_000


def begin(act, theatre, t=0, **patch):
    a = act(theatre)
    a.set(t=t, speed=1, **patch)
    return a


def test_play_moves_the_cursor_by_the_time_that_passed_times_speed(act, kill_one):
    a = begin(act, kill_one)
    a.page.get_by_role("button", name="Play", exact=True).click()
    a.frame(1000)  # the first frame tells the time only
    a.frame(1250)
    assert a.view("t") == pytest.approx(0.25 * SECOND)
    a.page.get_by_label("Speed").select_option("0.5")
    a.frame(1450)
    assert a.view("t") == pytest.approx(0.35 * SECOND)
    a.page.get_by_role("button", name="Pause").click()
    a.frame(2000)
    assert a.view("t") == pytest.approx(0.35 * SECOND)
    assert a.view("playing") is False


def test_play_stops_at_the_end_and_starts_anew_from_there(act, kill_one):
    a = begin(act, kill_one, t=5 * SECOND)
    a.set(playing=True)
    a.frame(0)
    a.frame(60_000)
    assert (a.view("t"), a.view("playing")) == (a.view("t1"), False)
    a.page.get_by_role("button", name="Play", exact=True).click()
    assert (a.view("t"), a.view("playing")) == (0, True)


def test_backwards_ends_at_the_start(act, kill_one):
    a = begin(act, kill_one, t=SECOND)
    a.set(speed=-2, playing=True)
    a.frame(0)
    a.frame(250)
    assert a.view("t") == pytest.approx(0.5 * SECOND)
    a.frame(9000)
    assert (a.view("t"), a.view("playing")) == (0, False)


def test_next_and_previous_transition(act, kill_one):
    a = begin(act, kill_one)
    walks = sorted(w["at_ns"] for w in a.view("story")["walks"])
    next_, previous = (
        a.page.get_by_role("button", name=f"{which} transition") for which in ("Next", "Previous")
    )
    assert previous.is_disabled()
    seen = []
    while next_.is_enabled():
        next_.click()
        seen.append(a.view("t"))
    assert seen == walks
    assert a.view("sel") == "walk:world:3"
    previous.click()
    assert a.view("t") == walks[-2]


def test_skip_quiet_jumps_to_just_before_what_comes_next(act, kill_one):
    a = begin(act, kill_one, t=int(0.5 * SECOND), skipQuiet=True)
    # At a tenth of the speed, 2 s of the run take 20 s to play: nothing is marked in them.
    a.set(speed=0.1, playing=True)
    first = min(m["at_ns"] for m in a.view("story")["marks"])
    a.frame(0)
    a.frame(1000)
    assert first - 0.11 * SECOND < a.view("t") < first
    a.frame(1100)
    # Close to it nothing is skipped.
    assert first - 0.1 * SECOND < a.view("t") < first


def test_without_skip_quiet_nothing_is_jumped_over(act, kill_one):
    a = begin(act, kill_one, t=int(0.5 * SECOND))
    a.set(speed=0.1, playing=True)
    a.frame(0)
    a.frame(1000)
    assert a.view("t") == pytest.approx(0.6 * SECOND)


def test_loop_stays_inside_the_selected_stretch(act, kill_one):
    a = begin(act, kill_one, t=SECOND, area={"a": SECOND, "b": 2 * SECOND})
    a.page.get_by_role("button", name="Loop").click()
    a.set(playing=True)
    a.frame(0)
    a.frame(900)
    assert a.view("t") == pytest.approx(1.9 * SECOND)
    a.frame(1200)
    assert a.view("t") == SECOND


def test_the_window_turns_the_page_when_the_cursor_leaves_it(act, kill_one):
    a = begin(act, kill_one, t=int(0.95 * SECOND), a=0, b=SECOND)
    a.set(playing=True)
    a.frame(0)
    a.frame(100)
    assert a.view("a") < a.view("t") < a.view("b")
    assert a.view("b") - a.view("a") == pytest.approx(SECOND, rel=1e-6)


def test_scrubbing_by_keyboard_moves_the_cursor_and_pauses(act, kill_one):
    a = begin(act, kill_one, t=SECOND, playing=True)
    scrub = a.page.get_by_role("slider", name="Position in the run")
    scrub.focus()
    a.page.keyboard.press("End")
    assert (a.view("t"), a.view("playing")) == (a.view("t1"), False)
    assert scrub.get_attribute("aria-valuetext") == a.page.locator(".cr-time").inner_text()


def test_the_time_is_shown_as_asked(act, kill_one):
    a = begin(act, kill_one, t=SECOND)
    assert a.page.locator(".cr-time").inner_text() == "1.000 s"
    a.page.get_by_label("Show times as").select_option("utc")
    assert a.page.locator(".cr-time").inner_text().endswith("UTC")


def test_follow_live_is_offered_only_while_rows_come(act, kill_one):
    a = begin(act, kill_one)
    assert a.page.get_by_role("button", name="Follow live").count() == 0
