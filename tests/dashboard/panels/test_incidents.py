"""The incident list: choosing one moves window, cursor and selection together."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.browser


def story_of(act):
    return act.page.evaluate("() => stage.view.story")


def test_choosing_an_incident_moves_cursor_window_and_selection(act, kill_one):
    a = act(kill_one)
    a.page.evaluate("() => { stage.view.whole(); stage.view.set({ sel: null, t: 0 }); }")
    incident = story_of(a)["incidents"][0]
    button = a.page.locator(f'.cr-incident[data-id="{incident["id"]}"]')
    button.click()
    assert a.view("t") == incident["at_ns"]
    assert a.view("sel") == incident["sel"]
    assert a.view("a") <= incident["a_ns"] < incident["b_ns"] <= a.view("b")
    # It fills the window rather than being a speck in it.
    assert a.view("b") - a.view("a") < 2 * (incident["b_ns"] - incident["a_ns"])
    assert button.get_attribute("aria-current") == "true"


def test_enter_on_a_focused_incident_chooses_it(act, kill_one):
    a = act(kill_one)
    a.set(sel=None)
    second = story_of(a)["incidents"][1]
    a.page.locator(f'.cr-incident[data-id="{second["id"]}"]').focus()
    a.page.keyboard.press("Enter")
    assert a.view("sel") == second["sel"]
    # The focus stays where the reader put it.
    assert a.page.evaluate("() => document.activeElement.dataset.id") == second["id"]


def test_next_and_previous_walk_down_the_list_and_stop_at_its_ends(act, kill_one):
    a = act(kill_one)
    a.set(sel=None)
    list_ = [i["sel"] or f"incident:{i['id']}" for i in story_of(a)["incidents"]]
    walked = []
    while a.page.evaluate("() => Cascade.panels.incidents.next(stage.view)"):
        walked.append(a.view("sel"))
    assert walked == list_
    assert a.page.evaluate("() => Cascade.panels.incidents.prev(stage.view)") is (len(list_) > 1)


def test_the_filter_keeps_what_has_all_words_and_says_how_many(act, kill_one):
    a = act(kill_one)
    a.page.get_by_label("Filter incidents").fill("causal rank 2")
    titles = a.page.locator(".cr-incident").all_inner_texts()
    assert len(titles) == 1 and "CAUSAL" in titles[0]
    assert "showing 1 of 1" in a.page.locator(".cr-incidents .cr-foot").inner_text()
    a.page.get_by_label("Filter incidents").fill("nothing has this")
    assert "None of 2 has all of these words" in a.page.locator(".cr-list").inner_text()


def test_many_incidents_are_cut_and_the_rest_comes_on_request(act, kill_one):
    many = [
        {
            "id": f"i{i}", "at_ns": i * 1000, "end_ns": i * 1000, "severity": "warning",
            "title": f"number {i}", "sentence": "x", "kind": "gap", "sel": None,
            "a_ns": 0, "b_ns": 5_000_000,
        }
        for i in range(500)
    ]  # fmt: skip
    a = act(kill_one, change={"incidents": many})
    foot = a.page.locator(".cr-incidents .cr-foot")
    assert "showing 50 of 500" in foot.inner_text()
    assert a.page.locator(".cr-incident").count() == 50
    foot.get_by_role("button").click()
    assert a.page.locator(".cr-incident").count() == 500


def test_nothing_to_look_at_says_what_was_checked(act, clean):
    a = act(clean, change={"incidents": []})
    checks = story_of(a)["verdict"]["checks"]
    done = [c for c in checks if c["verdict"] in ("ok", "violated")]
    text = a.page.locator(".cr-list").inner_text()
    assert f"0 violations in {len(done)} checks" in text
    assert f"{max(c['num_checked'] for c in done):,} rows" in text


def test_the_keys_stay_within_the_filter(act, kill_one):
    a = act(kill_one)
    first, second = story_of(a)["incidents"][:2]
    a.page.get_by_label("Filter incidents").fill(second["kind"])
    a.set(sel=None)
    a.page.evaluate("() => document.activeElement.blur()")
    for _ in range(3):
        a.page.keyboard.press(".")
        assert a.view("sel") == (second["sel"] or f"incident:{second['id']}")
    assert first["kind"] != second["kind"]


def test_a_list_that_goes_on_says_how_many_are_further_down(act, kill_one):
    many = [
        {
            "id": f"i{i}", "at_ns": i * 1000, "end_ns": i * 1000, "severity": "warning",
            "title": f"number {i}", "sentence": "x", "kind": "gap", "sel": None,
            "a_ns": 0, "b_ns": 5_000_000,
        }
        for i in range(40)
    ]  # fmt: skip
    a = act(kill_one, change={"incidents": many})
    panel = a.page.get_by_role("region", name="Incidents")
    assert "40, worst first" in panel.locator(".cr-head").inner_text()
    below = panel.locator(".cr-further")
    below.wait_for()
    first = int(below.inner_text().split()[1])
    assert 0 < first < 40
    below.click()
    a.page.wait_for_function(
        "(first) => Number(document.querySelector('.cr-further').textContent.split(' ')[1]) < first",
        arg=first,
    )
    panel.locator(".cr-list").evaluate("(list) => list.scrollTo(0, list.scrollHeight)")
    below.wait_for(state="hidden")


def test_the_statement_behind_the_list_says_how_it_differs(act, kill_one):
    a = act(kill_one)
    link = a.page.get_by_role("region", name="Incidents").locator("a.cr-sql")
    assert link.get_attribute("title").startswith("-- What incidents are made of: ")
