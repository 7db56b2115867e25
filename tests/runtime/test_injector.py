"""The demo's faults: a real signal, to the right process, at the right moment, once."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from cascade_runtime.agent.config import JobConfig
from cascade_runtime.agent.journal import Journal
from cascade_runtime.agent.proc_stat import process_state
from cascade_runtime.progress import BACKWARD, WAITING, ProgressWord
from cascade_runtime.vocabulary.errors import BadUsage
from cascade_runtime.vocabulary.identity import Actor
from dashboard.demo import injector as injector_module
from dashboard.demo.faults import Join, Kill, KillAgent, Stop, Strike
from dashboard.demo.injector import Injector
from dashboard.demo.scenarios import SCENARIOS, find_scenario

VICTIM = Actor(1)
KILL = Kill(rank=1, after_step=10)
pytestmark = pytest.mark.timeout(60)


class Job:
    """One rank that only sleeps, with a progress word that the test writes."""

    def __init__(self, folder: Path) -> None:
        self.config = JobConfig(
            run_id="run",
            name="job",
            num_ranks=2,
            num_hosts=1,
            mode="enforce",
            policy="default",
            trace_dir=str(folder),
            run_dir=str(folder),
            host="here",
            command=["script.py"],
            master_port=1,
        )
        self.journal = Journal(self.config.journal_path(0))
        code = "import time; time.sleep(600)"
        self.rank = subprocess.Popen([sys.executable, "-S", "-c", code])
        self.said: list[str] = []

    def at(self, decided: int, phase: int) -> None:
        ProgressWord(self.config.progress_path(VICTIM)).write(decided, 0, phase)

    def known(self) -> None:
        self.journal.append("spawned", (VICTIM, self.rank.pid))

    def injector(self, *strikes: Strike, phases: tuple[str, ...] = ("waiting",)) -> Injector:
        return Injector(self.config, strikes, self.said.append, phases)


@pytest.fixture
def job(tmp_path: Path) -> Iterator[Job]:
    job = Job(tmp_path)
    yield job
    job.rank.kill()
    job.rank.wait()
    job.journal.close()


def test_it_strikes_when_the_moment_comes(job: Job) -> None:
    job.known()
    job.at(3, WAITING)
    with job.injector(KILL) as injector:
        assert injector.struck == []
        job.at(12, WAITING)
        assert job.rank.wait(timeout=30) == -signal.SIGKILL
    assert injector.struck == [(KILL, 12)]
    assert job.said == ["killed rank 1 (SIGKILL) in step 13"]


@pytest.mark.parametrize(
    ("decided", "phase", "strikes"),
    [(9, WAITING, False), (10, BACKWARD, False), (10, WAITING, True), (11, WAITING, True)],
)
def test_neither_too_early_nor_in_another_phase(
    job: Job, decided: int, phase: int, strikes: bool
) -> None:
    job.known()
    job.at(decided, phase)
    injector = job.injector(KILL)
    injector._try(KILL)
    assert injector.struck == ([(KILL, decided)] if strikes else [])
    assert (job.rank.poll() is not None or bool(job.said)) is strikes


def test_any_of_the_phases_will_do(job: Job) -> None:
    job.known()
    job.at(10, BACKWARD)
    injector = job.injector(KILL, phases=("waiting", "backward"))
    injector._try(KILL)
    assert injector.struck == [(KILL, 10)]


def test_a_victim_that_is_not_there_yet_is_waited_for(job: Job) -> None:
    injector = job.injector(KILL)
    injector._try(KILL)
    job.at(10, WAITING)
    injector._try(KILL)
    assert injector.struck == []
    job.known()
    injector._try(KILL)
    assert injector.struck == [(KILL, 10)]


def test_a_victim_that_ended_by_itself_was_not_struck(job: Job) -> None:
    job.known()
    job.at(10, WAITING)
    job.rank.kill()
    job.rank.wait()
    with job.injector(KILL) as injector:
        injector._thread.join(timeout=30)
        assert not injector._thread.is_alive()
    assert (injector.struck, job.said) == ([], [])


def test_leaving_ends_the_watch_with_kills_undone(job: Job) -> None:
    with job.injector(KILL) as injector:
        pass
    assert not injector._thread.is_alive()
    assert job.rank.poll() is None


def test_a_stopped_rank_is_let_go_after_its_time(job: Job) -> None:
    job.known()
    job.at(10, WAITING)
    with job.injector(Stop(rank=1, after_step=10, seconds=0.2)) as injector:
        injector._thread.join(timeout=30)
        assert not injector._thread.is_alive()
    assert job.said == ["stopped rank 1 (SIGSTOP) in step 11", "let rank 1 run again (SIGCONT)"]
    assert process_state(job.rank.pid) in ("S", "R")


def test_nobody_stays_stopped_when_the_job_is_over(job: Job) -> None:
    job.known()
    job.at(10, WAITING)
    injector = job.injector(Stop(rank=1, after_step=10, seconds=600))
    with injector:
        while not injector.struck:
            injector._over.wait(0.001)
    assert process_state(job.rank.pid) in ("S", "R")


def test_an_agent_is_killed_at_a_rank_s_step_in_whatever_phase(job: Job, tmp_path: Path) -> None:
    job.at(9, BACKWARD)
    strike = KillAgent(host=0, rank=1, after_step=10)
    injector = job.injector(strike)
    injector._try(strike)
    job.at(10, BACKWARD)
    injector._try(strike)
    assert injector.struck == []  # where the agent is is not written down yet
    (tmp_path / "agent-0.pid").write_text(str(job.rank.pid))
    injector._try(strike)
    assert injector.struck == [(strike, 10)]
    assert job.rank.wait(timeout=30) == -signal.SIGKILL


def test_a_rank_is_added_at_a_step_in_whatever_phase(
    job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    added: list[int] = []
    monkeypatch.setattr(injector_module, "add_rank", lambda config, rank: added.append(rank))
    job.at(9, BACKWARD)
    strike = Join(after_step=10, rank=1)
    injector = job.injector(strike)
    injector._try(strike)
    assert added == []
    job.at(10, BACKWARD)
    injector._try(strike)
    assert added == [3], "after two ranks and an agent"
    assert injector.struck == [(strike, 10)]
    assert job.said == ["added rank 3 after step 10"]


def test_a_rank_that_cannot_be_added_is_told_and_is_no_strike(
    job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(config: JobConfig, rank: int) -> None:
        raise BadUsage("no rank was added: the job is ending", where=f"rank {rank}")

    monkeypatch.setattr(injector_module, "add_rank", refuse)
    job.at(10, BACKWARD)
    strike = Join(after_step=10, rank=1)
    injector = job.injector(strike)
    injector._try(strike)
    assert injector.struck == []
    assert "the job is ending" in job.said[0]


# ---- scenarios ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_scenario_can_be_played_to_its_end(name: str) -> None:
    scenario = SCENARIOS[name]
    assert find_scenario(name, 4) is scenario
    assert scenario.name == name
    assert scenario.story
    assert all(strike.after_step < scenario.steps for strike in scenario.strikes)
    assert scenario.late is None or scenario.late.last_step < scenario.steps


def test_an_unknown_scenario_names_those_there_are() -> None:
    with pytest.raises(BadUsage, match="no scenario 'kill-two'") as caught:
        find_scenario("kill-two", 4)
    assert all(name in caught.value.hint for name in SCENARIOS)


def test_a_scenario_needs_its_victims() -> None:
    with pytest.raises(BadUsage, match="at least 3 ranks"):
        find_scenario("kill-one", 2)
    assert find_scenario("kill-one", 3).name == "kill-one"
