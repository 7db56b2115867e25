"""How busy the ranks' processes keep the CPU."""

import os
import time

import pytest

from cascade_runtime.agent.cpu_busy import CpuBusy, cpu_seconds
from cascade_runtime.vocabulary.identity import Actor

A, B = Actor(0), Actor(1)


def test_share_of_one_core_since_the_last_sample():
    used = {10: 1.0, 11: 5.0}
    busy = CpuBusy(used.get)
    assert busy.sample(100.0, [(A, 10), (B, 11)]) == []  # nothing to compare with yet
    used |= {10: 1.25, 11: 6.0}
    assert busy.sample(100.5, [(A, 10), (B, 11)]) == [(A, 50.0), (B, 200.0)]


def test_a_process_that_is_gone_says_nothing_and_its_successor_begins_anew():
    used = {10: 1.0}
    busy = CpuBusy(used.get)
    busy.sample(1.0, [(A, 10)])
    del used[10]
    assert busy.sample(2.0, [(A, 10)]) == []
    used[12] = 90.0  # another process of the same actor
    assert busy.sample(3.0, [(A, 12)]) == []
    used[12] = 90.1
    assert busy.sample(4.0, [(A, 12)]) == [(A, pytest.approx(10.0))]


def test_time_that_stands_still_or_counts_that_fall_are_no_figures():
    used = {10: 1.0}
    busy = CpuBusy(used.get)
    busy.sample(1.0, [(A, 10)])
    assert busy.sample(1.0, [(A, 10)]) == []
    used[10] = 0.5
    assert busy.sample(2.0, [(A, 10)]) == [(A, 0.0)]


def test_the_kernel_tells_what_this_process_used():
    begin, own = cpu_seconds(os.getpid()), time.process_time()
    assert begin is not None
    while time.process_time() - own < 0.1:
        pass
    end = cpu_seconds(os.getpid())
    assert end is not None
    assert end - begin == pytest.approx(time.process_time() - own, abs=0.05)


def test_no_process_no_figure():
    assert cpu_seconds(2**22 + 1) is None
