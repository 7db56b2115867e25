"""A rank comes back to a job whose loop is not the plain one: it steps as the others do, or is refused."""

from __future__ import annotations

from itertools import product

import pytest

from tests.long import one_in
from tests.runtime import rejoin_loops
from tests.runtime.jobs import JobRunner
from tests.runtime.test_rejoin import AFTER, ends, joins, killed, problems, run

STEPS = 100
LOOPS = ["Unused", "Views", "NoSync", "Skips", "Adds", "Scaled", "Frozen"]
pytestmark = [pytest.mark.chaos, pytest.mark.timeout(150)]


@pytest.mark.parametrize(("loop", "victim"), one_in(3, product(LOOPS, (0, 2))))
def test_it_steps_as_the_others_do(
    jobs: JobRunner, capfd: pytest.CaptureFixture[str], loop: str, victim: int
) -> None:
    words = ("--loop", loop, "--steps", str(STEPS))
    job = run(jobs, *words, strikes=killed(victim), script=rejoin_loops.__file__)
    told = capfd.readouterr().err
    wrong = problems(job, STEPS, reference=lambda had: rejoin_loops.train_alone(loop, had))
    assert wrong == [], told
    assert len(ends(job, victim, 1)) >= AFTER


def test_who_comes_back_with_other_buckets_is_refused_and_the_others_go_on(
    jobs: JobRunner, capfd: pytest.CaptureFixture[str]
) -> None:
    words = ("--loop", "Another", "--steps", str(STEPS))
    job = run(jobs, *words, strikes=killed(2), script=rejoin_loops.__file__)
    told = capfd.readouterr().err
    wrong = problems(
        job, STEPS, lost=(2,), reference=lambda had: rejoin_loops.train_alone("Loop", had)
    )
    assert wrong == [], told
    assert len(joins(job)) == 1
    assert told.count("come back with other gradient buckets than the others have") == 1, told
    assert "rank 2.1 died (refused, exit code 2)" in told
    assert "must run the same script with the same arguments" in told
    assert "Traceback" not in told


@pytest.mark.parametrize(
    ("loop", "why"),
    [
        ("Closure", "it cannot join: the optimizer steps with a closure"),
        ("Clips", "does the script change them outside of the optimizer? (tried 2 times)"),
    ],
)
def test_who_is_refused_is_not_started_over_and_over(
    jobs: JobRunner, capfd: pytest.CaptureFixture[str], loop: str, why: str
) -> None:
    words = ("--loop", loop, "--steps", str(STEPS))
    options = {"script": rejoin_loops.__file__, "respawn": 6, "respawn_delay_s": 0.05}
    job = run(jobs, *words, strikes=killed(2), **options)
    told = capfd.readouterr().err
    wrong = problems(
        job, STEPS, lost=(2,), reference=lambda had: rejoin_loops.train_alone(loop, had)
    )
    # A version that the script clips has two contents: the optimizer's, and what every rank made of it.
    wrong = [w for w in wrong if not (loop == "Clips" and w.startswith("G1: "))]
    assert wrong == [], told
    assert joins(job) == []
    assert why in told
    assert told.count("rank 2 is not started again: it was refused 2 times in a row") == 1, told
    assert told.count("starting rank 2 again") == 2, told
    assert "Traceback" not in told
