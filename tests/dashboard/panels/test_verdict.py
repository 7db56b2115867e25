"""Verdict, facts, plan, banners: what a reader sees first."""

from __future__ import annotations

import re

import pytest

pytestmark = pytest.mark.browser


def fact(act, title):
    return act.page.locator(".cr-fact", has=act.page.locator("dt", has_text=title)).locator("dd")


def test_the_verdict_comes_first_with_shape_and_word(act, kill_one):
    a = act(kill_one)
    panel = a.page.get_by_role("region", name="Verdict")
    assert panel.locator(".cr-verdict-word").inner_text() == "ok"
    assert panel.locator(".cr-verdict-line > svg").get_attribute("data-shape") == "check"
    assert panel.locator(".cr-verdict-text").inner_text() == a.view("story")["verdict"]["sentence"]
    order = a.page.evaluate(
        "() => [...document.querySelectorAll('.cr-run h2')].map((h) => h.textContent)"
    )
    assert order[0] == "Verdict"


def test_unknown_has_its_own_shape_and_reasons(act, kill_one):
    checks = [
        {
            "code": "R3", "name": "debt leak", "verdict": "unknown", "num_checked": 2,
            "num_violations": 0, "reason": "rank 2 has a gap",
        }
    ]  # fmt: skip
    verdict = {
        "state": "unknown", "sentence": "Evidence is missing.", "detail": [], "checks": checks,
        "num_violations": 0, "judged_upto_ns": None,
    }  # fmt: skip
    a = act(kill_one, change={"verdict": verdict})
    assert a.page.locator(".cr-verdict-line > svg").get_attribute("data-shape") == "question"
    a.page.locator("summary", has_text="What was checked: 1 unknown").click()
    row = a.page.locator(".cr-checks tbody tr").inner_text()
    assert "R3" in row and "unknown" in row and "rank 2 has a gap" in row


def test_what_was_checked_lists_every_check_violated_first(act, broken):
    a = act(broken)
    a.page.locator("summary", has_text="What was checked").click()
    rows = a.page.locator(".cr-checks tbody tr")
    assert rows.count() == len(a.view("story")["verdict"]["checks"])
    assert "violated" in rows.first.inner_text()


def test_regime_shares_sum_to_a_hundred_and_are_the_storys(act, kill_one):
    a = act(kill_one)
    text = fact(a, "Time in each regime").inner_text()
    shown = {name: float(value) for name, value in re.findall(r"([A-Z]{4,}) ([\d.]+)%", text)}
    assert sum(shown.values()) == pytest.approx(100, abs=0.001)
    regimes = a.view("story")["regimes"]
    total = [0, 0, 0]
    for code, begin, end in zip(
        regimes["regime"], regimes["start_ns"], regimes["end_ns"], strict=True
    ):
        total[code] += end - begin
    for i, name in enumerate(("STRONG", "CAUSAL")):
        assert shown[name] == pytest.approx(100 * total[i] / sum(total), abs=0.1)


@pytest.mark.parametrize(
    "parts", [[1 / 3, 1 / 3, 1 / 3], [0.99996, 0.00004, 0], [0.5, 0.25, 0.25], [1, 0, 0]]
)
def test_rounding_keeps_the_sum(act, clean, parts):
    a = act(clean)
    got = a.page.evaluate("(parts) => Cascade.ui.roundTo100(parts, 1)", parts)
    assert sum(got) == pytest.approx(100, abs=1e-9)
    assert all(abs(x - 100 * p) < 0.1 + 1e-9 for x, p in zip(got, parts, strict=True))


def test_the_waste_is_said_with_its_base_and_its_sql(act, kill_one):
    a = act(kill_one)
    waits = a.view("story")["waits"]
    dd = fact(a, "Wasted at barriers")
    assert f"{waits['total_rank_s']:.2f}" in dd.inner_text()
    share = f"{waits['share_pct']:.1f}"
    assert re.search(rf"{re.escape(share)}% of [\d.]+ rank-seconds", dd.inner_text())
    link = dd.get_by_role("link")
    href = link.get_attribute("href")
    assert href.startswith(f"/dash/run/{kill_one.run.run_id}/sql?q=SELECT%20rank")
    assert link.get_attribute("aria-label") == "show SQL of the waits"


def test_a_report_file_has_no_sql_links(act, kill_one):
    a = act(kill_one, offline=True)
    assert a.page.get_by_role("link", name="show SQL").count() == 0


def test_waiting_for_the_first_row_says_how_to_send_one(act, kill_one):
    run = {**act(kill_one).view("story")["run"], "state": "waiting"}
    a = act(kill_one, change={"run": run, "plan": [], "walks": [], "marks": []})
    text = a.page.get_by_role("region", name="Verdict").inner_text()
    assert f"cascade run --collector {kill_one.base}" in text


def test_waiting_for_a_demo_s_first_row_says_what_will_happen(act, kill_one):
    plan = ["Rank 2 is killed", "The others fall to CAUSAL on GPU_FAIL_STOP", "All ends"]
    run = {**act(kill_one).view("story")["run"], "state": "waiting"}
    a = act(kill_one, change={"run": run, "plan": plan, "walks": [], "marks": []})
    text = a.page.get_by_role("region", name="Verdict").inner_text()
    assert "Waiting for the demo's first row" in text
    items = a.page.get_by_role("region", name="What will happen next").locator("li")
    assert ["not yet" in i.inner_text() for i in items.all()] == [True, True, True]
    assert a.page.get_by_role("region", name="Incidents").count() == 0


def test_banners_name_what_is_missing_and_the_next_act(act, kill_one):
    story = act(kill_one).view("story")
    change = {
        "run": {**story["run"], "world_size": 64, "state": "unclean"},
        "missing": list(range(56, 64)),
        "gaps": [{"rank": 1, "incarnation": 0, "at_ns": 9, "num_events": 12, "reason": "dropped"}],
        "silent": [{"rank": 3, "from_ns": 1_000_000_000, "to_ns": None}],
    }
    a = act(kill_one, change=change)
    text = a.page.get_by_role("region", name="Problems").inner_text()
    assert "56 of 64 ranks have rows; missing: {56-63}" in text
    assert "12 events of rank 1 known to be missing (dropped)" in text
    assert "No row from rank 3 for" in text
    assert "The run's end is missing: it is still running, or was cut off" in text
    a.page.get_by_role("button", name="Go to the first").click()
    assert a.view("t") == 9


def test_when_all_are_silent_it_says_for_how_long(act, kill_one):
    story = act(kill_one).view("story")
    silent = [{"rank": r, "from_ns": story["t1_ns"], "to_ns": None} for r in (0, 1, 2, 3)]
    a = act(kill_one, change={"silent": silent})
    pulse = {"state": "live", "version": "1", "tiles_version": "1", "t1_ns": story["t1_ns"]}
    a.set(pulse=pulse | {"last_row_age_s": 71.4})
    text = a.page.get_by_role("region", name="Problems").inner_text()
    assert "No row from ranks {0-3} for 1 m 11 s: look at their processes" in text


def test_a_gone_collector_is_told_and_the_page_stays(act, kill_one):
    a = act(kill_one)
    a.set(problem={"kind": "gone", "text": "the collector does not answer since 12:00:00"})
    alert = a.page.get_by_role("alert")
    assert "The collector does not answer" in alert.inner_text()
    assert "the last that came" in alert.inner_text()
    assert a.page.locator(".cr-verdict-word").inner_text() == "ok"
    a.set(problem=None)
    assert a.page.get_by_role("alert").count() == 0


def test_the_figures_fit_on_one_line_of_a_small_screen(act, kill_one):
    a = act(kill_one, width=1424)
    tops = a.page.locator(".cr-fact").evaluate_all("all => all.map((one) => one.offsetTop)")
    assert len(tops) == 8
    assert len(set(tops)) == 1
