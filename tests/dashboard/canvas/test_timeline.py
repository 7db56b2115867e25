"""The timeline as it is used: drawn, pointed at, zoomed, folded, searched; live and when things fail."""

from __future__ import annotations

import pytest

from tests.dashboard.canvas.stage import MOUNT, SECOND, story

pytestmark = pytest.mark.browser

PIXEL = """([x, y]) => {
  const k = tl.ratio;
  return [...tl.base.getContext("2d").getImageData(Math.round(x * k), Math.round(y * k), 1, 1).data].slice(0, 3);
}"""
ROW = """([name, row]) => {
  const lane = tl.shown.find((one) => one.name === name);
  return tl.topOf(lane) + lane.titleHeight + (row + 0.5) * tl.rowHeight;
}"""


def settled(page):
    page.wait_for_function("!tl.frame && !tl.rest")


def point(page, lane, row, t):
    """Where on the page a moment of a row is."""
    x = page.evaluate("(t) => tl.x(t)", t)
    y = page.evaluate(ROW, [lane, row])
    box = page.evaluate("(({ x, y }) => [x, y])(tl.overlay.getBoundingClientRect())")
    return round(box[0] + x), round(box[1] + y)  # a wheel event knows whole pixels only


def colour(page, lane, row, t):
    x = page.evaluate("(t) => tl.x(t)", t)
    return tuple(page.evaluate(PIXEL, [x, page.evaluate(ROW, [lane, row])]))


def token(page, name):
    return tuple(page.evaluate("(name) => tl.tokens.rgb(tl.tokens[name])", name))


def test_each_rank_is_drawn_in_its_regime_and_hatched_where_it_has_no_row(mounted):
    mounted.evaluate("view.whole()")
    settled(mounted)
    assert colour(mounted, "regime", 0, 20 * SECOND) == token(mounted, "regime-strong")
    assert colour(mounted, "regime", 0, 45 * SECOND) == token(mounted, "regime-causal")
    gone = colour(mounted, "regime", 3, 70 * SECOND)
    assert gone not in {
        token(mounted, f"regime-{name}") for name in ("strong", "causal", "eventual")
    }


def test_an_excursion_of_twenty_milliseconds_is_drawn_at_four_hours(page, stub):
    long = story(seconds=4 * 3600)
    at = 3 * 3600 * SECOND + 123
    rows = long["regimes"]
    first = rows["rank"].index(1) - 1  # the last interval of rank 0
    assert rows["start_ns"][first] < at < rows["end_ns"][first]
    end = rows["end_ns"][first]
    for regime, start, stop in ((2, at, at + 20_000_000), (0, at + 20_000_000, end)):
        first += 1
        one = {"rank": 0, "incarnation": 0, "group": "world", "epoch": 0, "regime": regime}
        for name, value in (one | {"start_ns": start, "end_ns": stop}).items():
            rows[name].insert(first, value)
    rows["end_ns"][first - 2] = at
    stub.story = long
    page.evaluate(MOUNT, {})
    page.wait_for_function("view.story")
    page.evaluate("view.whole()")
    settled(page)
    top = page.evaluate(ROW, ["regime", 0]) - page.evaluate("tl.rowHeight / 2") + 1
    x = page.evaluate("(t) => tl.left + Math.floor(tl.x(t) - tl.left)", at)
    assert tuple(page.evaluate(PIXEL, [x, top])) == token(page, "regime-eventual")
    assert colour(page, "regime", 0, at) == token(page, "regime-strong")


def test_pointing_reads_and_clicking_selects(mounted):
    mounted.evaluate("view.whole()")
    settled(mounted)
    mounted.mouse.move(*point(mounted, "regime", 1, 45 * SECOND))
    mounted.wait_for_function("!tl.card.hidden")
    card = mounted.inner_text(".ct-card")
    assert "rank 1" in card and "CAUSAL" in card and "UTC" in card
    mounted.wait_for_function("tl.card.textContent.includes('step 7')")
    mounted.mouse.move(*point(mounted, "regime", 3, 70 * SECOND))
    mounted.wait_for_function("tl.card.textContent.includes('left (failed)')")
    mounted.mouse.click(*point(mounted, "regime", 1, 45 * SECOND))
    sel, t, pixel = mounted.evaluate("[view.sel, view.t, view.span / tl.plotWidth]")
    assert sel == "rank:1"
    assert abs(t - 45 * SECOND) <= pixel


def test_clicking_a_mark_selects_its_walk_at_its_very_moment(mounted):
    mounted.evaluate("view.whole()")
    settled(mounted)
    x, _ = point(mounted, "regime", 0, 40 * SECOND)
    top = mounted.evaluate(
        "tl.overlay.getBoundingClientRect().y + tl.shown.find((l) => l.name === 'marks').top"
    )
    mounted.mouse.click(x, top + 12)
    assert mounted.evaluate("[view.sel, view.t]") == ["walk:world:1", 40 * SECOND]


def test_dragging_selects_a_stretch_and_the_wheel_zooms_about_the_mouse(mounted):
    mounted.evaluate("view.whole()")
    settled(mounted)
    start, end = (point(mounted, "regime", 0, t * SECOND) for t in (20, 30))
    mounted.mouse.move(*start)
    mounted.mouse.down()
    mounted.mouse.move(*end, steps=4)
    mounted.mouse.up()
    area = mounted.evaluate("view.area")
    pixel = mounted.evaluate("view.span / tl.plotWidth")
    assert area["a"] == pytest.approx(20 * SECOND, abs=1.5 * pixel)
    assert area["b"] == pytest.approx(30 * SECOND, abs=1.5 * pixel)
    # the wheel
    under = "(x) => tl.time(x - tl.overlay.getBoundingClientRect().x)"
    before = mounted.evaluate(under, end[0])
    mounted.keyboard.down("Control")
    for _ in range(5):
        mounted.mouse.wheel(0, -120)
    mounted.keyboard.up("Control")
    mounted.wait_for_function("view.span < 50e9")
    assert mounted.evaluate(under, end[0]) == pytest.approx(before, abs=1000)
    # F shows the stretch, F twice the whole run
    mounted.keyboard.press("f")
    a, b = mounted.evaluate("[view.a, view.b]")
    assert a < area["a"] and area["b"] < b and b - a < 15 * SECOND
    mounted.keyboard.press("f")
    assert mounted.evaluate("[view.a, view.b]") == mounted.evaluate("view.extent()")


def test_keys_move_the_cursor_and_the_window(mounted):
    mounted.evaluate("view.whole(); view.seek(10e9)")
    press = mounted.keyboard.press
    press("ArrowRight")
    assert mounted.evaluate("[view.t, view.sel]") == [40 * SECOND, "walk:world:1"]
    press("ArrowRight")
    press("Shift+ArrowLeft")
    assert mounted.evaluate("view.t") == 49 * SECOND
    press("m")
    assert mounted.evaluate("view.flags") == [49 * SECOND]
    press("m")
    assert mounted.evaluate("view.flags") == []
    press("End")
    assert mounted.evaluate("view.t") == 100 * SECOND
    press("Home")
    span = mounted.evaluate("view.span")
    press("w")
    assert mounted.evaluate("view.span") < span
    press("l")
    press("l")
    assert mounted.evaluate("[view.playing, view.speed]") == [True, 2]
    press("Space")
    assert mounted.evaluate("view.playing") is False
    press("t")
    assert mounted.evaluate("document.documentElement.dataset.theme") == "dark"
    mounted.evaluate("view.set({ area: { a: 1, b: 2 }, sel: 'rank:1' })")
    press("Escape")
    press("Escape")
    assert mounted.evaluate("[view.area, view.sel]") == [None, None]


def test_keys_of_one_letter_can_be_turned_off(mounted):
    mounted.keyboard.press("?")
    mounted.get_by_label("Keys of one letter are on").uncheck()
    mounted.keyboard.press("Escape")
    mounted.wait_for_function("!document.querySelector('dialog')")
    span = mounted.evaluate("view.span")
    mounted.keyboard.press("w")
    assert mounted.evaluate("view.span") == span
    mounted.keyboard.press("Home")
    assert mounted.evaluate("view.t") == 0


def test_typing_in_the_search_box_is_no_command(mounted):
    mounted.keyboard.press("/")
    mounted.keyboard.type("swam")
    assert mounted.input_value(".ct-search-input") == "swam"
    assert mounted.evaluate("[view.a, view.b]") == mounted.evaluate("view.extent()")
    mounted.fill(".ct-search-input", "stable_sync")
    mounted.keyboard.press("Enter")
    assert mounted.evaluate("[view.sel, view.t]") == ["walk:world:2", 50 * SECOND]
    mounted.fill(".ct-search-input", "rank 2")
    mounted.keyboard.press("Enter")
    assert mounted.evaluate("view.sel") == "rank:2"


def test_the_legend_filters_and_lanes_fold_and_hide(mounted):
    mounted.get_by_role("button", name="CAUSAL").click()
    settled(mounted)
    assert mounted.evaluate("view.filter") == "CAUSAL"
    assert colour(mounted, "regime", 0, 20 * SECOND) != token(mounted, "regime-strong")
    assert colour(mounted, "regime", 0, 45 * SECOND) == token(mounted, "regime-causal")
    height = mounted.evaluate("tl.height")
    mounted.evaluate("Cascade.foldLane(view, 'waited'); Cascade.toggleLane(view, 'debt')")
    settled(mounted)
    assert mounted.evaluate("tl.height") < height
    assert mounted.evaluate("tl.shown.some((lane) => lane.name === 'debt')") is False


def test_what_was_not_measured_is_said_and_not_asked_for(mounted, stub):
    queries = []
    stub.on_tile = queries.append
    mounted.evaluate("view.show(10e9, 20e9)")
    mounted.wait_for_function("tl.tiles.sharp()")
    assert {query["lanes"] for query in queries} == {"waited,caused,cpu"}
    gpu = mounted.evaluate("tl.shown.find((lane) => lane.name === 'gpu').reading(0, 0).lines")
    assert gpu == ["not measured: no NVML on this host"]


def test_a_new_window_shows_the_old_tile_at_once_and_the_sharp_one_later(mounted):
    mounted.evaluate("view.whole()")
    mounted.wait_for_function("tl.tiles.sharp()")
    stretched, sharp = mounted.evaluate(
        """() => {
          view.show(10e9, 20e9);
          tl.draw();
          return [tl.tiles.layersFor("waited").length, Boolean(tl.tiles.sharp())];
        }"""
    )
    assert stretched >= 1 and sharp is False
    mounted.wait_for_function("tl.tiles.sharp()")


def test_only_the_latest_of_many_windows_is_asked_for(mounted, stub):
    mounted.wait_for_function("!tl.tiles.asking")
    queries = []
    stub.on_tile = queries.append
    mounted.evaluate(
        "() => { for (let i = 1; i <= 20; i += 1) { view.show(i * 1e9, i * 1e9 + 5e9); tl.draw(); } }"
    )
    mounted.wait_for_function("tl.tiles.sharp()")
    mounted.wait_for_function("tl.tiles.wanted.a > 18e9")
    near = [q for q in queries if int(q["b"]) - int(q["a"]) < 7 * SECOND]
    assert len(near) <= 4  # the first, the last, and perhaps two neighbours


def test_a_collector_that_goes_is_said_and_forgotten_when_it_is_back(page, stub, errors):
    stub.story["run"]["state"] = "live"
    page.evaluate(MOUNT, {})
    page.wait_for_function("view.pulse")
    stub.status = 503
    page.wait_for_function("view.problem && view.problem.text.includes('last data')")
    problem = page.evaluate("view.problem")
    assert problem["kind"] == "gone" and problem["text"].endswith("retrying")
    stub.status = 200
    page.wait_for_function("view.problem === null")
    errors.clear()  # the browser's own lines about 503


def test_a_live_run_is_followed_and_new_rows_appear(page, stub):
    stub.story["run"]["state"] = "live"
    page.evaluate(MOUNT, {})
    page.wait_for_function("view.follow")
    stub.pulse = {"t1_ns": 160 * SECOND, "tiles_version": "2"}
    page.wait_for_function("view.t === 160e9 && view.b > 160e9")
    stub.story = stub.story | {"version": "2", "t1_ns": 160 * SECOND}
    page.wait_for_function("view.story.version === '2'")
    page.mouse.move(600, 400)
    page.keyboard.press("w")
    assert page.evaluate("view.follow") is False
    page.keyboard.press("End")
    assert page.evaluate("view.follow") is True


def test_a_hidden_page_asks_nothing(page, stub):
    stub.story["run"]["state"] = "live"
    page.evaluate(MOUNT, {})
    page.wait_for_function("view.pulse")
    page.evaluate(
        """() => {
          Object.defineProperty(document, "hidden", { value: true, configurable: true });
          document.dispatchEvent(new Event("visibilitychange"));
        }"""
    )
    page.wait_for_function("!tl.watcher.busy")
    asked = stub.num_asked("pulse")
    page.evaluate("new Promise((done) => setTimeout(done, 700))")
    assert stub.num_asked("pulse") <= asked + 1
    page.evaluate(
        "() => { delete document.hidden; document.dispatchEvent(new Event('visibilitychange')); }"
    )
    page.wait_for_function("(n) => tl.watcher.heard", arg=asked)


def test_an_ended_run_is_asked_for_once(mounted, stub):
    mounted.evaluate("new Promise((done) => setTimeout(done, 700))")
    assert stub.num_asked("pulse") == 1
    assert stub.num_asked("story") == 1


def test_a_run_without_a_row_says_what_it_waits_for(page, stub):
    stub.story |= {"ranks": [], "actors": [], "walks": [], "marks": []}
    stub.story["run"]["state"] = "waiting"
    page.evaluate(MOUNT, {})
    page.wait_for_function("tl.empty.textContent.includes('No rank has sent a row yet')")


def test_destroying_leaves_nothing_behind(mounted):
    mounted.evaluate("mounted.destroy()")
    assert mounted.evaluate("document.querySelectorAll('canvas').length") == 0
    span = mounted.evaluate("view.span")
    mounted.keyboard.press("w")
    assert mounted.evaluate("view.span") == span


def test_the_canvas_speaks_its_reading(mounted):
    mounted.evaluate("tl.overlay.focus(); view.seek(45e9)")
    mounted.wait_for_function("tl.said.textContent.includes('CAUSAL')")
    label = mounted.get_attribute(".ct-overlay", "aria-label")
    assert "epoch 1, CAUSAL, missing {3}" in label and "3 CAUSAL, 1 no row" in label


def test_ranks_are_sorted_by_their_blame_and_fold_to_hosts_when_many(page, stub):
    rows = [{"rank": rank, "waited_s": 1, "blamed_s": rank % 3, "last_s": 0} for rank in range(4)]
    stub.story["waits"] = {"source": "judged", "by_rank": rows, "pairs": []}
    page.evaluate(MOUNT, {})
    page.wait_for_function("view.story")
    page.evaluate("view.set({ sort: 'blamed' })")
    assert page.evaluate("tl.rows.map((row) => row.label)") == [
        "rank 2",
        "rank 1",
        "rank 0",
        "rank 3",
    ]
    many = story(num_ranks=200)
    for actor in many["actors"]:
        actor["host"] = f"node-{actor['rank'] // 8}"
    page.evaluate("(story) => view.set({ story, sort: 'id' })", many)
    assert page.evaluate("[tl.rows.length, tl.rows[1].label]") == [25, "node-1"]
    settled(page)


def test_a_rank_that_came_back_has_its_incarnations_at_its_lane(page, stub):
    story_ = stub.story
    actors = {actor["rank"]: actor for actor in story_["actors"]}
    lives = [actors[1] | {"incarnation": 1}, *(actors[2] | {"incarnation": i} for i in (1, 2))]
    story_["actors"] = [*story_["actors"], *lives]
    page.evaluate(MOUNT, {})
    page.wait_for_function("view.story")
    assert page.evaluate("tl.rows.map((row) => row.label)") == [
        "rank 0",
        "rank 1, 1.1",
        "rank 2 … 2.2",
        "rank 3",
    ]
    settled(page)


class Growing(dict):
    """A pulse that always has something new."""

    num = 0

    def __ror__(self, other):
        self.num += 1
        return {**other, "tiles_version": str(self.num)}


def test_exact_sums_of_the_past_come_on_a_live_run_and_not_with_each_pulse(page, stub):
    stub.story["run"]["state"] = "live"
    stub.pulse = Growing()
    page.evaluate(MOUNT, {})
    page.wait_for_function("view.pulse")
    page.evaluate("view.show(10e9, 20e9)")
    page.wait_for_function("view.a > 5e9 && (tl.sums.of('waited') || {}).exact")
    asked, pulses = len(stub.windows), stub.pulse.num
    page.wait_for_function(f"Number(view.pulse.tiles_version) > {pulses + 12}")
    assert len(stub.windows) - asked <= 3  # in about 3 s
    assert page.evaluate("tl.sums.of('waited')")["exact"]


def test_a_tile_is_asked_for_by_the_t0_of_the_story_and_those_of_another_go(page, stub):
    stub.story["run"]["state"] = "live"
    queries = []
    stub.on_tile = queries.append
    page.evaluate(MOUNT, {})
    page.wait_for_function("tl.tiles.kept.length && tl.tiles.sharp()")
    assert {query["t0"] for query in queries} == {"1795977000000000000"}
    page.evaluate("window.old = tl.tiles.kept.slice()")
    stub.story = stub.story | {"version": "2", "t0_ns": "1795976999000000000"}
    page.wait_for_function("view.story.version === '2' && tl.tiles.kept.length && tl.tiles.sharp()")
    page.wait_for_function("!tl.tiles.kept.some((tile) => old.includes(tile))")
    assert queries[-1]["t0"] == "1795976999000000000"
