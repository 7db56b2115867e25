"""What was to happen, ticked line by line, each by its own event."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from collector.trace.samples import sample_traces
from dashboard.demo.scenarios import SCENARIOS
from dashboard.story.teller import Teller
from dashboard.story.trace_source import TraceRun

pytestmark = pytest.mark.browser
DONE = "(story) => Cascade.panels.plan.done(story)"
S = 1_000_000_000


def test_plan_items_are_ticked_by_what_came(act, kill_one):
    """The demo's own lines on the run that the demo recorded: all of them came, in order."""
    plan = [*SCENARIOS["kill-one"].story, "A link slows down: LINK_DELAY_HIGH"]
    a = act(kill_one, change={"plan": plan})
    panel = a.page.get_by_role("region", name="What was to happen")  # the run has ended
    assert "4 of 5 seen" in panel.inner_text()
    panel.locator("summary").click()  # it is folded: the run is over
    assert panel.locator("li[aria-current=step]").inner_text().startswith("A link slows down")
    seen = a.page.evaluate("() => Cascade.panels.plan.done(stage.view.story)")
    assert seen[:4] == sorted(seen[:4])
    walks = a.view("story")["walks"]
    assert seen[2:4] == [walks[0]["at_ns"], walks[1]["at_ns"]]


def test_before_anything_came_no_plan_item_is_ticked(act, kill_one):
    story = act(kill_one).view("story")
    early = {
        **story, "plan": list(SCENARIOS["kill-one"].story), "walks": [], "marks": [],
        "run": {**story["run"], "state": "live"},
        "regimes": {name: [] for name in story["regimes"]},
    }  # fmt: skip
    a = act(kill_one)
    assert a.page.evaluate("(s) => Cascade.panels.plan.done(s)", early) == [None] * 4
    # In STRONG from the first row on: that is the first item, not the climb back of the last.
    early["regimes"] = story["regimes"]
    seen = a.page.evaluate("(s) => Cascade.panels.plan.done(s)", early)
    assert [at is not None for at in seen] == [True, False, False, False]


def told(name: str) -> dict[str, Any]:
    run = TraceRun(name)
    try:
        assert run.wait_until_judged(60)
        return msgspec.to_builtins(Teller(run).story().story)
    finally:
        run.close()


@pytest.mark.parametrize("name", sorted(set(sample_traces()) & set(SCENARIOS)))
def test_every_line_of_a_recorded_scenario_is_ticked_in_order(act, clean, name):
    story = told(name) | {"plan": list(SCENARIOS[name].story)}
    seen = act(clean).page.evaluate(DONE, story)
    assert None not in seen
    assert seen == sorted(seen)


def mark(kind: str, rank: int, at_s: float, incarnation: int = 0, fault: str | None = None):
    return {
        "kind": kind,
        "rank": rank,
        "incarnation": incarnation,
        "at_ns": at_s * S,
        "fault": fault,
    }


def test_each_death_and_each_return_ticks_its_own_line(act, clean):
    a = act(clean)
    plan = [
        "Rank 2 is killed",
        "Rank 3 is killed",
        "It is started again as 3.1",
        "Rank 3 is killed once more",
        "Rank 2 comes back",
    ]
    died = [mark("health", 2, 1.0, fault="GPU_FAIL_STOP"), mark("departure", 2, 1.1)]
    again = [mark("departure", 3, 2.0), mark("join", 3, 4.0, 1)]
    last = [mark("departure", 3, 5.0, 1), mark("join", 2, 6.0, 1)]
    marks: list[Any] = []
    for come, num in ((died, 1), (again, 3), (last, 5)):
        marks += come
        story = a.view("story") | {"plan": plan, "marks": marks, "walks": []}
        seen = a.page.evaluate(DONE, story)
        assert [at is not None for at in seen] == [i < num for i in range(5)]
    assert seen == [at * S for at in (1.0, 2.0, 4.0, 5.0, 6.0)]


def test_an_agent_that_is_there_again_ticks_that_it_was_lost(act, clean):
    a = act(clean)
    story = a.view("story") | {
        "plan": ["The agent of host 0 is killed", "It is started again from its journal"],
        "walks": [],
        "marks": [mark("departure", 1, 1.0)],  # a rank's end is another thing
    }
    agents = [actor for actor in story["actors"] if actor["kind"] == "agent"]
    assert a.page.evaluate(DONE, story) == [None, None]
    story["actors"] = [
        {**agents[0], "last_ns": 3 * S},
        {**agents[0], "incarnation": 1, "first_ns": 4 * S},
    ]
    assert a.page.evaluate(DONE, story) == [3 * S, 4 * S]


def back_before_the_climb() -> dict[str, Any]:
    """The recorded run, as it is where the return takes less time than the survivors' calm steps."""
    story = told("rejoin")
    fall, _, join, churn, climb, *_ = story["walks"]
    assert (join["to"], churn["fault"], climb["members"]) == (
        *("STRONG", "NODE_CHURN_HIGH"),
        [0, 1, 2, 3],
    )
    join |= {"from": "CAUSAL", "to": "CAUSAL", "epoch": 2}
    marks = [mark for mark in story["marks"] if mark["kind"] != "transition"]
    return story | {
        "plan": list(SCENARIOS["rejoin"].story),
        "walks": [fall, join, climb | {"epoch": 3}],
        "marks": marks,
    }


def test_a_return_before_the_climb_ticks_the_right_lines(act, clean):
    """No climb to a smaller view then: that line is passed over, and is not ticked by the climb of all."""
    a, story = act(clean), back_before_the_climb()
    plan = story["plan"]
    smaller = next(i for i, text in enumerate(plan) if "smaller view" in text)
    seen = a.page.evaluate(DONE, story)
    assert [i for i, at in enumerate(seen) if at is None] == [smaller]
    rest = [at for at in seen if at is not None]
    assert rest == sorted(rest)
    walks = story["walks"]
    assert seen[-2] == walks[-1]["at_ns"] and walks[1]["at_ns"] < seen[-3] < seen[-2]
    assert a.page.evaluate("(seen) => Cascade.panels.plan.passed(seen)", seen) == [
        i == smaller for i in range(len(plan))
    ]


def test_what_was_passed_over_is_said_and_the_next_line_is_the_one_after(act, clean):
    story = back_before_the_climb()
    back = next(m["at_ns"] for m in story["marks"] if m["kind"] == "join")
    early = {
        "plan": story["plan"],
        "ranks": story["ranks"],
        "walks": story["walks"][:2],
        "marks": [m for m in story["marks"] if m["at_ns"] <= back],
    }
    a = act(clean)
    run = {**a.view("story")["run"], "state": "live"}
    a = act(clean, change={**early, "run": run})
    panel = a.page.get_by_role("region", name="What will happen next")
    lines = panel.locator("li").all_inner_texts()
    passed = [text for text in lines if "not this time" in text]
    assert len(passed) == 1 and "smaller view" in passed[0]
    assert "NODE_CHURN_HIGH" in panel.locator("li[aria-current=step]").inner_text()
    assert "4 of 8 seen" in panel.inner_text()
