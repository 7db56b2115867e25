"""The violation panel, on a doctored copy of a real run that the real analyzer judged."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest

pytestmark = pytest.mark.browser


def violation_of(act):
    return act.view("story")["violations"][0]


def test_it_opens_at_the_first_violation_with_its_sentence_and_steps(act, broken):
    a = act(broken)
    found = violation_of(a)
    assert a.view("sel") == f"violation:{found['id']}"
    panel = a.page.get_by_role("region", name="Violation")
    said = panel.locator(".cr-claim").inner_text()
    assert said == found["sentence"][0].upper() + found["sentence"][1:]
    shown = panel.get_by_role("list", name="Steps").get_by_role("button").all_inner_texts()
    assert len(shown) == len(found["steps"])
    for text, step in zip(shown, found["steps"], strict=True):
        assert step["text"] in text
    assert found["code"] in panel.inner_text() and found["regime"] in panel.inner_text()


def test_a_step_moves_the_cursor_by_click_and_by_key(act, broken):
    a = act(broken)
    steps = violation_of(a)["steps"]
    panel = a.page.get_by_role("region", name="Violation")
    last = len(steps) - 1
    panel.locator(f'[data-step="{last}"]').click()
    assert (a.view("t"), a.view("step")) == (steps[last]["at_ns"], last)
    assert panel.locator(f'[data-step="{last}"]').get_attribute("aria-current") == "step"
    a.page.keyboard.press("[")
    assert a.view("step") == last - 1
    assert panel.locator(".cr-cut-on").count() == 1


def test_the_picture_has_the_ranks_of_the_steps_only(act, broken):
    a = act(broken)
    found = violation_of(a)
    lanes = a.page.locator(".cr-cut .cr-svg-text").all_text_contents()
    agents = {x["rank"] for x in a.view("story")["actors"] if x["kind"] == "agent"}
    want = sorted({s["rank"] for s in found["steps"]})
    assert len(agents) == 1, "of several each has a name of its own"
    assert lanes == ["the host agent" if r in agents else f"rank {r}" for r in want]
    hidden = len(set(a.view("story")["ranks"]) - set(want))
    said = a.page.locator(".cr-cut + p").inner_text()
    assert f"{hidden} other rank" in said
    events = {(s["rank"], s["incarnation"], s["seq"]) for s in found["steps"]}
    assert a.page.locator(".cr-cut-dot").count() == len(events)


def test_logical_order_spaces_the_dots_evenly(act, broken):
    a = act(broken)
    a.page.get_by_role("button", name="Logical order").click()
    xs = [float(c.get_attribute("cx")) for c in a.page.locator(".cr-cut-dot").all()]
    gaps = [right - left for left, right in pairwise(xs)]
    assert max(gaps) - min(gaps) < 1


def test_evidence_is_the_witness_as_json(act, broken):
    a = act(broken)
    panel = a.page.get_by_role("region", name="Violation")
    panel.locator("summary", has_text="Evidence as JSON").click()
    assert json.loads(panel.locator("pre").inner_text()) == violation_of(a)["witness"]


def test_as_text_has_sentence_steps_and_place(act, broken):
    a = act(broken)
    found = violation_of(a)
    text = a.page.evaluate(
        "() => Cascade.panels.violation.asText(stage.view.story.violations[0], stage.view)"
    )
    assert text.startswith(f"{found['code']} {found['name']}: {found['sentence']}\n1. ")
    assert text.count("\n") == len(found["steps"]) + 1
    assert broken.run.run_id in text


def test_five_hundred_are_listed_by_rule_and_cut(act, broken):
    a = act(broken)
    one = violation_of(a)
    many = [{**one, "id": f"{one['code']}:0:0:{i}", "at_ns": i * 1_000_000} for i in range(500)]
    b = act(broken, change={"violations": many})
    panel = b.page.get_by_role("region", name="Violation")
    assert "1 of 500" in panel.inner_text()
    panel.get_by_role("button", name="Next").click()
    assert b.view("sel") == f"violation:{many[1]['id']}"
    group = panel.locator("summary", has_text=f"{one['code']} {one['name']}: 500, showing 100")
    group.click()
    listed = panel.locator("[data-violation]")
    listed.last.wait_for()  # they are made when the group has opened, a moment after the click
    assert listed.count() == 100
    listed.nth(7).click()
    assert b.view("sel") == f"violation:{many[7]['id']}"


def test_no_violation_no_panel(act, clean):
    a = act(clean)
    assert a.page.get_by_role("region", name="Violation").count() == 0
