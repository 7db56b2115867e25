"""Whoever is killed while a rank comes back: the others go on, nothing forks, nothing hangs."""

from __future__ import annotations

import random
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from cascade_runtime.agent.launcher import rank_pids
from cascade_runtime.agent.proc_stat import process_state
from cascade_runtime.vocabulary.identity import Actor
from tests.long import one_in
from tests.runtime import faults as do
from tests.runtime import rejoin_job
from tests.runtime.faults import Faults, Running, Strike
from tests.runtime.jobs import JobRunner
from tests.runtime.test_rejoin import AFTER, AT, killed, problems, run

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


@pytest.mark.parametrize("name", one_in(4, CASES))
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


MOST_STEPS = 2000
LIVES = 2
"""How often a rank is started again."""


class Struck:
    """Kills, and who of the ranks they hit: what must be lost follows from that alone."""

    def __init__(self, ranks: int, until: Path) -> None:
        self.actors: set[Actor] = set()
        self._ranks = range(ranks)
        self._until = until
        self._looked_s = 0.0

    @property
    def lost(self) -> tuple[int, ...]:
        """Ranks whose last life was hit; every other one must come back and finish."""
        return tuple(sorted(a.rank for a in self.actors if a.incarnation == LIVES))

    def kill(self, rank: int) -> Callable[[Running], bool]:
        """The newest incarnation of the rank, if it lives."""

        def what(job: Running) -> bool:
            actor = job.newest(rank)
            if process_state(rank_pids(job.config)[actor]) in (None, "Z"):
                return False
            self.actors.add(actor)
            return job.signal_newest(rank, signal.SIGKILL)

        return what

    def all_are_back(self, job: Running) -> bool:
        """Whoever was hit and had a life left is a member again."""
        if time.monotonic() - self._looked_s < 0.05:
            return False
        self._looked_s = time.monotonic()
        newest = [job.newest(r) for r in self._ranks if r not in self.lost]
        return all(
            a not in self.actors and (a.incarnation == 0 or job.has_joined(a.rank, a.incarnation))
            for a in newest
        )

    def end(self, job: Running) -> None:
        """All train some more steps together, and that is the end."""
        stands = max(job.decided_newest(rank) for rank in self._ranks)
        draft = self._until.with_suffix(".draft")
        draft.write_text(str(stands + AFTER + 5))
        draft.rename(self._until)


@pytest.mark.parametrize("number", one_in(3, range(6)))
def test_random_faults_on_the_way(
    jobs: JobRunner, capfd: pytest.CaptureFixture[str], tmp_path: Path, number: int
) -> None:
    draw = random.Random(20261130 + number)
    until = tmp_path / "until"
    struck = Struck(4, until)
    victim = draw.randrange(4)
    watched = next(r for r in range(4) if r != victim)
    strikes = [Strike(do.after_step(watched, AT, "waiting"), struck.kill(victim), "first")]
    for _ in range(2):
        what = draw.choice([struck.kill(draw.randrange(4)), do.kill_agent(draw.randrange(2))])
        strikes.append(Strike(do.after(draw.uniform(0.1, 0.9)), what))
    strikes.append(Strike(struck.all_are_back, struck.end, "end"))
    faults = Faults(strikes)
    job = jobs.run(
        "--steps", str(MOST_STEPS), "--until", str(until), script=rejoin_job.__file__,
        faults=faults, hosts=2, respawn=LIVES, respawn_delay_s=0.1,
    )  # fmt: skip
    told = capfd.readouterr().err
    names = [name for name, _ in faults.struck]
    assert "first" in names and "end" in names, f"not all came back: {told}"
    assert problems(job, int(until.read_text()), lost=struck.lost) == [], told
    for rank in struck.lost:
        assert f"rank {rank} is not started again: it was, {LIVES} times" in told
