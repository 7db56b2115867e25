"""Figures that may still change are marked, on the cards and in the table; then the marks go."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.browser

MARKS = ".cr-facts .cr-sofar"
READING = {"share": 0.4, "what": "reading waits"}

PULSE = """(building) => {
  const { view, source } = stage;
  Cascade.watch(source, view).stop(); // what is asked later would say otherwise
  view.set({ pulse: { ...view.pulse, building } });
}"""

ANSWER = """(building) => {
  const { source } = stage;
  const ask = Cascade.ServerSource.prototype.window.bind(source);
  source.window = async (...question) => {
    const answer = await ask(...question);
    for (const row of answer.by_rank) if (building && row.rank === 0) row.waited_s = 0;
    return { ...answer, building };
  };
}"""

TABLE = "() => { Cascade.tables.timeline(stage.view, stage.source); }"


def test_cards_are_of_so_far_while_the_server_reads_and_not_after(act, kill_one):
    a = act(kill_one)
    a.page.evaluate(PULSE, None)
    assert a.page.locator(MARKS).count() == 0
    a.page.evaluate(PULSE, READING)
    marks = a.page.locator(MARKS)
    assert marks.count() == 5  # duration, regimes, waste, debt, violations
    assert marks.first.get_attribute("title") == "not final: reading waits: 40%"
    a.page.evaluate(PULSE, None)
    assert a.page.locator(MARKS).count() == 0


def test_cards_of_a_run_that_is_being_judged_are_of_so_far(act, kill_one):
    verdict = act(kill_one).view("story")["verdict"] | {"state": "judging"}
    a = act(kill_one, change={"verdict": verdict})
    a.page.evaluate(PULSE, None)
    assert a.page.locator(MARKS).count() == 5


def test_the_table_says_what_is_loading_and_follows_by_itself(act, kill_one):
    a = act(kill_one)
    a.page.evaluate(ANSWER, READING)
    a.page.evaluate(TABLE)
    dialog = a.page.get_by_role("dialog", name="Timeline as a table")
    rows = dialog.get_by_role("region", name="By rank").locator("tbody tr")
    rows.first.wait_for()
    assert "loading…" in rows.first.inner_text()
    assert "so far" in rows.nth(1).inner_text() and "so far" in rows.last.inner_text()
    assert "reading waits: 40%" in dialog.inner_text()
    a.page.evaluate(ANSWER, None)
    rows.first.filter(has_not_text="loading…").wait_for()
    assert "so far" not in dialog.inner_text()


def test_the_table_can_be_asked_for_again_when_it_did_not_come(act, kill_one):
    a = act(kill_one)
    a.page.evaluate(
        """() => {
          const { source } = stage;
          stage.ask = source.window;
          source.window = async () => { throw new Cascade.Problem("gone", "the collector does not answer"); };
        }"""
    )
    a.page.evaluate(TABLE)
    dialog = a.page.get_by_role("dialog", name="Timeline as a table")
    dialog.get_by_role("alert").wait_for()
    a.page.evaluate("() => { stage.source.window = stage.ask; }")
    dialog.get_by_role("button", name="Try again").click()
    dialog.get_by_role("region", name="By rank").locator("tbody tr").first.wait_for()
    assert dialog.get_by_role("alert").count() == 0


def test_the_table_of_what_happened_is_in_words(act, kill_one):
    a = act(kill_one)
    story = a.view("story")
    (agent,) = {one["rank"] for one in story["actors"] if one["kind"] == "agent"}
    rows = a.page.evaluate("() => Cascade.tables.happenings(stage.view.story, 0, 1e18)")
    kinds = {row["kind"] for row in rows}
    assert {"fault", "recovery", "left", "regime change", "debt opened"} <= kinds
    assert not kinds & {"health", "departure", "transition", "walk"}
    assert "the host agent" in {row["who"] for row in rows}
    assert not any(f"rank {agent}" in f"{row['who']} {row['text']}" for row in rows)


def test_who_took_part_tells_agents_from_ranks(act, kill_one):
    a = act(kill_one)
    assert "4 ranks and 1 agent" in a.page.locator(".cr-facts").inner_text()


def test_the_plan_of_a_run_that_is_over_is_folded_and_stays_as_the_reader_wants(act, kill_one):
    a = act(kill_one)
    fold = a.page.locator(".cr-plan-panel details")
    assert fold.get_attribute("open") is None
    a.page.locator(".cr-plan-panel summary").click()
    assert fold.get_attribute("open") is not None
    a.page.evaluate("() => { stage.view.set({ story: { ...stage.view.story } }); }")
    assert fold.get_attribute("open") is not None


def test_the_rows_of_regimes_are_in_sight_without_scrolling(act, kill_one):
    a = act(kill_one, width=1440)  # 900 high
    below = a.page.evaluate(
        """() => {
          const { timeline } = stage.mounted;
          const lane = timeline.lanes.find((one) => one.name === "regime");
          return timeline.base.getBoundingClientRect().top + lane.top + lane.height();
        }"""
    )
    assert below < 800  # the head of the page comes above it
