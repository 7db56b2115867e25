"""Regime shares of any window, against a sum over pairs of neighbouring rows."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest

from dashboard.story.model import REGIME_CODES
from dashboard.story.teller import Teller
from dashboard.story.trace_source import TraceRun
from tests.dashboard.story.kit import trace_of
from tests.story import Story


def random_walks(rng):
    s = Story(ranks=rng.randint(1, 4))
    for _ in range(rng.randint(3, 40)):
        s.wait(rng.choice((0, 5, 300, 2000)))
        one = rng.choice(s.ranks)
        if rng.random() < 0.4:
            one.begin(rng.randrange(9))
        else:
            to = rng.choice(sorted(REGIME_CODES))
            one.walk_row("committed", to, s.ranks, fault="OPERATOR", proposer=s.ranks[0])
    return s


def brute_force(s, rank, a, b):
    rows = sorted((r for _, r in s.rows if r["rank"] == rank), key=lambda r: r["seq"])
    held = dict.fromkeys(REGIME_CODES, 0)
    for first, second in pairwise(rows):
        held[first["regime"]] += max(0, min(b, second["wall_ns"]) - max(a, first["wall_ns"]))
    return held


@pytest.mark.parametrize("seed", range(6))
def test_shares_are_those_of_the_rows(tmp_path, seed):
    rng = random.Random(seed)
    told = random_walks(rng)
    run = TraceRun(trace_of(told, tmp_path / "t"))
    run.report = lambda: None  # from rows, not from an analysis
    teller = Teller(run)
    story = teller.story().story
    t0 = int(story.t0_ns)
    for _ in range(5):
        a, b = sorted(rng.sample(range(-10, story.t1_ns + 10), 2))
        window = teller.window(a, b)
        whole = dict.fromkeys(REGIME_CODES, 0)
        for row in window["by_rank"]:
            held = brute_force(told, row["rank"], t0 + a, t0 + b)
            total = sum(held.values())
            want = {regime: ns / total for regime, ns in held.items() if ns}
            assert row["regimes"] == pytest.approx(want)
            whole = {regime: whole[regime] + held[regime] for regime in whole}
        total = sum(whole.values())
        assert window["regime_share"] == pytest.approx(
            {regime: ns / total for regime, ns in whole.items() if ns}
        )
        if total:
            assert sum(window["regime_share"].values()) == pytest.approx(1.0)
    run.close()
