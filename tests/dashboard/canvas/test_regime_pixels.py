"""Regimes per pixel are exact: the browser's answer against a plain computation in Python."""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.dashboard.canvas.stage import SECOND, intervals

pytestmark = pytest.mark.browser

ASK = """(cases) => cases.map(({ regimes, rows, a, b, w }) => {
  const { share, covered, body, worst } = Cascade.regimePixels(regimes, rows, "world", a, b, w);
  const drawn = Cascade.regimeBodies(regimes, rows.map((row) => [row].flat()), "world", a, b, w);
  return {
    share: share.map((one) => [...one]), covered: [...covered], body: [...body], worst: [...worst],
    drawn: { body: [...drawn.body], worst: [...drawn.worst] },
  };
})"""
RANKS = range(3)


@st.composite
def histories(draw):
    """Per rank a few intervals one after the other, gaps between some."""
    rows = []
    for rank in RANKS:
        t = draw(st.integers(-50, 300))
        for _ in range(draw(st.integers(0, 6))):
            t += draw(st.sampled_from([0, 0, 1, 7, 90]))
            length = draw(st.sampled_from([1, 2, 13, 100, 400]))
            rows.append((rank, draw(st.integers(0, 2)), t, t + length))
            t += length
    a = draw(st.integers(-20, 600))
    return {
        "rows": draw(st.sampled_from([[0, 1, 2], [2], [[0, 1, 2]], [[1, 2], 0], [9]])),
        "intervals": rows,
        **{"a": a, "b": a + draw(st.integers(1, 900)), "w": draw(st.integers(1, 40))},
    }


@st.composite
def on_borders(draw):
    """Intervals that begin and end where pixels do, however long a pixel is."""
    w = draw(st.integers(1, 60))
    pixel = draw(st.integers(1, 10**9))
    a = draw(st.integers(0, 10**13))
    edges = sorted(draw(st.sets(st.integers(-3, w + 3), min_size=2, max_size=12)))
    rows = [
        (0, draw(st.integers(0, 2)), a + low * pixel, a + high * pixel)
        for low, high in itertools.pairwise(edges)
        if draw(st.booleans())
    ]
    return {"rows": [0], "intervals": rows, "a": a, "b": a + w * pixel, "w": w}


def brute_force(case: dict[str, Any]) -> dict[str, list[Any]]:
    a, b, w = case["a"], case["b"], case["w"]
    shares, covered, worst = [], [], []
    for row in case["rows"]:
        ranks = row if isinstance(row, list) else [row]
        for p in range(w):
            low = a + Fraction((b - a) * p, w)
            high = a + Fraction((b - a) * (p + 1), w)
            time = [Fraction(0)] * 3
            for rank, regime, start, end in case["intervals"]:
                if rank in ranks:
                    time[regime] += max(Fraction(0), min(high, end) - max(low, start))
            total = sum(time)
            shares.append([t / total if total else 0 for t in time])
            covered.append(min(1, total / (high - low) / len(ranks)))
            worst.append(max((r for r in range(3) if time[r]), default=255))
    return {"shares": shares, "covered": covered, "worst": worst}


@settings(
    max_examples=12,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
@given(cases=st.lists(histories() | on_borders(), min_size=20, max_size=40))
def test_pixels_are_what_plain_arithmetic_gives(plain, cases):
    asked = [
        {"regimes": intervals(c["intervals"]), **{k: c[k] for k in ("rows", "a", "b", "w")}}
        for c in cases
    ]
    for case, got in zip(cases, plain.evaluate(ASK, asked), strict=True):
        wanted = brute_force(case)
        for i, (share, covered) in enumerate(zip(wanted["shares"], wanted["covered"], strict=True)):
            said = [got["share"][regime][i] for regime in range(3)]
            assert said == pytest.approx([float(x) for x in share], abs=1e-6)
            assert got["covered"][i] == pytest.approx(float(covered), abs=1e-6)
            assert got["worst"][i] == wanted["worst"][i]
            if covered:
                assert sum(said) == pytest.approx(1, abs=1e-9)
                assert share[got["body"][i]] == pytest.approx(float(max(share)), abs=1e-6)
            else:
                assert got["body"][i] == 255
        # the fast way, that rows are drawn by, says the same
        assert got["drawn"]["worst"] == got["worst"]
        for drawn, body, covered in zip(
            got["drawn"]["body"], got["body"], got["covered"], strict=True
        ):
            if abs(covered - 0.5) > 1e-6:
                assert drawn == (body if covered > 0.5 else 255)


def test_what_ends_where_a_pixel_does_is_not_in_the_next_one(plain):
    """Of all pairs of widths those at which a float's product lies beyond the border."""
    pairs = [
        (w, pixel, k)
        for w, pixel in itertools.product(range(3, 60), (3, 7, 999_983, 123_456_789))
        for k in range(1, w)
        if k * pixel * (w / (w * pixel)) > k
    ]
    assert len(pairs) > 50
    asked = [
        {"regimes": intervals([(0, 2, 0, k * pixel)]), "rows": [0], "a": 0, "b": w * pixel, "w": w}
        for w, pixel, k in pairs
    ]
    for (w, _, k), got in zip(pairs, plain.evaluate(ASK, asked), strict=True):
        assert got["worst"] == got["drawn"]["worst"] == [2] * k + [255] * (w - k)


@pytest.mark.parametrize("at_s", [0.0, 3600.123, 4 * 3600 - 0.02])
def test_twenty_milliseconds_show_in_a_view_of_four_hours(plain, at_s):
    end, at = 4 * 3600 * SECOND, int(at_s * SECOND)
    rows = [(0, 0, 0, at), (0, 2, at, at + 20_000_000), (0, 0, at + 20_000_000, end)]
    rows = [row for row in rows if row[3] > row[2]]
    case = {"regimes": intervals(rows), "rows": [0], "a": 0, "b": end, "w": 1500}
    [got] = plain.evaluate(ASK, [case])
    assert 1 <= got["worst"].count(2) <= 2
    assert got["worst"].index(2) == at * 1500 // end
    assert set(got["body"]) == {0}
    assert all(
        sum(got["share"][r][p] for r in range(3)) == pytest.approx(1, abs=1e-9) for p in range(1500)
    )


def test_two_lives_of_a_rank_at_once_are_drawn_by_the_exact_way(plain):
    rows = [(0, 0, 0, 60), (0, 2, 40, 100)]
    case = {"regimes": intervals(rows), "rows": [0], "a": 0, "b": 100, "w": 10}
    [got] = plain.evaluate(ASK, [case])
    assert got["drawn"]["worst"] == got["worst"] == [0] * 4 + [2] * 6
    assert got["drawn"]["body"] == got["body"]


def test_a_live_rank_is_still_in_its_regime_at_the_pulse_s_time(plain):
    """The pulse is ahead of the story, whose intervals go on to its own newest row."""
    got = plain.evaluate(
        """([regimes]) => {
          const story = { regimes, silent: [], run: { state: "live" }, actors: [], violations: [], debts: [], walks: [],
            groups: ["world"], waits: null, t1_ns: 100 };
          return [0, 1].map((rank) => Cascade.lookup(story).regimeAt("world", rank, 120));
        }""",
        [intervals([(0, 1, 0, 100), (1, 0, 0, 50)])],
    )
    assert got == [1, None]


def test_only_the_silent_incarnation_is_silent(plain):
    got = plain.evaluate(
        """([regimes]) => {
          const life = { kind: "rank", host: "h", rank: 0, end: null };
          const actors = [{ ...life, incarnation: 0, first_ns: 0, last_ns: 10 }, { ...life, incarnation: 1, first_ns: 60, last_ns: 70 }];
          const silent = [{ rank: 0, incarnation: 0, from_ns: 10, to_ns: null }];
          const story = { regimes, silent, actors, run: { state: "ended" }, violations: [], debts: [], walks: [],
            groups: ["world"], waits: null, t1_ns: 100 };
          return [30, 90].map((t) => Cascade.lookup(story).absence(0, t));
        }""",
        [intervals([(0, 1, 0, 10)])],
    )
    assert got == ["silent", "no row"]
