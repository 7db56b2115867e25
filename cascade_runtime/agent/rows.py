"""The rows that a host agent writes, under an actor of its own."""

from __future__ import annotations

import os

import msgspec

from cascade_runtime.agent.config import JobConfig
from cascade_runtime.agent.control_log import control_comm_id
from cascade_runtime.agent.protocol import Trigger, View
from cascade_runtime.detectors._base import Verdict
from cascade_runtime.detectors.nvml import GpuSample
from cascade_runtime.recorder import Recorder
from cascade_runtime.vocabulary.events import (
    Actors,
    Decisions,
    Gpu,
    Groups,
    Health,
    Membership,
    Transitions,
)
from cascade_runtime.vocabulary.fault import FaultEvent
from cascade_runtime.vocabulary.identity import Actor, EventRef
from cascade_runtime.vocabulary.regime import Regime


class AgentRows:
    """Health, decisions, transitions and membership as one agent saw or made them."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self.actor = recorder.actor

    def introduce(self, config: JobConfig, index: int) -> None:
        """The agent's first rows: who it is, and the control group."""
        self._recorder.row(
            Actors,
            name=f"agent {index}",
            kind="agent",
            host=config.host_name(index),
            pid=os.getpid(),
        )
        self._recorder.row(
            Groups,
            comm_id=control_comm_id(config.run_id),
            members=[Actor(r) for r in range(config.num_ranks + config.num_hosts)],
            ordinal=0,
            label="control",
        )

    def dead(self, subject: Actor, status: int | None) -> EventRef:
        """A certified death; ``status`` is the exit status, minus the signal (None: nobody knows)."""
        return self._health(
            "pidfd",
            "dead",
            FaultEvent.GPU_FAIL_STOP,
            unit="exit status",
            value=None if status is None else float(status),
            subject=subject,
        )

    def ended(self, subject: Actor, status: int) -> EventRef:
        """A newcomer ended before it was a member: no fault of the job, and it acknowledges nothing."""
        return self._health("pidfd", "dead", None, "exit status", float(status), subject=subject)

    def verdict(self, verdict: Verdict) -> EventRef:
        """What a detector found."""
        return self._health(
            verdict.detector,
            verdict.signal,
            None if verdict.cleared else verdict.fault,
            verdict.unit,
            verdict.value,
            verdict.threshold,
            verdict.subject,
        )

    def reading(self, verdict: Verdict) -> None:
        """The same as a measured value: nothing begins with it."""
        self.verdict(msgspec.structs.replace(verdict, fault=None))

    def gpu(self, sample: GpuSample) -> None:
        """One look at one GPU."""
        self._recorder.row(
            Gpu,
            device_uuid=sample.device_uuid,
            util_pct=sample.util_pct,
            mem_util_pct=sample.mem_util_pct,
            power_mw=sample.power_mw,
            energy_mj=sample.energy_mj,
            temp_c=None if sample.temp_c is None else float(sample.temp_c),
            sm_clock_mhz=sample.sm_clock_mhz,
            throttle=None if sample.throttle is None else ", ".join(sample.throttle),
            ecc_uncorrected=sample.ecc_uncorrected,
            xid=sample.xid,
        )

    def fenced(self, subject: Actor, stopped_s: float) -> EventRef:
        """The subject is stopped and fenced: as good as dead for the job, so it is certified."""
        return self._health("fence", "fenced", None, "s", stopped_s, subject=subject)

    def agent_stopped(self, subject: Actor, stopped_s: float) -> EventRef:
        """The launcher ended an earlier incarnation of this agent because it was stopped."""
        return self._health("launcher", "stopped", None, "s", stopped_s, stopped_s, subject)

    def unreachable(self, subject: Actor, after_s: float, patience_s: float) -> EventRef:
        """The subject's host has been out of reach for ``after_s`` seconds: suspected, not certified."""
        return self._health(
            "agents",
            "unreachable",
            FaultEvent.GPU_FAIL_STOP,
            "s",
            after_s,
            patience_s,
            subject,
        )

    def calm(
        self, fault: FaultEvent, signal: str, value: float, threshold: float, unit: str
    ) -> EventRef:
        """A recovery: nothing has happened for long enough."""
        return self._health("stability", signal, fault, unit, value, threshold)

    def cpu_busy(self, subject: Actor, percent: float) -> None:
        """How much of one core the subject's process used since the last such row."""
        self._health("cpu", "cpu_busy", None, "percent", round(percent, 1), subject=subject)

    def _health(
        self,
        detector: str,
        signal: str,
        fault: FaultEvent | None,
        unit: str,
        value: float | None,
        threshold: float | None = None,
        subject: Actor | None = None,
    ) -> EventRef:
        seq = self._recorder.row(
            Health,
            detector=detector,
            signal=signal,
            subject_rank=subject.rank if subject else None,
            subject_incarnation=subject.incarnation if subject else None,
            value=value,
            threshold=threshold,
            unit=unit,
            fault=fault,
        )
        return EventRef(self.actor.rank, self.actor.incarnation, seq)

    def decision(
        self, trigger: Trigger, regime: Regime, to: Regime, changed: bool, reason: str
    ) -> None:
        """What the policy answered."""
        self._recorder.row(
            Decisions,
            fault=trigger.fault,
            from_regime=regime,
            to_regime=to,
            changed=changed,
            reason=reason,
            evidence=trigger.evidence,
        )

    def transition(self, phase: str, view: View) -> None:
        """The proposer's own row of a walk."""
        self._recorder.row(
            Transitions,
            phase=phase,
            from_regime=view.from_regime,
            to_regime=view.regime,
            fault=view.fault,
            reason=view.reason,
            new_epoch=view.epoch,
            members=view.members,
            cohorts=view.recorded_cohorts,
            proposer=view.proposer,
            evidence=view.evidence,
        )

    def membership(self, view: View) -> None:
        """Who is in the view, who came and went."""
        self._recorder.row(
            Membership,
            members=view.members,
            joined=view.joined,
            departed=view.departed,
            reason=view.member_reason,
        )
