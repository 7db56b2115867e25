"""How a job ended, from what the journals of its agents hold."""

from __future__ import annotations

import msgspec

from cascade_runtime.agent.config import JobConfig
from cascade_runtime.agent.journal import Journal
from cascade_runtime.agent.stopping import EXIT_BASE, last_step

AGENTS_GAVE_UP = 70


class Outcome(msgspec.Struct, frozen=True):
    """How a job ended: exit status by rank (None: never started), and whether it formed at all."""

    formed: bool
    finished: list[int]
    """Ranks that left the job cleanly."""
    statuses: dict[int, int]
    exit_code: int
    stopped_by: int = 0
    """The signal by which somebody ended it before any rank had finished; 0 when nobody did."""
    last_step: int = 0
    """The last step that was decided."""


def outcome_of(config: JobConfig, stopped_by: int = 0, *, given_up: bool = False) -> Outcome:
    """Of a job whose agents have all ended.

    Args:
        config: the job.
        stopped_by: the signal that ended the launcher's wait; 0 for none.
        given_up: an agent ended as often as it was started.
    """
    finished: set[int] = set()
    statuses: dict[int, int] = {}
    formed = False
    for index in range(config.num_hosts):
        memory = Journal.read(config.journal_path(index))
        formed = formed or bool(memory.views)
        statuses.update({a.rank: status for a, status in memory.exited})
        for view in memory.views:
            if view.member_reason == "finished":
                finished.update(a.rank for a in view.departed)
    code = exit_code_of(finished, statuses)
    stopped_by = stopped_by if not finished else 0
    if stopped_by:
        code = EXIT_BASE + stopped_by
    if given_up:
        code = code or AGENTS_GAVE_UP
    return Outcome(formed, sorted(finished), statuses, code, stopped_by, last_step(config))


def exit_code_of(finished: set[int], statuses: dict[int, int]) -> int:
    """The script's: of the ranks that finished; when none did, of the first that failed."""
    judged = [s for r, s in sorted(statuses.items()) if r in finished] or [
        s for _, s in sorted(statuses.items())
    ]
    codes = [s for s in judged if s > 0]
    if codes:  # before signals, which may be our own SIGTERM to the rest of a job that never formed
        return codes[0]
    signals = [s for s in judged if s < 0]
    return 128 - signals[0] if signals else 0
