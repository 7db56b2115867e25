"""Clocks of hosts that are apart and drift: fitted with their error, or refused."""

from __future__ import annotations

import numpy as np
import pytest

from analyzer import analyze
from analyzer.clock_evidence import apart, collective_bounds
from analyzer.hosts import Clocks
from tests.story import MS, START, Story

STEPS = 60


def told(offset_ns, drift, *, ranks=2, tied_steps=STEPS):
    """A run of half-second steps, rank 1's host so far off; rank 0 is 3 ms late in each step."""
    s = Story(ranks=ranks)
    s.rows.clear()
    for teller in s.ranks:
        teller.seq, teller.host = 0, f"host-{teller.rank}"
        teller.start()
    s.step_ns = MS // 100
    for step in range(STEPS):
        s.wait(500)
        rows = [one.enter("c0", step) for one in reversed(s.ranks)]
        late = rows[-1]
        late["enter_ns"] += 3 * MS
        for one, row in zip(reversed(s.ranks), rows, strict=True):
            one.done(row)
            row["complete_ns"] = late["enter_ns"] + MS // 20
    for table, row in s.rows:
        if row["rank"] == 1:
            for column in [c for c in row if c.endswith("_ns") and row[c] is not None]:
                since = row[column] - (0 if column == "mono_ns" else START)
                row[column] += offset_ns + round(since * drift)
        if table == "collectives" and row["cseq"] >= tied_steps:
            row["comm_id"] = f"alone/{row['rank']}"
    return analyze(s.source())


@pytest.mark.parametrize(("offset_ms", "ppm"), [(0, 0), (5, 0), (-5, 20), (40, -50), (5, 200)])
def test_waits_are_what_they_were_by_true_clocks(offset_ms, ppm):
    true = told(0, 0.0).report.waits
    found = told(int(offset_ms * MS), ppm * 1e-6)
    assert found.report.waits.total_rank_s == pytest.approx(true.total_rank_s, rel=0.05)
    assert found.report.waits.by_rank[0].caused_s == pytest.approx(
        true.by_rank[0].caused_s, rel=0.05
    )
    fit = found.results["clock_fit"].to_pylist()[1]
    assert fit["connected"] and fit["error_ns"] < 4 * MS
    if offset_ms or ppm:
        assert fit["offset_ns"] == pytest.approx(-offset_ms * MS, abs=MS // 5)
        assert fit["drift_ppm"] == pytest.approx(-ppm, abs=2.0)


def test_hosts_that_nothing_ties_are_refused():
    found = told(5 * MS, 20e-6, tied_steps=0)
    assert "host-1" in found.report.waits.refused
    assert not found.report.clock.connected
    fit = found.results["clock_fit"].to_pylist()[1]
    assert (fit["connected"], fit["offset_ns"], fit["drift_ppm"], fit["error_ns"]) == (
        False, None, None, None,
    )  # fmt: skip


def windows(*values):
    return np.array(values, dtype=np.float64)


def test_one_side_alone_says_nothing():
    none = windows(np.inf, np.inf)
    at = windows(1e9, 2e9)
    assert apart(windows(5.0, 6.0), -none, none * np.nan, at) is None
    assert apart(none, windows(1.0, 2.0), none * np.nan, at) is None


def test_zero_is_kept_where_it_fits_and_else_the_middle_is_taken():
    at, none = windows(1e9, 2e9), windows(np.nan, np.nan)
    assert apart(windows(5.0, 6.0), windows(-3.0, -9.0), none, at)[:3] == (0.0, 0.0, 5.0)
    assert apart(windows(50.0, 60.0), windows(30.0, 20.0), none, at)[:3] == (40.0, 0.0, 10.0)


def test_completions_are_believed_between_the_bounds():
    at = windows(1e9, 2e9)
    ours = apart(windows(50.0, 60.0), windows(30.0, 20.0), windows(49.0, 47.0), at)
    assert ours[:3] == (48.0, 0.0, 18.0)
    beyond = apart(windows(50.0, 60.0), windows(30.0, 20.0), windows(90.0, 90.0), at)
    assert beyond.offset == 50.0


def in_windows(first, count, truth, noise):
    """Bounds 2 ms to each side of the truth, completions off it by the noise in turn."""
    at = (np.arange(16) + 0.5) * 2e9
    upper, tied = np.full(16, np.inf), np.full(16, np.nan)
    lower = -upper
    here = slice(first, first + count)
    upper[here], lower[here] = truth(at[here]) + 2 * MS, truth(at[here]) - 2 * MS
    tied[here] = truth(at[here]) + noise * (-1.0) ** np.arange(count)
    return apart(upper, lower, tied, at)


@pytest.mark.parametrize("count", [2, 3])
@pytest.mark.parametrize("first", [0, 12])
def test_no_drift_is_believed_from_a_corner_of_the_run(first, count):
    found = in_windows(first, count, lambda at: 5 * MS + 0 * at, MS // 20)
    assert found.drift == 0.0
    for end in (0.0, 32e9):
        assert abs(found.offset + found.drift * end - 5 * MS) <= found.error + found.beyond


@pytest.mark.parametrize("first", [0, 7, 11])
@pytest.mark.parametrize("ppm", [0, 20, 400, 3000, -3000])
@pytest.mark.parametrize("count", [2, 3, 4, 5])
def test_the_error_covers_both_ends_of_the_run(first, ppm, count):
    def truth(at):
        return 10 * MS + at * ppm * 1e-6

    found = in_windows(first, count, truth, MS // 20)
    if not found.drift:
        return  # what drifted unseen inside the bounds, nobody can tell
    for end in (0.0, 32e9):
        assert abs(found.offset + found.drift * end - truth(end)) <= found.error + found.beyond


def test_later_rounds_keep_what_a_line_may_be_off_at_the_end():
    fit = told(5 * MS, 3e-3, tied_steps=10).results["clock_fit"].to_pylist()[1]
    end = STEPS * 500 * MS
    off = fit["offset_ns"] + fit["drift_ppm"] * 1e-6 * end + 5 * MS + 3e-3 * end
    assert fit["drift_ppm"] != 0.0
    assert abs(off) <= fit["error_ns"]


def test_hosts_of_a_large_collective_are_tied_through_a_few():
    num = 70
    bound = np.full((1, num, num), np.inf)
    hosts, zeros = np.arange(num), np.zeros(num)
    ties = np.zeros((2, 1, num, num))
    collective_bounds(bound, ties, np.array([0, num]), np.array([0]), hosts, zeros, zeros + 5.0)
    tied = np.isfinite(bound[0])
    assert tied[0].sum() == num - 1 and tied[:, 0].sum() == num - 1
    assert not tied[60, 61]


def test_clocks_are_fitted_once(monkeypatch):
    rounds = []
    connect = Clocks._connect
    monkeypatch.setattr(
        Clocks, "_connect", lambda self, *bounds: rounds.append(self) or connect(self, *bounds)
    )
    told(0, 0.0)
    assert len(rounds) == 1  # zero fits, so one round; Q4 and the waits share it
