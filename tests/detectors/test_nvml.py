"""What a GPU's counters say of it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cascade_runtime.detectors.nvml import LOST, SLOWED, GpuSample, Nvml
from cascade_runtime.vocabulary.fault import FaultEvent
from cascade_runtime.vocabulary.identity import Actor
from cascade_runtime.vocabulary.policy import NvmlLimits
from tests.detectors.steps import patient

LIMITS = NvmlLimits()
RANK = Actor(3)


def sample(**values):
    return GpuSample(device_uuid="GPU-1", **{"power_limit_mw": 700_000, **values})


SPINS = sample(util_pct=100.0, power_mw=180_000)
WORKS = sample(util_pct=100.0, power_mw=600_000)


def told(samples, period_s=0.5):
    detector, found = Nvml(LIMITS), []
    for i, one in enumerate(samples):
        detector.feed_gpu(one, i * period_s, RANK)
        found += [(i * period_s, v) for v in detector.decide(i * period_s)]
    return found


@patient
@given(
    st.lists(
        st.builds(
            sample,
            util_pct=st.none() | st.floats(0, 100),
            power_mw=st.none() | st.integers(281_000, 700_000),
            throttle=st.none() | st.just(("gpu_idle", "sw_power_cap")),
            ecc_uncorrected=st.none() | st.just(2),
        ),
        max_size=200,
    )
)
def test_silent_on_a_working_device_and_on_what_was_not_measured(samples):
    assert told(samples) == []


def test_a_busy_device_at_low_power_waits_in_a_kernel():
    (begun_s, begun), (ended_s, ended) = told([WORKS] * 4 + [SPINS] * 40 + [WORKS] * 40)
    assert (begun.signal, begun.fault, begun.subject) == ("spin_wait", None, RANK)
    assert (begun.value, begun.threshold, begun.unit) == (180, pytest.approx(280), "W")
    assert begun_s == 2.0 + LIMITS.dwell_s
    assert ended.cleared and ended_s == 22.0 + LIMITS.dwell_s


@patient
@given(st.lists(st.integers(1, 10), min_size=1, max_size=40))
def test_no_flapping_when_it_changes_faster_than_the_dwell_time(runs):
    samples = [s for i, n in enumerate(runs) for s in [SPINS if i % 2 else WORKS] * n]
    assert told(samples) == []


@pytest.mark.parametrize("reason", sorted(SLOWED))
def test_slowed_down_by_the_hardware(reason):
    slowed, free = sample(throttle=("gpu_idle", reason)), sample(throttle=())
    (_, begun), (_, ended) = told([free] + [slowed] * 20 + [free] * 20)
    assert begun.signal == "throttle" and reason in begun.why and begun.fault is None
    assert ended.cleared


def test_only_errors_since_the_job_began_count_and_they_stand():
    counts = [7, 7, 9, 9, 12]
    ((_, verdict),) = told([sample(ecc_uncorrected=n) for n in counts])
    assert (verdict.signal, verdict.value, verdict.fault) == ("ecc", 2.0, None)


@pytest.mark.parametrize("xid", [13, *LOST])
def test_an_xid_is_named_and_a_lost_device_is_a_fail_stop(xid):
    ((_, verdict),) = told([WORKS, sample(xid=xid), sample(xid=xid)])
    assert verdict.fault is (FaultEvent.GPU_FAIL_STOP if xid in LOST else None)
    assert f"Xid {xid}" in verdict.why


def test_a_device_that_the_driver_has_lost_is_a_fail_stop():
    ((_, verdict),) = told([WORKS, GpuSample(device_uuid="GPU-1", lost=True)])
    assert (verdict.signal, verdict.fault) == ("lost", FaultEvent.GPU_FAIL_STOP)


def test_devices_do_not_mix():
    detector = Nvml(LIMITS)
    for i in range(40):
        detector.feed_gpu(SPINS, i * 0.5, RANK)
        detector.feed_gpu(GpuSample(device_uuid="GPU-2", util_pct=100.0), i * 0.5, Actor(4))
    assert [v.subject for v in detector.decide(20.0)] == [RANK]
    detector.forget(RANK)
    assert detector.standing == []
