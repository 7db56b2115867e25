"""Samples by NVML, from a library that stands in for it: no GPU is needed."""

# ruff: noqa: N802  # the names are the library's

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any

import pytest

from cascade_runtime.agent.gpu_samples import Devices, GpuSampler

DEADLINE_S = 20.0


class Nvml:
    """Stands in for pynvml; what ``broken`` names is not supported."""

    nvmlEventTypeXidCriticalError = 8  # noqa: N815
    NVML_MEMORY_ERROR_TYPE_UNCORRECTED = 1
    NVML_VOLATILE_ECC = 0
    NVML_TEMPERATURE_GPU = 0
    NVML_CLOCK_SM = 1

    class NVMLError(Exception):
        pass

    class NVMLError_GpuIsLost(NVMLError):  # noqa: N801
        pass

    def __init__(self, num: int = 2, broken: tuple[str, ...] = (), lost: bool = False) -> None:
        self.num, self.broken, self.lost = num, broken, lost
        self.xids: list[tuple[int, int]] = []
        self.shut = threading.Event()

    def __getattribute__(self, name: str) -> Any:
        if name.startswith("nvml") and name in object.__getattribute__(self, "broken"):

            def fails(*ignored: Any) -> None:
                raise Nvml.NVMLError(name)

            return fails
        return object.__getattribute__(self, name)

    def nvmlInit(self) -> None: ...

    def nvmlShutdown(self) -> None:
        self.shut.set()

    def nvmlDeviceGetCount(self) -> int:
        return self.num

    def nvmlDeviceGetHandleByIndex(self, index: int) -> int:
        return index

    def nvmlDeviceGetUUID(self, handle: int) -> str:
        return f"GPU-{handle}"

    def nvmlDeviceGetUtilizationRates(self, handle: int) -> Any:
        if self.lost:
            raise Nvml.NVMLError_GpuIsLost
        return SimpleNamespace(gpu=97, memory=40 + handle)

    def nvmlDeviceGetPowerUsage(self, handle: int) -> int:
        return 250_000

    def nvmlDeviceGetEnforcedPowerLimit(self, handle: int) -> int:
        return 700_000

    def nvmlDeviceGetTotalEnergyConsumption(self, handle: int) -> int:
        return 10**12

    def nvmlDeviceGetTemperature(self, handle: int, sensor: int) -> int:
        return 61

    def nvmlDeviceGetClockInfo(self, handle: int, clock: int) -> int:
        return 1980

    def nvmlDeviceGetCurrentClocksThrottleReasons(self, handle: int) -> int:
        return 0x4 | 0x40 | 0x8000

    def nvmlDeviceGetTotalEccErrors(self, handle: int, kind: int, counter: int) -> int:
        return 3

    def nvmlDeviceGetComputeRunningProcesses(self, handle: int) -> list[Any]:
        return [SimpleNamespace(pid=100 + handle)]

    def nvmlEventSetCreate(self) -> str:
        return "events"

    def nvmlDeviceRegisterEvents(self, handle: int, kind: int, events: str) -> None: ...

    def nvmlEventSetWait_v2(self, events: str, timeout_ms: int) -> Any:
        if not self.xids:
            raise Nvml.NVMLError("time-out")
        device, xid = self.xids.pop(0)
        return SimpleNamespace(device=device, eventData=xid)


def test_what_a_device_tells_in_our_units_and_words():
    first, second = Devices(Nvml()).look()
    sample = first.sample
    assert (sample.device_uuid, second.sample.device_uuid) == ("GPU-0", "GPU-1")
    assert (sample.util_pct, sample.mem_util_pct, second.sample.mem_util_pct) == (97.0, 40.0, 41.0)
    assert (sample.power_mw, sample.power_limit_mw, sample.energy_mj) == (250_000, 700_000, 10**12)
    assert (sample.temp_c, sample.sm_clock_mhz, sample.ecc_uncorrected) == (61, 1980, 3)
    assert sample.throttle == ("sw_power_cap", "hw_thermal")
    assert (sample.xid, sample.lost) == (None, False)
    assert first.pids == {100}


CALLS = [name for name in vars(Nvml) if name.startswith("nvmlDeviceGet")]
ESSENTIAL = {"nvmlDeviceGetCount", "nvmlDeviceGetHandleByIndex", "nvmlDeviceGetUUID"}


@pytest.mark.parametrize("name", sorted(set(CALLS) - ESSENTIAL))
def test_what_a_device_does_not_give_is_not_measured_and_not_zero(name):
    whole = Devices(Nvml()).look()[0]
    part = Devices(Nvml(broken=(name,))).look()[0]
    differing = {f for f in whole.sample.__struct_fields__ if _of(whole, f) != _of(part, f)}
    assert all(_of(part, field) is None for field in differing)
    assert differing or part.pids == frozenset()


def _of(look: Any, field: str) -> Any:
    return getattr(look.sample, field)


def test_xids_stay_with_their_device():
    nvml = Nvml()
    devices = Devices(nvml)
    nvml.xids = [(1, 31), (1, 79)]
    assert [look.sample.xid for look in devices.look()] == [None, 79]
    assert [look.sample.xid for look in devices.look()] == [None, 79]


@pytest.mark.parametrize("name", ["nvmlEventSetCreate", "nvmlDeviceRegisterEvents"])
def test_devices_without_events_are_measured_all_the_same(name):
    nvml = Nvml(broken=(name,))
    nvml.xids = [(0, 79)]
    assert Devices(nvml).look()[0].sample.xid is None


def test_a_device_that_the_driver_has_lost():
    assert Devices(Nvml(lost=True)).look()[0].sample.lost


def taken(sampler: GpuSampler) -> list[Any]:
    found: list[Any] = []
    waits = threading.Event()
    for _ in range(int(DEADLINE_S / 0.01)):
        found += sampler.take()
        if len(found) >= 4:
            return found
        waits.wait(0.01)
    raise AssertionError("no samples came")


def test_the_sampler_goes_on_until_it_is_stopped():
    nvml = Nvml()
    sampler = GpuSampler(lambda: nvml, period_s=0.005)
    sampler.start()
    assert {look.sample.device_uuid for look in taken(sampler)} == {"GPU-0", "GPU-1"}
    assert sampler.measured
    sampler.stop()
    assert nvml.shut.wait(DEADLINE_S)


def no_library() -> Any:
    raise ImportError("pynvml")


@pytest.mark.parametrize(
    "load",
    [no_library, lambda: Nvml(broken=("nvmlInit",)), lambda: Nvml(num=0), object],
    ids=["no library", "no driver", "no device", "another library"],
)
def test_where_there_is_nothing_nothing_is_measured(load):
    sampler = GpuSampler(load)
    sampler.start()
    sampler._thread.join(DEADLINE_S)
    assert not sampler._thread.is_alive()
    assert sampler.take() == [] and not sampler.measured
