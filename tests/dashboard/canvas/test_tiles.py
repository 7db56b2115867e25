"""Tiles are asked for when the wheel turns, not a frame later, and no neighbour is in the way."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.browser

HOLD = """() => {
  window.held = [];
  const tell = tl.source.tile.bind(tl.source);
  tl.source.tile = (a, b, w, lanes, ranks, { signal }) => new Promise((resolve, reject) => {
    const go = () => resolve(tell(a, b, w, lanes, ranks, { signal }));
    held.push({ a, b, signal, go, fail: () => reject(new Cascade.Problem("gone", "away")) });
    signal.addEventListener("abort", () => reject(new DOMException("", "AbortError")));
  });
}"""


@pytest.fixture
def holding(mounted):
    """The timeline at rest, and every tile it asks for from now on held back."""
    mounted.evaluate("Cascade.Tiles.IDLE_MS = 1e6; clearTimeout(tl.tiles.idle); view.whole()")
    mounted.wait_for_function("tl.tiles.sharp() && !tl.tiles.asking")
    # However long that took: nothing but what is looked at is at hand.
    mounted.evaluate("tl.tiles.kept = [tl.tiles.sharp()]")
    mounted.evaluate(HOLD)
    return mounted


def test_a_tile_is_asked_for_before_the_next_frame(holding):
    asked = holding.evaluate(
        """async () => {
          view.seek(1e9, { center: true });
          view.zoom(0.5); // the same turn: only where it ends is asked for
          await Promise.resolve();
          return [tl.frame > 0, held.map(({ a, b }) => [a, b])];
        }"""
    )
    assert asked[0]  # the frame is yet to come
    assert asked[1] == holding.evaluate("[[view.a, view.b].map(Math.round)]")
    holding.evaluate("held[0].go()")
    holding.wait_for_function("tl.tiles.sharp()")


def test_a_neighbour_is_dropped_when_the_window_moves(holding):
    holding.evaluate("() => { tl.tiles.prefetch(); }")
    first = holding.evaluate("held.map(({ a, signal }) => [a, signal.aborted])")
    assert first == [[holding.evaluate("Math.round(view.b)"), False]]
    holding.evaluate("view.zoom(0.5)")
    holding.wait_for_function("held.length === 2")
    assert holding.evaluate("[held[0].signal.aborted, tl.tiles.failed]") == [True, ""]
    assert holding.evaluate("[held[1].a, held[1].b]") == holding.evaluate(
        "[view.a, view.b].map(Math.round)"
    )
    holding.evaluate("held[1].go()")
    holding.wait_for_function("tl.tiles.sharp()")


def test_one_that_is_waited_for_is_not_dropped(holding):
    holding.evaluate("view.zoom(0.5)")
    holding.evaluate("view.zoom(0.5)")
    assert holding.evaluate("held.map(({ signal }) => signal.aborted)") == [False]
    holding.evaluate("held[0].go()")
    holding.wait_for_function("held.length === 2")
    holding.evaluate("held[1].go()")
    holding.wait_for_function("tl.tiles.sharp()")


def test_text_is_cut_to_its_width_and_the_answer_kept(mounted):
    cut = """(width) => {
      const context = tl.base.getContext("2d");
      context.font = tl.font(12);
      const texts = [0, 1].map(() => tl.cut(context, "Process CPU busy", width));
      return [...texts, context.measureText(texts[0]).width];
    }"""
    for width in (0, 20, 60, 500):
        one, again, wide = mounted.evaluate(cut, width)
        assert one == again and (wide <= width)
        assert one == "Process CPU busy" if width == 500 else one == "" or one.endswith("…")


def test_the_same_step_again_is_fetched_ahead_and_is_sharp_at_once(holding):
    step = "view.zoom(0.5, view.a + view.span / 4)"
    holding.evaluate("Cascade.Tiles.STEP_MS = 1e6")
    holding.evaluate(step)
    holding.evaluate("held[0].go()")
    holding.wait_for_function("tl.tiles.sharp() && !tl.tiles.asking")
    holding.evaluate("() => { tl.tiles.prefetchStep(); }")
    assert holding.evaluate("held.length") == 2
    holding.evaluate("held[1].go()")
    holding.wait_for_function("!tl.tiles.asking")
    holding.evaluate(step)
    assert holding.evaluate("Boolean(tl.tiles.sharp()) && held.length === 2")
    assert holding.evaluate("[held[1].a, held[1].b]") == holding.evaluate(
        "[view.a, view.b].map(Math.round)"
    )


def test_a_step_that_is_being_fetched_is_not_dropped_when_it_is_taken(holding):
    holding.evaluate("Cascade.Tiles.STEP_MS = 1e6")
    holding.evaluate("view.zoom(0.5, view.a)")
    holding.evaluate("held[0].go()")
    holding.wait_for_function("tl.tiles.sharp() && !tl.tiles.asking")
    holding.evaluate("() => { tl.tiles.prefetchStep(); view.zoom(0.5, view.a); }")
    holding.wait_for_function("tl.tiles.wanted.b === Math.round(view.b)")
    assert holding.evaluate("[held.length, held[1].signal.aborted]") == [2, False]
    holding.evaluate("held[1].go()")
    holding.wait_for_function("tl.tiles.sharp() && tl.tiles.step")


def test_another_step_than_the_one_fetched_ahead_is_not_taken_for_it(holding):
    holding.evaluate("Cascade.Tiles.STEP_MS = 1e6")
    holding.evaluate("view.zoom(0.5, view.a)")
    holding.evaluate("held[0].go()")
    holding.wait_for_function("tl.tiles.sharp() && !tl.tiles.asking")
    holding.evaluate("() => { tl.tiles.prefetchStep(); view.zoom(0.49, view.a); }")
    holding.wait_for_function("held.length === 3")
    assert holding.evaluate("[held[1].signal.aborted, tl.tiles.sharp()]") == [True, None]
    holding.evaluate("held[2].go()")
    holding.wait_for_function("tl.tiles.sharp()")


def test_what_nobody_waits_for_fails_in_silence_and_is_in_nobody_s_way(holding):
    holding.evaluate("Cascade.Tiles.STEP_MS = 1e6")
    holding.evaluate("view.zoom(0.5, view.a)")
    holding.evaluate("held[0].go()")
    holding.wait_for_function("tl.tiles.sharp() && !tl.tiles.asking")
    holding.evaluate("() => { tl.tiles.prefetchStep(); }")
    holding.evaluate("held[1].fail()")
    holding.wait_for_function("!tl.tiles.asking")
    assert holding.evaluate("tl.tiles.failed") == ""
    holding.evaluate("() => { tl.tiles.prefetch(); }")  # hangs, and the reader moves on
    assert holding.evaluate("held.length") == 3
    holding.evaluate("view.zoom(0.49, view.a)")
    holding.wait_for_function("held.length === 4")
    holding.evaluate("held[3].go()")
    holding.wait_for_function("tl.tiles.sharp()")


def test_neighbours_wait_for_the_step_that_is_fetched_ahead(holding):
    holding.evaluate("Cascade.Tiles.STEP_MS = 1e6")
    holding.evaluate("view.zoom(0.5, view.a)")
    holding.evaluate("held[0].go()")
    holding.wait_for_function("tl.tiles.sharp() && !tl.tiles.asking")
    holding.evaluate("() => { clearTimeout(tl.tiles.idle); Cascade.Tiles.IDLE_MS = 1; }")
    holding.evaluate("() => { tl.tiles.prefetchStep(); tl.tiles.prefetch(); }")
    assert holding.evaluate("held.length") == 2
    holding.evaluate("held[1].go()")
    holding.wait_for_function("held.length === 3")
    assert holding.evaluate("held[2].a") == holding.evaluate("Math.round(view.b)")


def test_a_window_off_by_a_thousandth_of_a_pixel_is_the_same_picture(holding):
    same = """(pixels) => {
      const { a, b, w, how } = tl.tiles.wanted;
      const off = Math.round(((b - a) / w) * pixels);
      return tl.tiles.isOf({ a: a + off, b: b + off, how });
    }"""
    assert [holding.evaluate(same, pixels) for pixels in (0, 0.001, 0.02, -0.02)] == [
        *(True, True, False, False)
    ]
