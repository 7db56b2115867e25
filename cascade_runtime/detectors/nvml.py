"""What a GPU's own counters say of it: spin-waiting, slowed down, losing memory, lost.

Samples come from ``agent/gpu_samples.py``; a value that the device does not give is None and is not
judged. A GPU that waits for others in a collective is busy by its utilisation (a kernel spins) at a
fraction of its power: that is a wait, not work.

Named, and nothing follows: ``spin_wait`` (``busy_pct`` and more at ``spin_power_share`` of the power
limit or less for ``dwell_s``), ``throttle`` (a slowdown by the hardware for ``dwell_s``), ``ecc``
(uncorrected errors have grown), ``xid`` (the driver reported an error). An Xid after which the device
does not work any more, and a device that the driver has lost, are GPU_FAIL_STOP. The first two clear after ``dwell_s`` without; errors never
do. It cannot tell a kernel that spins from one that needs little power.
"""

from __future__ import annotations

import msgspec

from cascade_runtime.detectors._base import News, Spec, Verdict
from cascade_runtime.vocabulary.fault import FaultEvent
from cascade_runtime.vocabulary.identity import Actor
from cascade_runtime.vocabulary.policy import NvmlLimits

NAME = "nvml"

LOST = {
    48: "a double-bit memory error",
    79: "it has fallen off the bus",
    95: "an uncontained memory error",
    119: "its system processor does not answer",
    120: "its system processor failed",
}
"""Xids after which the device does nothing more until it is reset, and what they say."""

SLOWED = frozenset({"hw_slowdown", "hw_thermal", "hw_power_brake", "sw_thermal"})
"""Throttle reasons that mean a fault; idling, set clocks and the power cap are a day's work."""


class GpuSample(msgspec.Struct, frozen=True, kw_only=True):
    """One look at one device; None: not measured. The units are the field names' ends."""

    device_uuid: str
    util_pct: float | None = None
    mem_util_pct: float | None = None
    power_mw: int | None = None
    power_limit_mw: int | None = None
    energy_mj: int | None = None
    temp_c: float | None = None
    sm_clock_mhz: int | None = None
    throttle: tuple[str, ...] | None = None
    ecc_uncorrected: int | None = None
    xid: int | None = None
    lost: bool = False


class _Dwell:
    """A condition that must hold, or be absent, for a while."""

    __slots__ = ("_since_s", "holds")

    def __init__(self) -> None:
        self._since_s: float | None = None
        self.holds = False

    def turns(self, now_holds: bool, dwell_s: float, now_s: float) -> bool:
        """True when this look begins or ends it."""
        if now_holds == self.holds:
            self._since_s = None
            return False
        self._since_s = now_s if self._since_s is None else self._since_s
        if now_s - self._since_s < dwell_s:
            return False
        self.holds, self._since_s = now_holds, None
        return True


class _Device:
    """One device: what stands of it."""

    def __init__(self) -> None:
        self.spin, self.throttle = _Dwell(), _Dwell()
        self.ecc_at_first: int | None = None
        self.spin_news, self.throttle_news = News(), News()
        self.ecc_news, self.xid_news, self.lost_news = News(), News(), News()

    @property
    def news(self) -> tuple[News, ...]:
        """One for each signal."""
        return (
            self.spin_news,
            self.throttle_news,
            self.ecc_news,
            self.xid_news,
            self.lost_news,
        )


class Nvml:
    """Judges samples of devices.

    Args:
        limits: the policy's ``[nvml]``.
    """

    def __init__(self, limits: NvmlLimits) -> None:
        self._limits = limits
        self._devices: dict[str, _Device] = {}

    def feed_gpu(self, sample: GpuSample, now_s: float, subject: Actor | None = None) -> None:
        """One look.

        Args:
            sample: what the device said.
            now_s: steady clock, seconds.
            subject: the rank that uses the device, where one is known.
        """
        device = self._devices.setdefault(sample.device_uuid, _Device())
        self._judge_spin(device, sample, now_s, subject)
        self._judge_throttle(device, sample, now_s, subject)
        self._judge_errors(device, sample, subject)

    def _judge_spin(
        self, device: _Device, sample: GpuSample, now_s: float, subject: Actor | None
    ) -> None:
        limits = self._limits
        if sample.util_pct is None or sample.power_mw is None or not sample.power_limit_mw:
            return
        limit_w = limits.spin_power_share * sample.power_limit_mw / 1000
        power_w = sample.power_mw / 1000
        spins = sample.util_pct >= limits.busy_pct and power_w <= limit_w
        if not device.spin.turns(spins, limits.dwell_s, now_s):
            return
        if spins:
            why = f"{sample.util_pct:.0f} % busy at {power_w:.0f} W: it waits in a kernel"
            device.spin_news.begin(
                _verdict("spin_wait", subject, power_w, limit_w, "W", _of(sample, why))
            )
        else:
            device.spin_news.end(subject, power_w, _of(sample, "it waits in a kernel no more"))

    def _judge_throttle(
        self, device: _Device, sample: GpuSample, now_s: float, subject: Actor | None
    ) -> None:
        if sample.throttle is None:
            return
        reasons = sorted(SLOWED.intersection(sample.throttle))
        if not device.throttle.turns(bool(reasons), self._limits.dwell_s, now_s):
            return
        count = float(len(reasons))
        if reasons:
            why = f"it is slowed down ({', '.join(reasons)})"
            device.throttle_news.begin(
                _verdict("throttle", subject, count, 0.0, "reasons", _of(sample, why))
            )
        else:
            device.throttle_news.end(subject, count, _of(sample, "it is slowed down no more"))

    def _judge_errors(self, device: _Device, sample: GpuSample, subject: Actor | None) -> None:
        errors = sample.ecc_uncorrected
        if errors is not None:
            if device.ecc_at_first is None:
                device.ecc_at_first = errors
            if errors > device.ecc_at_first:
                new = errors - device.ecc_at_first
                why = _of(sample, f"{new} uncorrected memory errors since the job began")
                device.ecc_news.begin(_verdict("ecc", subject, float(new), 0.0, "errors", why))
        if sample.lost:
            why = _of(sample, "the driver has lost it")
            device.lost_news.begin(
                _verdict("lost", subject, 1.0, 0.0, "devices", why, FaultEvent.GPU_FAIL_STOP)
            )
        if sample.xid:
            lost = LOST.get(sample.xid)
            what = f"Xid {sample.xid}" + (f": {lost}" if lost else "")
            fault = FaultEvent.GPU_FAIL_STOP if lost else None
            device.xid_news.begin(
                _verdict("xid", subject, float(sample.xid), 0.0, "Xid", _of(sample, what), fault)
            )

    def decide(self, now_s: float) -> list[Verdict]:
        """What began and what ended since the last call."""
        del now_s  # every sample carried its own time
        return [v for d in self._devices.values() for news in d.news for v in news.take()]

    @property
    def standing(self) -> list[Verdict]:
        """What is wrong with the devices."""
        return [v for d in self._devices.values() for news in d.news for v in news.standing]

    def forget(self, actor: Actor) -> None:
        """The rank is gone; its device stays."""
        for device in self._devices.values():
            for news in device.news:
                news.forget(actor)


def _of(sample: GpuSample, what: str) -> str:
    return f"GPU {sample.device_uuid}: {what}"


def _verdict(
    signal: str,
    subject: Actor | None,
    value: float,
    threshold: float,
    unit: str,
    why: str,
    fault: FaultEvent | None = None,
) -> Verdict:
    return Verdict(
        detector=NAME,
        signal=signal,
        fault=fault,
        subject=subject,
        value=value,
        threshold=threshold,
        unit=unit,
        why=why,
    )


PLUGIN = Spec(NAME, frozenset({FaultEvent.GPU_FAIL_STOP}), "nvml", Nvml)
