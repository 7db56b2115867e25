"""Tips by keyboard, table twins with the source's numbers, waits, hostile text, clean removal."""

from __future__ import annotations

import csv
import io
import re

import pytest

pytestmark = pytest.mark.browser

HOSTILE = '<img src=x onerror="window.pwned=1"><script>window.pwned=1</script>"\'&{{7*7}}'

NEEDED = {
    "regime", "STRONG", "CAUSAL", "EVENTUAL", "epoch", "walk", "cohort", "debt", "frontier",
    "clock", "dot", "in flight", "waited", "caused", "blamed", "came last", "exposed", "violation", "verdict unknown",
    "not checked", "gap", "incarnation", "silent", "excursion", "judged", "provisional",
    "rank-seconds",
}  # fmt: skip

NAMES_OF_OURS = {
    "id", "sel", "state", "severity", "verdict", "kind", "regime", "version", "run_id", "t0_ns",
    "source", "fate", "from", "to", "group",
}  # fmt: skip
"""Words of the vocabulary and ids, which the doorway checks: never free text."""


def test_a_tip_opens_by_focus_and_hover_and_escape_closes_it(act, kill_one):
    a = act(kill_one)
    word = a.page.get_by_role("button", name="rank-seconds")
    tip = a.page.locator(f"#{word.get_attribute('aria-describedby')}")
    assert tip.get_attribute("role") == "tooltip" and tip.is_hidden()
    word.focus()
    assert tip.is_visible() and "four ranks" in tip.inner_text()
    box = tip.bounding_box()
    assert box["x"] >= 0 and box["x"] + box["width"] <= 1280
    a.set(sel="rank:1")
    a.page.keyboard.press("Escape")
    assert tip.is_hidden()
    # That Escape was for the tip: the selection is still there.
    assert a.view("sel") == "rank:1"
    word.hover()
    assert tip.is_visible()


def test_every_word_of_the_page_has_a_sentence(act, kill_one):
    a = act(kill_one)
    words = a.page.evaluate("() => Cascade.words")
    assert set(words) >= NEEDED
    for term, text in words.items():
        assert text.endswith(".") and 20 < len(text) < 200, term


def test_the_table_twin_has_the_numbers_of_the_source(act, kill_one):
    a = act(kill_one)
    a.page.evaluate("() => stage.view.whole()")
    a.page.get_by_role("button", name="View as table").click()
    dialog = a.page.get_by_role("dialog", name="Timeline as a table")
    dialog.get_by_role("heading", name="By rank").wait_for()
    asked = a.page.evaluate("() => stage.asked.filter((x) => x[0] === 'window').at(-1)")
    want = a.page.evaluate("([, a, b]) => stage.source.window(a, b)", asked)
    rows = dialog.locator("table").first.locator("tbody tr")
    assert rows.count() == len(want["by_rank"]) + 1
    for i, by_rank in enumerate(want["by_rank"]):
        shown = rows.nth(i).locator("th, td").all_inner_texts()
        shares = [float(x[:-1]) for x in shown[1:4]]
        assert sum(shares) == pytest.approx(100, abs=1e-6)
        for name, share in zip(("STRONG", "CAUSAL", "EVENTUAL"), shares, strict=True):
            assert share == pytest.approx(100 * by_rank["regimes"].get(name, 0), abs=0.011)
        seconds = float(re.match(r"[\d.]+", shown[4])[0])
        scale = 1e-3 if shown[4].endswith("ms") else 1
        assert seconds * scale == pytest.approx(by_rank["waited_s"], rel=0.01)
        assert shown[6] == "not measured" and by_rank["gpu_median"] is None
    text = dialog.inner_text()
    for walk in a.view("story")["walks"]:
        assert walk["sentence"] in text
    a.page.keyboard.press("Escape")
    assert dialog.count() == 0
    assert a.page.evaluate("() => document.activeElement.ariaLabel") == "View as table"


def test_csv_is_quoted_and_no_formula(act, clean):
    a = act(clean)
    text = a.page.evaluate(
        "(rows) => Cascade.tables.csv(['a', 'b'], rows)", [["=1+1", 'x"y,z'], [-1.5, None]]
    )
    assert list(csv.reader(io.StringIO(text))) == [["a", "b"], ["'=1+1", 'x"y,z'], ["-1.5", ""]]


def test_waits_are_the_storys_and_a_pair_can_be_chosen(act, kill_one):
    a = act(kill_one)
    waits = a.view("story")["waits"]
    panel = a.page.get_by_role("region", name="Waits").first
    assert panel.locator(".cr-claim").inner_text() == waits["sentence"]
    assert "judged" in panel.inner_text()
    pair = waits["pairs"][0]
    line = panel.locator("table").last.locator("tbody tr").first
    assert f"rank {pair['waited']}" in line.inner_text() and str(pair["num"]) in line.inner_text()
    line.get_by_role("button").click()
    assert a.view("sel") == f"wait:{pair['caused_by']}:{pair['waited']}"
    said = panel.locator(".cr-picked").inner_text()
    assert said.startswith(f"Rank {pair['waited']} waited") and pair["cause"] in said


def test_before_the_analysis_it_is_told_who_came_last_and_nobody_is_blamed(act, kill_one):
    judged = act(kill_one).view("story")["waits"]
    rows = [{"rank": rank, "waited_s": 1.0, "last_s": 1.0 + rank} for rank in range(4)]
    a = act(kill_one, change={"waits": {**judged, "source": "provisional", "by_rank": rows}})
    table = a.page.get_by_role("region", name="Waits").first.locator("table").first
    assert table.get_by_role("columnheader").all_inner_texts() == ["Rank", "Waited", "Came last"]
    firsts = table.locator("tbody tr th, tbody tr td:first-child").all_inner_texts()
    assert [text.split()[-1] for text in firsts] == ["3", "2", "1", "0"]


@pytest.mark.parametrize("waits", [None, "refused"])
def test_waits_that_are_not_known_are_not_shown_as_zero(act, kill_one, waits):
    if waits:
        known = act(kill_one).view("story")["waits"]
        waits = {**known, "refused": "the hosts share no clock", "by_rank": [], "pairs": []}
    verdict = {**act(kill_one).view("story")["verdict"], "judged_upto_ns": None}
    a = act(kill_one, change={"waits": waits, "verdict": verdict})
    text = a.page.get_by_role("region", name="Waits").first.inner_text()
    assert ("the hosts share no clock" if waits else "not known yet") in text
    assert not re.search(r"\b0 (s|ms|ns)\b", text)


def test_waits_of_which_only_some_were_refused_are_shown_with_the_reason(act, kill_one):
    waits = {**act(kill_one).view("story")["waits"], "refused": "host b shares no clock"}
    a = act(kill_one, change={"waits": waits})
    panel = a.page.get_by_role("region", name="Waits").first
    assert "Not all is measured: host b shares no clock" in panel.inner_text()
    assert panel.get_by_role("columnheader", name="Blamed").count() == 1
    assert panel.locator("table").first.locator("tbody tr").count() == len(waits["by_rank"])


def test_hostile_text_is_shown_as_text(act, broken):
    story = act(broken).view("story")

    def spoil(value):
        if isinstance(value, dict):
            return {k: v if k in NAMES_OF_OURS else spoil(v) for k, v in value.items()}
        if isinstance(value, list):
            return [spoil(v) for v in value]
        return HOSTILE if isinstance(value, str) else value

    names = ("run", "walks", "marks", "debts", "verdict", "violations", "waits", "incidents")
    change = {name: spoil(story[name]) for name in names}
    a = act(broken, change={**change, "plan": [HOSTILE]})
    a.page.locator("summary", has_text="Evidence as JSON").click()
    a.page.locator("summary", has_text="What was checked").click()
    assert a.page.evaluate("() => window.pwned === undefined")
    assert (
        a.page.evaluate("() => document.querySelectorAll('#stage img, #stage script').length") == 0
    )
    assert HOSTILE in a.page.locator(".cr-claim").first.inner_text()
    a.page.get_by_role("button", name="View as table").click()
    a.page.get_by_role("dialog").get_by_role("heading", name="What happened").wait_for()
    assert a.page.evaluate("() => window.pwned === undefined")


def test_destroy_takes_everything_off(act, kill_one):
    a = act(kill_one)
    a.page.evaluate("() => stage.mounted.destroy()")
    assert a.page.evaluate("() => document.getElementById('stage').children.length") == 1
    left = a.page.evaluate(
        "() => [...stage.view.listeners].filter(([, set]) => set.size).map(([name]) => name)"
    )
    assert left == []
    a.set(t=5, playing=True)
    assert a.page.evaluate("() => stage.frames.length") == 0


def test_narrow_pages_stack_and_do_not_scroll_sideways(act, broken):
    for width in (390, 900, 1280, 2560):
        a = act(broken, width=width)
        assert a.page.evaluate("() => document.documentElement.scrollWidth <= window.innerWidth"), (
            width
        )


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing_serious(act, broken, theme):
    axe = pytest.importorskip(
        "axe_playwright_python.sync_playwright", reason="axe-playwright-python is not installed"
    )
    a = act(broken)
    a.set(theme=theme)
    a.page.locator("summary", has_text="What was checked").click()
    found = axe.Axe().run(a.page).response["violations"]
    serious = [
        (v["id"], [node["html"][:200] for node in v["nodes"]])
        for v in found
        if v["impact"] in ("serious", "critical")
    ]
    assert serious == []
