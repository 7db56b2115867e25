"""SIGKILL and SIGSTOP of anybody, at the worst moments: the survivors go on and equal the reference."""

from __future__ import annotations

import re
import signal
import time
from dataclasses import dataclass, field

import pytest

from tests.runtime import behind, last_word
from tests.runtime import faults as do
from tests.runtime.checks import last_step_before, problems
from tests.runtime.faults import Faults, Running, Strike
from tests.runtime.jobs import FinishedJob, JobRunner
from tests.runtime.schedules import MORE_STEPS, draw, play

STEPS = 46
AT = 10
pytestmark = [pytest.mark.chaos, pytest.mark.timeout(150)]


@dataclass(frozen=True)
class Case:
    """A job, what is done to it, and what becomes of whom."""

    strikes: list[Strike]
    lost: dict[int, int] = field(default_factory=dict)
    """Rank -> its exit status; all others must survive."""
    ranks: int = 3
    hosts: int = 1
    behind: int | None = None


def struck(when, what) -> list[Strike]:
    return [Strike(when, what, "struck")]


def then(first, when, second) -> list[Strike]:
    """A fault, and another thing later."""
    return [Strike(WAITING, first, "struck"), Strike(when, second)]


def while_walking(victim: int, how) -> list[Strike]:
    """The last rank dies; while the walk of it is under way, so does (or stops) ``victim``."""
    return [
        Strike(do.after_step(2, AT, "waiting"), do.kill(2)),
        Strike(lambda job: job.walking() or job.num_views() > 1, how(victim), "struck"),
    ]


def one_behind(victim: int, how) -> list[Strike]:
    """Rank 1 is one decided step behind the others."""

    def when(job: Running) -> bool:
        others = [job.decided(r) for r in (0, 2)]
        return min(others) == behind.HELD_STEP and job.decided(1) == behind.HELD_STEP - 1

    return struck(when, how(victim))


WAITING, FORWARD = do.after_step(1, AT, "waiting"), do.after_step(1, AT, "forward")
AUTHOR = do.after_step(0, AT, "waiting")  # it has issued the step and not decided it
CASES = {
    "stopped in a step": Case(struck(WAITING, do.stop(1)), {1: -9}),
    "stopped between steps": Case(struck(FORWARD, do.stop(1)), {1: -9}, hosts=2),
    "author stopped between issue and decision": Case(struck(AUTHOR, do.stop(0)), {0: -9}, hosts=2),
    "author killed between issue and decision": Case(struck(AUTHOR, do.kill(0)), {0: -9}, hosts=2),
    "two stopped": Case(struck(WAITING, do.stop(1, 2)), {1: -9, 2: -9}, hosts=2),
    "two killed": Case(struck(WAITING, do.kill(1, 2)), {1: -9, 2: -9}, hosts=2),
    "stopped of two": Case(struck(WAITING, do.stop(1)), {1: -9}, ranks=2),
    "author stopped of two": Case(struck(AUTHOR, do.stop(0)), {0: -9}, ranks=2),
    "stopped, then killed": Case(then(do.stop(1), do.fenced(1), do.kill(1)), {1: -9}),
    "stopped and continued": Case(then(do.stop(1), do.fenced(1), do.go_on(1)), {1: 75}),
    "author stopped and continued": Case(
        then(do.stop(0), do.fenced(0), do.go_on(0)), {0: 75}, hosts=2
    ),
    "stopped for a moment": Case(then(do.stop(1), do.after(0.005), do.go_on(1))),
    "killed in a walk": Case(while_walking(1, do.kill), {2: -9, 1: -9}),
    "stopped in a walk": Case(while_walking(1, do.stop), {2: -9, 1: -9}),
    "author stopped in a walk": Case(while_walking(0, do.stop), {2: -9, 0: -9}),
    "killed one behind": Case(one_behind(1, do.kill), {1: -9}, behind=1),
    "stopped one behind": Case(one_behind(1, do.stop), {1: -9}, behind=1),
    "killed when another is behind": Case(one_behind(0, do.kill), {0: -9}, behind=1),
    "stopped when another is behind": Case(one_behind(2, do.stop), {2: -9}, behind=1),
    "agent killed": Case(struck(WAITING, do.kill_agent(1)), hosts=2),
    "agent stopped": Case(struck(WAITING, do.stop_agent(0)), hosts=2),
    "agent stopped, rank killed": Case(
        then(do.stop_agent(0), do.after(0.1), do.kill(2)), {2: -9}, hosts=2
    ),
    "host killed": Case(struck(AUTHOR, do.kill_host(1)), {1: -9}, hosts=3),
    "half of the hosts killed": Case(
        struck(AUTHOR, do.kill_host(1)), {2: -9, 3: -9}, ranks=4, hosts=2
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_survivors_go_on(jobs: JobRunner, capfd: pytest.CaptureFixture[str], name: str) -> None:
    case = CASES[name]
    faults = Faults(case.strikes)
    script = None if case.behind is None else behind.__file__
    job = jobs.run(
        "--steps", str(STEPS), "--dtype", "float64",
        script=script, env={} if case.behind is None else {"BEHIND_RANK": str(case.behind)},
        ranks=case.ranks, hosts=case.hosts, faults=faults,
    )  # fmt: skip
    told = capfd.readouterr().err
    assert len(faults.struck) == len(case.strikes), "the moment never came"
    survivors = [r for r in range(case.ranks) if r not in case.lost]
    assert problems(job, STEPS, survivors) == [], told
    assert job.outcome.finished == survivors
    assert {r: s for r, s in job.outcome.statuses.items() if r in case.lost} == case.lost
    (at_ns,) = [int(at_s * 1e9) for name, at_s in faults.struck if name == "struck"]
    assert all(STEPS - last_step_before(job, at_ns, r) >= MORE_STEPS for r in survivors)
    assert "Traceback" not in told
    if "stopped" in name and "killed" not in name and "walk" not in name:
        assert "died" not in told


@pytest.mark.parametrize("hosts", [1, 3])
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP], ids=["killed", "stopped"])
def test_debts_of_a_fall_are_opened_although_its_author_never_commits_it(
    jobs: JobRunner, hosts: int, how: int
) -> None:
    job = jobs.run(
        "--steps", "40", "--dtype", "float64", script=last_word.__file__,
        env={"LAST_WORD_RANK": "0", "LAST_WORD_SIGNAL": str(int(how))}, ranks=4, hosts=hosts,
        faults=Faults(struck(do.after_step(1, AT, "waiting"), do.kill(3))),
    )  # fmt: skip
    assert problems(job, 40, [1, 2]) == []
    falls = {
        r["new_epoch"]
        for r in job.rows("transitions")
        if r["phase"] == "committed" and r["fault"] == "GPU_FAIL_STOP"
    }
    opened = {(r["new_epoch"], r["relaxed"]) for r in job.rows("debt") if r["action"] == "opened"}
    assert sorted(opened) == list(zip(sorted(falls), ("STRONG", "CAUSAL"), strict=True))


def test_what_the_trace_and_a_thawed_rank_say(
    jobs: JobRunner, capfd: pytest.CaptureFixture[str]
) -> None:
    faults = Faults(
        [
            Strike(WAITING, do.stop(2)),
            Strike(do.fenced(2), lambda job: None),
            Strike(do.after(0.3), do.go_on(2)),
        ]
    )
    job = jobs.run("--steps", "60", "--pause-ms", "25", ranks=3, faults=faults)
    told = capfd.readouterr().err
    (left,) = re.findall(r"cascade: rank 2 was stopped for (\d\.\d) s; the job went on", told)
    assert 0.3 <= float(left) < 30
    assert "exit code 75" in told
    assert job.outcome.statuses[2] == 75
    assert job.outcome.exit_code == 0
    # A machine that tests share may have found the rank late before.
    health = [r for r in job.rows("health") if r["subject_rank"] == 2]
    health = [r for r in health if r["detector"] in ("frozen", "fence")]
    assert [(r["detector"], r["signal"]) for r in sorted(health, key=lambda r: r["seq"])][:2] == [
        ("frozen", "stopped"),
        ("fence", "fenced"),
    ]
    (lost,) = {(r["reason"], r["epoch"]) for r in job.rows("membership") if r["departed"]
               and r["departed"][0]["rank"] == 2}  # fmt: skip
    assert lost[0] == "stopped"
    later = [
        (table, row["seq"])
        for table in ("steps", "updates", "reads", "collectives", "transitions", "membership")
        for row in job.rows(table)
        if row["rank"] == 2 and row["epoch"] >= lost[1]
    ]
    assert later == [], "a fenced rank wrote under a later epoch"
    assert job.verdict() == "ok"


HOLDS_THE_LOCK = """
import ctypes, os, time
from dashboard.demo import train
batch_of = train.batch_of

def hold(seed, rank, step):
    if rank == 1 and step in (8, 14):
        ctypes.PyDLL(None).usleep(1_000_000)  # a PyDLL call keeps the interpreter lock
    return batch_of(seed, rank, step)

train.batch_of = hold
train.main()
"""


def test_a_held_interpreter_lock_removes_nobody(jobs: JobRunner, tmp_path) -> None:
    script = tmp_path / "holds.py"
    script.write_text(HOLDS_THE_LOCK)
    job = jobs.run("--steps", "20", script=script, ranks=3)
    assert job.outcome.finished == [0, 1, 2]
    assert job.outcome.statuses == {0: 0, 1: 0, 2: 0}
    # A rank that is late for a second may well move the regime; it is removed from nothing.
    everybody = [{"rank": rank, "incarnation": 0} for rank in range(3)]
    views = [r for r in job.rows("transitions") if r["phase"] == "committed"]
    membership = job.rows("membership")
    assert {r["reason"] for r in membership} == {"started", "finished"}
    left = min(r["epoch"] for r in membership if r["reason"] == "finished")
    assert [r for r in views if r["new_epoch"] < left and r["members"] != everybody] == []
    assert [r for r in job.rows("health") if r["fault"] == "GPU_FAIL_STOP"] == []


@pytest.mark.parametrize("number", range(4))
def test_random_faults(jobs: JobRunner, number: int) -> None:
    schedule = draw(20261130, number)
    wrong = play(jobs, schedule).wrong
    assert wrong == [], f"seed 20261130, number {number}: {schedule}"


def test_without_a_majority_survivors_say_so(
    jobs: JobRunner, capfd: pytest.CaptureFixture[str]
) -> None:
    """Half of the members are gone with their agent and nobody starts it again: nobody may decide."""
    said = "no majority: of the 4 members of epoch 0 only 2 can be heard"
    heard: list[str] = []

    def told(job: Running) -> bool:
        heard.append(capfd.readouterr().err)
        return said in "".join(heard)

    faults = Faults([
        Strike(do.after_step(0, AT), do.kill_host(1), "struck"),
        Strike(told, lambda job: job.signal_agent(0, signal.SIGTERM), "ended"),
    ])  # fmt: skip
    began = time.monotonic()
    job: FinishedJob = jobs.run("--steps", "60", hosts=2, faults=faults, restart=False)
    assert [name for name, _ in faults.struck] == ["struck", "ended"]
    assert time.monotonic() - began < 60
    assert job.outcome.finished == []
    rows = [r for r in job.rows("decisions") if r["fault"] == "NO_MAJORITY"]
    assert [(r["changed"], r["from_regime"], r["to_regime"]) for r in rows] == [
        (False, "STRONG", "STRONG")
    ]
    assert said in rows[0]["reason"]
    verdict = job.verdict()
    assert [v.sentence for v in job.report.violations] == []
    assert verdict in ("ok", "unknown")


def test_a_lost_host_that_nobody_starts_again(jobs: JobRunner) -> None:
    faults = Faults(struck(do.after_step(0, AT), do.kill_host(1)))
    job = jobs.run(
        "--steps", str(STEPS), "--dtype", "float64", ranks=3, hosts=3, faults=faults, restart=False
    )
    assert job.outcome.finished == [0, 2]
    assert problems(job, STEPS, [0, 2]) == []
    struck_ns = int(faults.struck[0][1] * 1e9)
    seen = [r["mono_ns"] for r in job.rows("health") if r["signal"] == "unreachable"]
    assert seen
    assert min(seen) - struck_ns < 2e9, "a lost host must not wait for the long patience"
