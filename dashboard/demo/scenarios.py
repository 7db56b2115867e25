"""The demo's stories: what is run, what is done to it, and what the referee should say afterwards."""

from __future__ import annotations

from dataclasses import dataclass

from cascade_runtime.vocabulary.errors import BadUsage
from cascade_runtime.vocabulary.results import Verdict


@dataclass(frozen=True)
class Kill:
    """SIGKILL ``rank`` while it waits in a collective of the first step after ``after_step``."""

    rank: int
    after_step: int


@dataclass(frozen=True)
class Scenario:
    """One story."""

    name: str
    summary: str
    story: tuple[str, ...]
    """What will happen, told before it does."""
    expected: Verdict
    steps: int = 120
    pause_ms: float = 10.0
    kills: tuple[Kill, ...] = ()


SCENARIOS = {
    scenario.name: scenario
    for scenario in (
        Scenario(
            name="kill-one",
            summary="one of the ranks is killed in the middle of a collective",
            story=(
                "All ranks train together, one reduction a step: the regime is STRONG.",
                "Rank 2 is killed (SIGKILL) while it waits in a collective of step 41.",
                "Its host's agent certifies the death; the survivors walk to CAUSAL, one cohort, "
                "missing {2}, and reduce the interrupted step again among themselves.",
                "What was relaxed is debt. When all survivors agree by digest it is settled, and "
                "after 5 calm steps they climb back to STRONG on the smaller view.",
            ),
            expected="ok",
            kills=(Kill(rank=2, after_step=40),),
        ),
        Scenario(
            name="clean",
            summary="nothing goes wrong",
            story=(
                "All ranks train together in STRONG from the first step to the last, then leave.",
                "The report should prove that every read, update and collective agreed.",
            ),
            expected="ok",
            steps=60,
        ),
    )
}


def find_scenario(name: str, num_ranks: int) -> Scenario:
    """The scenario called ``name``, if ``num_ranks`` can play it.

    Raises:
        BadUsage: there is none of that name, or it names a rank that the job has not.
    """
    if name not in SCENARIOS:
        known = "\n  ".join(f"{s.name}: {s.summary}" for s in SCENARIOS.values())
        raise BadUsage(f"there is no scenario {name!r}", where="--scenario", hint=known)
    scenario = SCENARIOS[name]
    needed = max((kill.rank for kill in scenario.kills), default=1) + 1
    if num_ranks < needed:
        raise BadUsage(
            f"scenario {name} needs at least {needed} ranks",
            where="--ranks",
            hint=f"give --ranks {needed} or more",
        )
    return scenario
