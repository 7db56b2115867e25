"""What is below and beside the timeline comes after its first picture, and comes in any case."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.browser

ORDER = """() => {
  window.seen = [];
  performance.clearMarks("cascade-frame"); // of the stage's own play
  new MutationObserver(() => {
    const marks = performance.getEntriesByName("cascade-frame").some((mark) => mark.detail.sharp);
    for (const name of ["cr-verdict-word", "cr-incident", "cr-replay", "cr-at-waits .cr-panel"]) {
      if (document.querySelector(`.${name}`) && !seen.some(([one]) => one === name)) seen.push([name, marks]);
    }
  }).observe(document.body, { childList: true, subtree: true });
}"""


def test_the_verdict_comes_with_the_picture_and_the_lists_after_it(act, kill_one):
    a = act(kill_one)
    a.page.evaluate("stage.mounted.destroy()")
    a.page.evaluate(ORDER)
    a.page.evaluate("(run) => stage.play({ run })", kill_one.run.run_id)
    seen = dict(a.page.evaluate("seen"))
    assert seen["cr-verdict-word"] is False
    assert seen["cr-incident"] is seen["cr-replay"] is seen["cr-at-waits .cr-panel"] is True


def test_they_come_without_a_picture_too(act, kill_one):
    a = act(kill_one)
    a.page.evaluate("stage.mounted.destroy()")
    a.page.evaluate(
        """(run) => {
          const element = document.getElementById("stage");
          const source = new Cascade.ServerSource("", run);
          source.tile = () => new Promise(() => {});
          window.again = Cascade.mount(element, { source, view: new Cascade.View() });
        }""",
        kill_one.run.run_id,
    )
    a.page.wait_for_selector(".cr-at-waits .cr-panel")
    assert a.page.locator(".cr-incident").count() > 0
    a.page.evaluate("again.destroy()")
    assert a.page.locator(".cr-run").count() == 0


def test_taken_down_before_its_time_nothing_comes_later(act, kill_one):
    a = act(kill_one)
    a.page.evaluate("stage.mounted.destroy()")
    a.page.evaluate(
        """async (run) => {
          const source = new Cascade.ServerSource("", run);
          const mounted = Cascade.mount(document.getElementById("stage"), { source });
          mounted.destroy();
          await new Promise((done) => setTimeout(done, 50));
        }""",
        kill_one.run.run_id,
    )
    assert a.page.locator(".cr-run, .cr-panel").count() == 0
