"""When a walk stands still: what it waits for, in one sentence, after a while and then ever more rarely.

Pure; the clock is passed in. Nobody should have to guess why a job hangs.
"""

from __future__ import annotations

from cascade_runtime.agent.walk_proposer import Waiting
from cascade_runtime.detectors._steps import not_there
from cascade_runtime.progress import Progress

FIRST_S = 2.0
"""An agent that is started again is back within this, most of the time."""

TIMES = 10
"""Each next telling comes so many times as late."""


class Patience:
    """One agent's walks, and when to say what they wait for."""

    def __init__(self) -> None:
        self._began: tuple[int, float] | None = None
        self._next_s = FIRST_S

    def is_due(self, epoch: int, walking: bool, now_s: float) -> bool:
        """The walk to the epoch after ``epoch`` has waited long enough to say why."""
        if not walking:
            self._began = None
            return False
        if self._began is None or self._began[0] != epoch:
            self._began, self._next_s = (epoch, now_s), FIRST_S
        if now_s - self._began[1] < self._next_s:
            return False
        self._next_s *= TIMES
        return True


def no_majority(waiting: Waiting, away: list[int]) -> str:
    """The sentence for a walk that too few of the view can vote for."""
    heard = ", ".join(str(a) for a in sorted(waiting.heard)) or "none"
    whom = _agents(away) if away else "the others' agents"
    return (
        f"no majority: of the {waiting.num_members} members of epoch {waiting.epoch} only "
        f"{len(waiting.heard)} can be heard (ranks {heard}), so their ranks stand still until "
        f"{whom} can be reached again; Ctrl-C ends the job"
    )


def not_answered(waiting: Waiting, agents: list[int]) -> str:
    """The sentence for a walk that waits for other agents."""
    has = "has" if len(agents) == 1 else "have"
    return f"the walk to epoch {waiting.epoch + 1} waits for {_agents(agents)}, which {has} not answered"


def not_halted(
    epoch: int, rank: str, at: Progress | None, for_s: float, pid: int | None, held: list[str]
) -> str:
    """The sentence for a walk that waits for a rank of this host, which lives.

    Args:
        epoch: of the view in force.
        rank: the rank in words.
        at: what its progress word says; None when it never got so far.
        for_s: since when it says so.
        pid: the rank's process.
        held: members that have halted, in words.
    """
    step, phase = (at.decided + 1, at.phase) if at else (1, "starting")
    whom = f"rank{'s' if len(held) > 1 else ''} {_listed(held)}" if held else "the job"
    it = "it lives" if pid is None else f"it lives, pid {pid}"
    return (
        f"rank {rank} {not_there(phase, step, for_s)}; {whom} wait{'' if len(held) > 1 else 's'} "
        f"for it ({it}), and the walk to epoch {epoch + 1} until its next bucket or step"
    )


def not_acknowledged(
    epoch: int, rank: str, at: Progress | None, for_s: float, pid: int | None
) -> str:
    """The sentence for a walk whose proposal a rank of this host has not acknowledged; as not_halted.

    It answered while its script was in code of its own, where it agrees to nothing else than to be
    set apart (rank/aside.py).
    """
    step, phase = (at.decided + 1, at.phase) if at else (1, "starting")
    it = "it lives" if pid is None else f"it lives, pid {pid}"
    return (
        f"rank {rank} {not_there(phase, step, for_s)} and has not agreed to epoch {epoch + 1} ({it}); "
        "the walk waits until its next bucket or step"
    )


def _listed(words: list[str]) -> str:
    return words[0] if len(words) == 1 else ", ".join(words[:-1]) + " and " + words[-1]


def _agents(indices: list[int]) -> str:
    names = ", ".join(str(i) for i in indices)
    return f"agent {names}" if len(indices) == 1 else f"agents {names}"
