"""What a scenario does to a job, and when: real signals to real processes, a rank that is really late."""

from __future__ import annotations

from dataclasses import dataclass

SIGSTOPPED_FOR_S = 1.5


@dataclass(frozen=True)
class Kill:
    """SIGKILL ``rank`` in the first step after ``after_step``, while it waits in a collective."""

    rank: int
    after_step: int


@dataclass(frozen=True)
class Stop:
    """SIGSTOP ``rank`` in the first step after ``after_step``; SIGCONT after ``seconds``."""

    rank: int
    after_step: int
    seconds: float = SIGSTOPPED_FOR_S


@dataclass(frozen=True)
class KillAgent:
    """SIGKILL the agent of ``host`` when rank ``rank`` has decided ``after_step``."""

    host: int
    rank: int
    after_step: int


@dataclass(frozen=True)
class Join:
    """Have the script started as a rank that never was, when rank ``rank`` has decided ``after_step``."""

    after_step: int
    rank: int = 0


@dataclass(frozen=True)
class Late:
    """``rank`` comes ``ms`` late to each step from ``first_step`` to ``last_step``; it does so itself."""

    rank: int
    first_step: int
    last_step: int
    ms: float = 50.0

    def arguments(self) -> list[str]:
        """For the training script."""
        steps = f"{self.first_step}-{self.last_step}"
        return ["--late-rank", str(self.rank), "--late-ms", str(self.ms), "--late-steps", steps]


@dataclass(frozen=True)
class Cold:
    """A rank that joins takes ``ms`` longer for each of its first ``steps``; it does so itself."""

    steps: int
    ms: float

    def arguments(self) -> list[str]:
        """For the training script."""
        return ["--cold-steps", str(self.steps), "--cold-ms", str(self.ms)]


Strike = Kill | Stop | KillAgent | Join
"""What comes from outside of the job."""
