"""A report on screen, opened as a file: the same as the page, and nothing asked of anybody."""

from __future__ import annotations

import contextlib

import pytest

from dashboard.report.tiles import COLUMNS
from dashboard.story.teller import Teller as Speaker
from dashboard.story.trace_source import TraceRun
from dashboard.tiles import tiles_of
from tests.dashboard.report.conftest import SAMPLES
from tests.dashboard.report.kit import opened, report_of
from tests.dashboard.story.kit import DEADLINE_S, trace_of
from tests.story import Story

pytestmark = pytest.mark.browser

LANES = "Cascade.report.timeline.shown.map((lane) => lane.name)"
MS = 1_000_000


@contextlib.contextmanager
def spoken(trace):
    """The trace's source and who tells its story, both done."""
    with contextlib.closing(TraceRun(trace)) as run:
        assert run.wait_until_judged(DEADLINE_S), run.problem()
        tiles = tiles_of(run)
        assert tiles.wait(DEADLINE_S)
        yield Speaker(run), tiles
        tiles.close()


@pytest.mark.parametrize("name", SAMPLES)
def test_a_sample_is_shown_as_its_page_shows_it(chromium, samples, name):
    with spoken(name) as (speaker, _), opened(chromium, samples[name]) as shown:
        story = speaker.story().story
        page = shown.page
        assert story.verdict.sentence in page.inner_text(".cr-verdict")
        titles = page.locator(".cr-incidents").inner_text()
        for incident in story.incidents:
            assert incident.title in titles
        assert page.evaluate(LANES) == [
            *("fleet", "marks", "regime", "gpu", "cpu", "waited", "caused", "debt")
        ]
        held = page.evaluate("Cascade.report.view.story")
        for column in story.regimes.__struct_fields__:
            assert held["regimes"][column] == getattr(story.regimes, column)
        assert held["t1_ns"] == story.t1_ns and held["ranks"] == story.ranks
        if story.waits is not None:
            assert story.waits.sentence in page.inner_text(".cr-at-waits")
        foot = page.inner_text("footer")
        assert "cascade replay TRACE zooms further" in foot and story.run.run_id in foot


def test_the_waits_are_those_of_the_server_at_the_stored_resolution(chromium, samples):
    ask = """([lane, a, b, w]) => Cascade.report.source.tile(a, b, w, [lane], null)
      .then((tile) => ({ rows: tile.layers[lane].rows, data: [...tile.layers[lane].data] }))"""
    with spoken("kill-one") as (speaker, tiles), opened(chromium, samples["kill-one"]) as shown:
        story = speaker.story().story
        num = shown.page.evaluate("Cascade.report.source.tiles.cols")
        assert num == 8192
        for lane in ("waited", "caused"):
            said = tiles.tile(0, story.t1_ns, num, [lane], story.ranks)
            ours = bytes(said[4 + int.from_bytes(said[:4], "little") :])[: num * len(story.ranks)]
            held = shown.page.evaluate(ask, [lane, 0, story.t1_ns, num])
            assert held["rows"] == story.ranks
            assert bytes(held["data"]) == ours
            # Wider pixels are means: no wait is lost, and none is made up.
            rough = shown.page.evaluate(ask, [lane, 0, story.t1_ns, 512])["data"]
            said = tiles.tile(0, story.t1_ns, 512, [lane], story.ranks)
            exact = said[4 + int.from_bytes(said[:4], "little") :][: 512 * len(story.ranks)]
            for mine, theirs in zip(rough, exact, strict=True):
                assert (mine > 0) == (theirs > 0)
                # A rank that several wait for fills its column, and no more.
                assert abs(mine - theirs) <= 4 or (lane == "caused" and mine < theirs)


def test_sums_are_those_of_the_server(chromium, samples):
    ask = "([a, b]) => Cascade.report.source.window(a, b)"
    with spoken("kill-one") as (speaker, tiles), opened(chromium, samples["kill-one"]) as shown:
        t1 = speaker.story().story.t1_ns
        bounds = [t1 * n // 256 for n in (0, 17, 100, 101, 256)]
        for a, b in ((bounds[0], bounds[4]), (bounds[1], bounds[2]), (bounds[2], bounds[3])):
            exact, theirs = tiles.window_sums(a, b), speaker.window(a, b)
            ours = shown.page.evaluate(ask, [a, b])
            for mine, other in zip(ours["by_rank"], theirs["by_rank"], strict=True):
                waited, caused = exact[mine["rank"]]
                assert mine["waited_s"] == pytest.approx(waited, abs=2e-4)
                assert mine["caused_s"] == pytest.approx(caused, abs=2e-4)
                assert mine["regimes"] == pytest.approx(other["regimes"])
            assert ours["regime_share"] == pytest.approx(theirs["regime_share"])
            assert ours["about"] == ((a, b) != (bounds[0], bounds[4]))


def test_the_state_is_the_servers_as_far_as_the_file_holds_it(chromium, samples):
    with spoken("kill-one") as (speaker, _), opened(chromium, samples["kill-one"]) as shown:
        story = speaker.story().story
        ends = [0, story.t1_ns, *(walk.at_ns for walk in story.walks)]
        times = sorted({*ends, *(story.t1_ns * k // 11 for k in range(11)), -5, story.t1_ns + 9})
        for t in times:
            theirs = speaker.state(t)
            ours = shown.page.evaluate("(t) => Cascade.report.source.state(t)", t)
            assert ours["groups"] == theirs["groups"], t
            assert ours["last_walk"] == theirs["last_walk"]
            for mine, other in zip(ours["ranks"], theirs["ranks"], strict=True):
                for name in (
                    *("rank", "incarnation", "state", "end", "regime", "since_ns", "epoch"),
                    *("cohort", "open_debt"),
                ):
                    assert mine[name] == other[name], (t, name)
                assert (mine["clock"], mine["num_in_flight"], mine["gpu"]) == ([], None, None)
                if mine["step"] is not None:
                    assert 0 <= other["step"] - mine["step"] <= 1
                    assert mine["seq"] <= other["seq"]
        said = shown.page.inner_text(".cr-at-state")
        assert "clocks, updates in flight, GPU and CPU of a rank are not in this file" in said


def test_a_permalink_comes_back(chromium, samples):
    with opened(chromium, samples["kill-one"]) as shown:
        page = shown.page
        look = {"a": 2_000 * MS, "b": 3_000 * MS, "t": 2_700 * MS, "sel": "rank:1", "theme": "dark"}
        page.evaluate("(look) => Cascade.report.view.set(look)", look)
        page.wait_for_function("() => location.hash.includes('sel=rank:1')")
        assert "t=2700000000" in page.evaluate("location.hash")
        read = "(({a, b, t, sel, theme}) => ({a, b, t, sel, theme}))(Cascade.report.view)"
        place = page.evaluate("location.hash")
        shown.go(place)
        assert page.evaluate(read) == look
        assert page.evaluate("document.documentElement.dataset.theme") == "dark"


def test_the_theme_follows_the_system_until_it_is_chosen(chromium, samples):
    with opened(chromium, samples["clean"], color_scheme="dark") as shown:
        theme = "document.documentElement.dataset.theme"
        assert shown.page.evaluate(theme) == "dark"
        shown.page.emulate_media(color_scheme="light")
        shown.page.wait_for_function(f"() => {theme} === 'light'")
        for name, then in (("light", "light"), ("dark", "dark"), ("system", "light")):
            shown.page.click(".rp-theme")
            shown.page.wait_for_function(f"() => {theme} === '{then}'")
            assert shown.page.inner_text(".rp-theme") == f"Theme: {name}"


def held(page):
    """The words for a column of what a small run's file holds: all of the run in the most columns."""
    end_ns = page.evaluate("Cascade.report.view.story.t1_ns")
    return f"this file holds {end_ns / COLUMNS[0] / 1000:.0f} µs a column"


def test_zooming_below_what_is_held_says_so(chromium, samples):
    note = """Cascade.report.timeline.shown.find((lane) => lane.name === "waited").note()"""
    with opened(chromium, samples["kill-one"]) as shown:
        page = shown.page
        page.evaluate("Cascade.report.view.whole()")
        assert "a column" not in page.evaluate(note)
        words = held(page)
        page.evaluate("Cascade.report.view.look(2.5e9, 2.51e9)")
        page.wait_for_function(f"() => {note}.includes('{words}')")
        assert "cascade replay TRACE zooms further" in page.evaluate(note)


def test_the_table_says_what_is_missing(chromium, samples):
    with opened(chromium, samples["kill-one"]) as shown:
        words = held(shown.page)
        shown.page.get_by_role("button", name="View as table").click()
        shown.page.wait_for_selector("dialog table")
        said = shown.page.inner_text("dialog")
        assert f"Waits are about right: {words}" in said
        assert "not in this file" in said


def test_the_replay_bar_plays(chromium, samples):
    with opened(chromium, samples["kill-one"], "#t=0") as shown:
        shown.page.keyboard.press("Space")
        shown.page.wait_for_function("() => Cascade.report.view.t > 2e8")
        shown.page.keyboard.press("Space")
        shown.page.wait_for_function("() => !Cascade.report.view.playing")


def excursion():
    """Four hours in which one rank was in EVENTUAL for 20 ms."""
    s = Story(ranks=3)
    hours = 4 * 3600 * 1000
    s.ranks[0].begin(1)
    s.wait(hours / 2)
    walks = {"members": s.ranks, "departed": []}
    s.walk("EVENTUAL", "STATE_CORRUPTION", debts=False, **walks)
    s.wait(20)
    s.walk("CAUSAL", "RECOVERY_DETECTED", debts=False, **walks)
    s.walk("STRONG", "STABLE_SYNC", debts=False, **walks)
    s.wait(hours / 2)
    for one in s.ranks:
        one.begin(2)
        one.end()
    return s


def test_a_short_excursion_is_seen_in_the_whole_of_a_long_run(chromium, tmp_path):
    path = report_of(trace_of(excursion(), tmp_path / "t"), tmp_path / "r.html")
    with opened(chromium, path) as shown:
        page = shown.page
        page.evaluate("Cascade.report.view.whole()")
        worst = """() => {
          const { timeline, view } = Cascade.report;
          const rows = timeline.rows.map((row) => row.ranks);
          const pixels = Cascade.regimeBodies(timeline.lookup.regimes, rows, view.group, view.a, view.b, 1000);
          return [Math.round((view.b - view.a) / 3.6e12), [...pixels.worst].filter((one) => one === 2).length];
        }"""
        hours, seen = page.evaluate(worst)
        assert hours == 4
        assert 3 <= seen <= 6  # in each rank's row a pixel, or two that it lies across


def test_a_run_with_many_violations_opens_at_the_first(chromium, tmp_path):
    s = Story(ranks=2)
    for debt in range(620):
        s.ranks[0].open_debt(f"d{debt}")
    path = report_of(trace_of(s, tmp_path / "t"), tmp_path / "r.html")
    with opened(chromium, path) as shown:
        page = shown.page
        story = page.evaluate("Cascade.report.view.story")
        first = min(story["violations"], key=lambda one: one["at_ns"])
        sel, t = page.evaluate("[Cascade.report.view.sel, Cascade.report.view.t]")
        assert sel.startswith("violation:") and t == first["at_ns"]
        assert len(story["violations"]) == 500 < story["verdict"]["num_violations"]
        said = page.inner_text("footer")
        assert f"500 of {story['verdict']['num_violations']} violations are in this file" in said
        assert first["sentence"][1:] in page.inner_text(".cr-at-violation")


def test_a_cut_file_says_so(chromium, samples, tmp_path):
    text = samples["clean"].read_text()
    at = text.index('id="cascade-tiles">') + len('id="cascade-tiles">')
    torn = tmp_path / "torn.html"
    torn.write_text(text[: at + 40] + text[text.index("</script>", at) :])
    page = chromium.new_page()
    try:
        page.goto(torn.as_uri())
        page.wait_for_selector("[role=alert]")
        assert "make it again with cascade report" in page.inner_text("[role=alert]")
    finally:
        page.close()
