"""State at the cursor: the lattice from the story, the table from the server's rows."""

from __future__ import annotations

import time

import pytest

pytestmark = pytest.mark.browser


def at(act, t):
    act.set(t=t)
    act.wait("() => stage.asked.length && !document.querySelector('[aria-busy]')")
    act.page.wait_for_function(
        "(t) => { const last = stage.asked.filter((x) => x[0] === 'state').at(-1); "
        "return last && last[1] === Math.round(t); }",
        arg=t,
    )


def cells(act, rank):
    return act.page.locator(f'tr[data-rank="{rank}"] > *').all_inner_texts()


def test_the_lattice_has_the_ranks_on_their_regime_and_the_last_edge(act, kill_one):
    a = act(kill_one)
    walk = a.view("story")["walks"][0]
    at(a, walk["at_ns"] + 100_000_000)
    label = a.page.locator(".cr-lattice svg[role=img]").get_attribute("aria-label")
    assert "CAUSAL: ranks {0, 1, 3}" in label
    assert "GPU_FAIL_STOP" in label
    text = a.page.locator(".cr-lattice").inner_text()
    assert "epoch 1" in text and "missing {2}" in text and walk["reason"] in text
    assert "2 left (failed)" in text
    assert a.page.locator(".cr-lattice .cr-svg-chiptext").all_text_contents() == ["0", "1", "3"]


def test_the_table_shows_what_the_server_answers(act, kill_one):
    a = act(kill_one)
    t = a.view("story")["walks"][0]["at_ns"] + 100_000_000
    at(a, t)
    want = a.page.evaluate("(t) => stage.source.state(t)", t)
    a.page.wait_for_function(
        "() => document.querySelector('tr[data-rank=\"2\"]').innerText.includes('gone')"
    )
    for row in want["ranks"]:
        shown = cells(a, row["rank"])
        assert shown[0] == f"rank {row['rank']}"
        if row["state"] == "present":
            assert shown[2] == row["regime"]
            assert shown[4] == str(row["epoch"])
        else:
            assert "failed" in shown[1]
        assert shown[9] == f"{row['open_debt']}"


def test_what_changed_since_the_last_step_is_marked(act, kill_one):
    a = act(kill_one)
    walk = a.view("story")["walks"][0]
    at(a, walk["at_ns"] - 200_000_000)
    a.wait("() => document.querySelector('tr[data-rank=\"0\"]').innerText.includes('STRONG')")
    at(a, walk["at_ns"] + 100_000_000)
    a.wait("() => document.querySelector('tr[data-rank=\"0\"]').innerText.includes('CAUSAL')")
    changed = a.page.locator('tr[data-rank="0"] > .cr-changed')
    assert "CAUSAL" in changed.all_inner_texts()
    assert "was STRONG" in [c.get_attribute("title") for c in changed.all()]


def test_open_debt_at_the_cursor(act, kill_one):
    a = act(kill_one)
    debts = a.view("story")["debts"]
    inside = max(d["opened_ns"] for d in debts) + 1_000_000
    at(a, inside)
    a.wait("() => document.body.innerText.includes('Open debt: 2')")
    at(a, max(d["closed_ns"] for d in debts) + 1_000_000)
    a.wait("() => document.body.innerText.includes('Open debt: none')")


def test_scrubbing_asks_at_most_eight_times_a_second_and_ends_at_the_last_place(act, kill_one):
    a = act(kill_one)
    at(a, 1_000_000_000)
    before = a.page.evaluate("() => stage.asked.length")
    took = a.page.evaluate(
        """async () => {
          const begin = performance.now();
          for (let i = 1; i <= 300; i += 1) {
            stage.view.set({ t: 1e9 + i * 1e6 });
            await new Promise(requestAnimationFrame);
          }
          return performance.now() - begin;
        }"""
    )
    a.wait("() => stage.asked.at(-1)[1] === 1.3e9")
    asked = a.page.evaluate("() => stage.asked.length") - before
    assert asked <= took / 125 + 2


def test_a_rank_is_chosen_from_the_table(act, kill_one):
    a = act(kill_one)
    at(a, 1_000_000_000)
    a.page.locator('tr[data-rank="1"]').get_by_role("button").click()
    assert a.view("sel") == "rank:1"
    assert a.page.locator('tr[data-rank="1"]').get_attribute("aria-current") == "true"


FOLLOWED = """async () => {
  const { view, asked } = stage;
  const from = asked.length;
  view.set({ follow: true });
  const begun = view.t1 - 2e9;
  for (let i = 1; i <= 20; i += 1) {
    view.set({ t: begun + i * 1e7 });
    await new Promise((done) => setTimeout(done, 30));
  }
  return asked.slice(from).filter((one) => one[0] === "state").length;
}"""
WALKED = """async () => {
  const { view, asked } = stage;
  view.set({ follow: true, t: view.t + 1e6 });
  const { story } = view, from = asked.length, waits = [], right = window.setTimeout;
  window.setTimeout = (what, ms) => (waits.push(ms), right(what, ms));
  view.set({ story: { ...story, walks: [...story.walks, story.walks[0]] }, t: view.t + 1e6 });
  while (!asked.slice(from).some((one) => one[0] === "state")) {
    await new Promise((done) => right(done, 5));
  }
  window.setTimeout = right;
  return waits;
}"""


def test_a_view_that_follows_asks_at_its_own_pace_and_ends_at_the_newest_moment(act, kill_one):
    a = act(kill_one)
    at(a, a.view("t1") - 2_000_000_000)
    a.wait("() => document.querySelector('tr[data-rank]')")
    begun = time.monotonic()
    num_asked = a.page.evaluate(FOLLOWED)
    assert num_asked <= 2 + (time.monotonic() - begun)  # seconds: a busy machine takes longer
    a.page.wait_for_function(
        "() => stage.asked.filter((x) => x[0] === 'state').at(-1)[1] === Math.round(stage.view.t)"
    )


def test_a_walk_is_asked_for_at_once_by_a_view_that_follows(act, kill_one):
    a = act(kill_one)
    at(a, a.view("t1") - 2_000_000_000)
    a.wait("() => document.querySelector('tr[data-rank]')")
    waits = a.page.evaluate(WALKED)
    assert waits and max(waits) <= 400  # the panel's own pace is a second
