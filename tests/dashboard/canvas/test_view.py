"""The one state: what a change says to whom, and where zoom and pan end."""

import pytest

from tests.dashboard.canvas.stage import SECOND

pytestmark = pytest.mark.browser


def test_zoom_keeps_the_moment_under_the_mouse(plain):
    worst = plain.evaluate(
        """() => {
          const view = new Cascade.View();
          view.set({ t1: 100e9, a: 20e9, b: 60e9 });
          let worst = 0;
          for (const share of [0, 0.1, 0.5, 0.93, 1]) {
            for (const factor of [0.5, 0.9, 1.1, 0.01]) {
              view.set({ a: 20e9, b: 60e9 });
              const at = view.a + share * view.span;
              view.zoom(factor, at);
              worst = Math.max(worst, Math.abs((at - view.a) / view.span - share));
            }
          }
          return worst;
        }"""
    )
    assert worst < 1e-6


@pytest.mark.parametrize(
    "act", ["view.zoom(1e9)", "view.pan(-50)", "view.pan(50)", "view.zoom(1e-12)"]
)
def test_the_window_stays_inside_the_run(plain, act):
    a, b, low, high = plain.evaluate(
        f"""() => {{
          const view = new Cascade.View();
          view.set({{ t1: 100e9, a: 20e9, b: 60e9, t: 30e9 }});
          {act};
          return [view.a, view.b, ...view.extent()];
        }}"""
    )
    assert low <= a < b <= high
    assert b - a >= 1000 * (1 - 1e-6)


def test_a_change_is_told_once_and_only_to_those_concerned(plain):
    told = plain.evaluate(
        """() => {
          const view = new Cascade.View();
          const told = [];
          for (const name of ["window", "cursor", "select", "mode", "area", "change"]) {
            view.on(name, (...values) => told.push([name, ...values]));
          }
          const off = view.on("cursor", () => told.push("never"));
          off();
          view.set({ a: 1, b: 5, t: 3 });
          view.set({ a: 1, b: 5, t: 3 });
          view.set({ area: { a: 1, b: 2 } });
          view.set({ area: { a: 1, b: 2 } });
          return told;
        }"""
    )
    assert told == [
        *(["window", 1, 5], ["cursor", 3], ["change", ["a", "b", "t"]]),
        *(["area", {"a": 1, "b": 2}], ["change", ["area"]]),
    ]


@pytest.mark.parametrize("patch", ["{ t: NaN }", "{ a: 'x' }", "{ nonsense: 1 }"])
def test_nonsense_is_refused(plain, patch):
    assert plain.evaluate(
        f"() => {{ try {{ new Cascade.View().set({patch}); }} catch (e) {{ return e instanceof TypeError; }} }}"
    )


def test_following_keeps_the_newest_row_in_sight_until_the_reader_looks_elsewhere(plain):
    got = plain.evaluate(
        """() => {
          const view = new Cascade.View();
          view.set({ t1: 10e9, a: 0, b: 5e9 });
          view.followLive();
          view.advance(42e9);
          const followed = [view.a, view.b, view.t];
          view.pan(-0.5);
          const left = [view.a, view.b];
          view.advance(60e9);
          return { followed, left, now: [view.a, view.b], follow: view.follow };
        }"""
    )
    a, b, t = got["followed"]
    assert t == 42 * SECOND and a < t < b and b - t < 0.1 * (b - a)
    assert got["now"] == got["left"] and got["follow"] is False


def test_a_listener_that_fails_stops_no_other(page, errors):
    assert page.evaluate(
        """() => {
          const view = new Cascade.View();
          let heard = false;
          view.on("cursor", () => { throw new Error("mine"); });
          view.on("cursor", () => { heard = true; });
          view.set({ t: 5 });
          return heard;
        }"""
    )
    assert "mine" in errors.pop()


def test_a_window_that_follows_shows_all_of_a_run_until_it_is_long(plain):
    """Opened with the first row, it must not stay one second wide for ever."""
    spans = plain.evaluate(
        """() => {
          const view = new Cascade.View();
          view.set({ t1: 1e6, a: 0, b: 1e6 });
          view.followLive();
          return [1e9, 5e9, 40e9, 300e9].map((t1) => {
            view.advance(t1);
            return [view.a, view.b];
          });
        }"""
    )
    for t1, (a, b) in zip((1, 5, 40), spans, strict=False):
        assert a <= 0 and b >= t1 * SECOND
    assert spans[-1][1] - spans[-1][0] == 60 * SECOND and spans[-1][1] > 300 * SECOND
