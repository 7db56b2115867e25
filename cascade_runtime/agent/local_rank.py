"""What an agent reads of a rank of its own host, without the rank's help."""

from __future__ import annotations

from cascade_runtime.agent.config import JobConfig
from cascade_runtime.detectors._steps import Place, StepWait
from cascade_runtime.progress import read_progress
from cascade_runtime.step_ring import StepRingReader, StepTimes
from cascade_runtime.vocabulary.identity import Actor

_S = 1e9


class LocalRank:
    """The progress word and the step ring of one rank."""

    def __init__(self, config: JobConfig, actor: Actor) -> None:
        self.actor = actor
        self._word = config.progress_path(actor)
        self._ring = StepRingReader(config.steps_path(actor))
        self._before: StepTimes | None = None

    def place(self, now_s: float) -> Place | None:
        """Where it is at ``now_s`` (monotonic); None when it never got so far as to say."""
        told = read_progress(self._word)
        if told is None:
            return None
        return Place(self.actor, told.decided, told.phase, max(0.0, now_s - told.mono_ns / _S))

    def steps(self) -> list[StepWait]:
        """How the steps went that have ended since the last call."""
        found = []
        for times in self._ring.new():
            told = account_of(self.actor, self._before, times)
            if told is not None:
                found.append(told)
            self._before = times
        return found


def account_of(actor: Actor, before: StepTimes | None, times: StepTimes) -> StepWait | None:
    """A step's account, from differences of the rank's own clock.

    Returns:
        None for a step that does not follow the one before it in one epoch: a walk came in between,
        and the times tell of that.
    """
    if before is None or (before.epoch, before.step + 1) != (times.epoch, times.step):
        return None
    if not before.done_ns <= times.entered_ns <= times.done_ns:
        return None
    return StepWait(
        actor,
        times.epoch,
        times.step,
        (times.done_ns - times.entered_ns) / _S,
        (times.done_ns - before.done_ns) / _S,
        times.digest,
    )
