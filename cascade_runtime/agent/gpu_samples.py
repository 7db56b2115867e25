"""Samples of this host's GPUs by NVML, where there are any and nvidia-ml-py is installed.

NVML is loaded when the sampler is started and asked in a thread: a call into the driver may take long
(a GPU that is being lost), and the agent's loop must not wait for it. What a device, a driver or a
partition does not give is None: not measured, which is not zero.
"""

from __future__ import annotations

import contextlib
import importlib
import threading
from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple

from cascade_runtime.detectors.nvml import GpuSample

PERIOD_S = 1.0
_KEPT = 256

_REASONS = {
    0x1: "gpu_idle",
    0x2: "set_clocks",
    0x4: "sw_power_cap",
    0x8: "hw_slowdown",
    0x10: "sync_boost",
    0x20: "sw_thermal",
    0x40: "hw_thermal",
    0x80: "hw_power_brake",
    0x100: "display_clocks",
}
"""Bits of NVML's clocks event reasons, in our words."""


class Look(NamedTuple):
    """One sample and the processes that compute on the device (as this host numbers them)."""

    sample: GpuSample
    pids: frozenset[int]


class Devices:
    """The devices as NVML tells of them.

    Args:
        library: ``pynvml``, or what stands in for it.

    Raises:
        library.NVMLError: there is no driver.
    """

    def __init__(self, library: Any) -> None:
        self._nvml = library
        library.nvmlInit()
        self._handles: list[tuple[str, Any]] = []
        for i in range(library.nvmlDeviceGetCount()):
            handle = library.nvmlDeviceGetHandleByIndex(i)
            self._handles.append((library.nvmlDeviceGetUUID(handle), handle))
        self._xids: dict[str, int] = {}
        self._events = self._register()

    def _register(self) -> Any:
        """A set of events that tells of Xids; None where no device gives any."""
        nvml = self._nvml
        events = self._ask(nvml.nvmlEventSetCreate)
        if events is None:
            return None
        kind, registered = nvml.nvmlEventTypeXidCriticalError, False
        for _, handle in self._handles:
            with contextlib.suppress(nvml.NVMLError):
                nvml.nvmlDeviceRegisterEvents(handle, kind, events)
                registered = True
        return events if registered else None

    def _ask(self, call: Callable[..., Any], *arguments: Any) -> Any:
        try:
            return call(*arguments)
        except self._nvml.NVMLError:
            return None

    def look(self) -> list[Look]:
        """One sample of each device."""
        self._read_xids()
        return [self._look_at(uuid, handle) for uuid, handle in self._handles]

    def _read_xids(self) -> None:
        while self._events is not None:
            told = self._ask(self._nvml.nvmlEventSetWait_v2, self._events, 0)
            if told is None:  # none is waiting
                return
            uuid = self._ask(self._nvml.nvmlDeviceGetUUID, told.device)
            if uuid is not None:
                self._xids[uuid] = int(told.eventData)

    def _look_at(self, uuid: str, handle: Any) -> Look:
        nvml, ask = self._nvml, self._ask
        try:
            util = nvml.nvmlDeviceGetUtilizationRates(handle)
            lost = False
        except nvml.NVMLError as error:
            util, lost = None, isinstance(error, nvml.NVMLError_GpuIsLost)
        uncorrected = nvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED
        sample = GpuSample(
            device_uuid=uuid,
            util_pct=None if util is None else float(util.gpu),
            mem_util_pct=None if util is None else float(util.memory),
            power_mw=ask(nvml.nvmlDeviceGetPowerUsage, handle),
            power_limit_mw=ask(nvml.nvmlDeviceGetEnforcedPowerLimit, handle),
            energy_mj=ask(nvml.nvmlDeviceGetTotalEnergyConsumption, handle),
            temp_c=ask(nvml.nvmlDeviceGetTemperature, handle, nvml.NVML_TEMPERATURE_GPU),
            sm_clock_mhz=ask(nvml.nvmlDeviceGetClockInfo, handle, nvml.NVML_CLOCK_SM),
            throttle=_reasons(ask(nvml.nvmlDeviceGetCurrentClocksThrottleReasons, handle)),
            ecc_uncorrected=ask(
                nvml.nvmlDeviceGetTotalEccErrors, handle, uncorrected, nvml.NVML_VOLATILE_ECC
            ),
            xid=self._xids.get(uuid),
            lost=lost,
        )
        processes = ask(nvml.nvmlDeviceGetComputeRunningProcesses, handle) or []
        return Look(sample, frozenset(process.pid for process in processes))

    def close(self) -> None:
        """Let go of the driver."""
        self._ask(self._nvml.nvmlShutdown)


def _reasons(bits: int | None) -> tuple[str, ...] | None:
    if bits is None:
        return None
    return tuple(word for bit, word in _REASONS.items() if bits & bit)


class GpuSampler:
    """Takes a sample of every device once a second, in a thread of its own.

    Args:
        load: gives the NVML library, or raises ImportError.
        period_s: between two samples.
    """

    def __init__(
        self,
        load: Callable[[], Any] = lambda: importlib.import_module("pynvml"),
        period_s: float = PERIOD_S,
    ) -> None:
        self._load = load
        self._period_s = period_s
        self._looks: deque[Look] = deque(maxlen=_KEPT)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="nvml", daemon=True)
        self.measured = False
        """There is a device that is measured."""

    def start(self) -> None:
        """Begin; ends by itself where there is nothing to measure."""
        self._thread.start()

    def _run(self) -> None:
        try:
            library = self._load()
            devices = Devices(library)
        except Exception:  # no library, no driver, an old one: nothing is measured
            return
        try:
            while not self._over.wait(self._period_s if self.measured else 0):
                looks = devices.look()
                if not looks:
                    return
                self.measured = True
                self._looks.extend(looks)
        finally:
            devices.close()

    def take(self) -> list[Look]:
        """Samples since the last call; the oldest are lost if nobody called for long."""
        found = []
        while self._looks:
            found.append(self._looks.popleft())
        return found

    def stop(self) -> None:
        """No more samples; does not wait for a driver that does not answer."""
        self._over.set()
