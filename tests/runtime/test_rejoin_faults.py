"""Whoever is killed while a rank comes back: the others go on, nothing forks, nothing hangs."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from tests.runtime import faults as do
from tests.runtime import rejoin_job
from tests.runtime.faults import Faults, Running, Strike
from tests.runtime.jobs import JobRunner
from tests.runtime.test_rejoin import killed, problems, run

STEPS = 120
pytestmark = [pytest.mark.chaos, pytest.mark.timeout(150)]
VICTIM = 2


def saved_to(rank: int) -> Callable[[Running], bool]:
    """A member has begun to serve the newcomer: it says so in the newcomer's progress word."""

    def when(job: Running) -> bool:
        return job.incarnation(rank) > 0 and job.decided_newest(rank) > 0

    return when


@dataclass(frozen=True)
class Case:
    strikes: list[Strike]
    lost: tuple[int, ...] = ()
    """Ranks that do not finish: struck when their times are used up, or not started again."""
    hosts: int = 2
    ranks: int = 4
    respawn: int = 2


def then(*more: Strike) -> list[Strike]:
    return [*killed(VICTIM), *more]


COMES, SERVED = do.comes_back(VICTIM), saved_to(VICTIM)
LET_IN, BACK = do.being_let_in(VICTIM), do.is_back(VICTIM)
CASES = {
    "newcomer killed before it is served": Case(then(Strike(COMES, do.kill_newest(2)))),
    "newcomer killed while it replays": Case(then(Strike(SERVED, do.kill_newest(2)))),
    "newcomer killed in the walk": Case(then(Strike(LET_IN, do.kill_newest(2)))),
    "newcomer killed just after": Case(then(Strike(BACK, do.kill_newest(2)))),
    "newcomer stopped in the walk": Case(then(Strike(LET_IN, do.stop_newest(2))), lost=(2,)),
    "newcomer stopped while it replays": Case(then(Strike(SERVED, do.stop_newest(2))), lost=(2,)),
    "source killed before it serves": Case(then(Strike(COMES, do.kill_newest(1)))),
    "source killed while it serves": Case(then(Strike(SERVED, do.kill_newest(1)))),
    "source killed in the walk": Case(then(Strike(LET_IN, do.kill_newest(1)))),
    "source killed just after": Case(then(Strike(BACK, do.kill_newest(1)))),
    "source stopped as it is asked": Case(then(Strike(COMES, do.stop(1))), lost=(1,)),
    "source stopped before it serves": Case(
        then(Strike(COMES, lambda job: None), Strike(do.after(0.015), do.stop(1))), lost=(1,)
    ),
    "source stopped while it serves": Case(then(Strike(SERVED, do.stop(1))), lost=(1,)),
    "author killed while it comes": Case(then(Strike(SERVED, do.kill_newest(0)))),
    "author killed in the walk": Case(then(Strike(LET_IN, do.kill_newest(0)))),
    "its agent killed while it replays": Case(then(Strike(SERVED, do.kill_agent(1)))),
    "its agent killed in the walk": Case(then(Strike(LET_IN, do.kill_agent(1)))),
    "leading agent killed while it replays": Case(then(Strike(SERVED, do.kill_agent(0)))),
    "leading agent killed in the walk": Case(then(Strike(LET_IN, do.kill_agent(0)))),
    "the only agent killed before it comes": Case(
        then(Strike(do.after(0.05), do.kill_agent(0))), hosts=1
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_the_others_go_on(jobs: JobRunner, capfd: pytest.CaptureFixture[str], name: str) -> None:
    case = CASES[name]
    job = run(
        jobs, "--steps", str(STEPS), strikes=case.strikes, hosts=case.hosts, ranks=case.ranks,
        respawn=case.respawn, respawn_delay_s=0.1,
    )  # fmt: skip
    told = capfd.readouterr().err
    lost = tuple(r for r in case.lost if r not in job.outcome.finished)
    assert problems(job, STEPS, lost=lost) == [], told
    assert "Traceback" not in told


@pytest.mark.parametrize("number", range(6))
def test_random_faults_on_the_way(
    jobs: JobRunner, capfd: pytest.CaptureFixture[str], number: int
) -> None:
    draw = random.Random(20261130 + number)
    strikes = [*killed(draw.randrange(4))]
    for _ in range(2):
        what = draw.choice([do.kill_newest(draw.randrange(4)), do.kill_agent(draw.randrange(2))])
        strikes.append(Strike(do.after(draw.uniform(0.1, 0.9)), what))
    faults = Faults(strikes)
    job = jobs.run(
        "--steps", str(STEPS), script=rejoin_job.__file__, faults=faults, hosts=2, respawn=2,
        respawn_delay_s=0.1,
    )  # fmt: skip
    told = capfd.readouterr().err
    lost = tuple(r for r in range(4) if r not in job.outcome.finished)
    assert len(lost) < 4, told
    assert problems(job, STEPS, lost=lost) == [], told
