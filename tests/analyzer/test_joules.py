"""Energy drawn while waiting: the power of the last sample before each wait."""

from __future__ import annotations

import pytest

from analyzer import analyze
from tests.story import MS, Story


def waited(with_samples=True, lost=False):
    """Rank 0 waits 100 ms for rank 1, at 200 W, and then 50 ms at 80 W."""
    s = Story(ranks=2, agents=1, start=False)
    a, b = s.ranks
    (agent,) = s.agents
    s.step_ns = 0
    agent.start()
    a.start(device_uuid="gpu-a")
    b.start(device_uuid="gpu-b")
    for cseq, (wait_ms, watts) in enumerate([(100, 200), (50, 80)]):
        s.wait(10)
        if with_samples:
            agent.row("gpu", device_uuid="gpu-a", power_mw=watts * 1000)
            agent.row("gpu", device_uuid="gpu-b", power_mw=999_000)
            agent.row("gpu", device_uuid="gpu-a", power_mw=None)
        s.wait(1)
        first = a.enter("c", cseq)
        s.wait(wait_ms)
        second = b.enter("c", cseq)
        s.wait(1)
        a.done(first)
        b.done(second)
    if lost:
        agent.gap(*agent.lose(), tables=["gpu"])
    return analyze(s.source()).report.waits


def test_each_wait_by_the_sample_before_it():
    waits = waited()
    assert waits.total_rank_s == pytest.approx(0.150)
    assert waits.joules == pytest.approx(0.100 * 200 + 0.050 * 80)


def test_without_samples_or_with_lost_ones_it_is_not_known():
    assert waited(with_samples=False).joules is None
    assert waited(lost=True).joules is None


def test_a_sample_that_comes_only_later_says_nothing_of_a_wait():
    s = Story(ranks=2, start=False)
    a, b = s.ranks
    a.start(device_uuid="gpu-a")
    b.start()
    first = a.enter("c", 0)
    s.wait(100)
    second = b.enter("c", 0)
    a.done(first)
    b.done(second)
    a.row("gpu", device_uuid="gpu-a", power_mw=300_000)
    waits = analyze(s.source()).report.waits
    assert waits.total_rank_s > 100 * MS / 1e9 and waits.joules is None
