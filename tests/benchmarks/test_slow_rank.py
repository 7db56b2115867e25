"""What ``slow_rank_throughput`` makes of a job's rows, and when its target holds."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from benchmarks import slow_rank_throughput as bench
from benchmarks._slow_job import SLOW, SLOW_AFTER
from tests.benchmarks.test_benchmarks import quick

MS = 1_000_000


def step(
    rank: int, number: int, phase: str, at_ms: float, regime: str = "STRONG"
) -> dict[str, Any]:
    told = {"rank": rank, "step": number, "phase": phase}
    return told | {"mono_ns": int(at_ms * MS), "regime": regime}


def update(rank: int, origin: int, counter: int, epoch: int = 1) -> dict[str, Any]:
    told = {"rank": rank, "origin_rank": origin, "origin_incarnation": 0, "counter": counter}
    return told | {"object": "params/0", "action": "applied", "epoch": epoch}


def rows() -> list[dict[str, Any]]:
    """50 ms a step, then one of 300 ms, then 100 ms a step by themselves."""
    found = [step(SLOW, n, "begin", 50.0 * (n - 1)) for n in range(1, SLOW_AFTER + 2)]
    onset_ms = 50.0 * SLOW_AFTER
    for rank in range(3):
        found += [step(rank, n, "end", 50.0 * n) for n in range(1, SLOW_AFTER + 1)]
        for i in range(11):
            found.append(step(rank, 50 + i, "end", onset_ms + 300 + 100 * i, "CAUSAL"))
    return found


def test_rate_onset_and_updates_of_one_job() -> None:
    updates = [update(r, SLOW, 9) for r in range(4)] + [update(SLOW, SLOW, 12), update(0, SLOW, 12)]
    updates.append(update(SLOW, SLOW, 15, epoch=4))  # the others were done
    told = [{"steps": 10, "loss": 0.5}] * 4
    run = bench.judged(rows(), updates, told)
    assert run.rate == pytest.approx(10.0)
    assert (run.onset_ms, run.step_ms) == (300.0, 50.0)
    assert (run.unapplied, run.slow_updates, run.rank_steps, run.loss) == (2, 2, 40, 0.5)
    same = [r | {"regime": "STRONG"} for r in rows()]
    assert bench.judged(same, updates, told).onset_ms is None


RUN = bench.Run(20.0, 0.5, 700, 0, 30, 300.0, 40.0)
SLOWER = dataclasses.replace(RUN, rate=5.0, onset_ms=None)


def judged(**changed: Any) -> bool:
    losses = (0.49, 0.5, 0.51, 0.5, 0.5)
    theirs = [dataclasses.replace(SLOWER, loss=loss) for loss in losses]
    ours = [dataclasses.replace(RUN, **({"loss": loss} | changed)) for loss in losses]
    return bench.judge({"lock-step": theirs, "ours": ours, "ours again": ours}).holds


def test_when_the_target_holds() -> None:
    assert judged()
    assert not judged(rate=9.9)
    assert not judged(unapplied=1)
    assert not judged(slow_updates=0), "nobody stepped by itself"
    assert not judged(loss=0.53)


def test_deviations_are_of_both_together() -> None:
    assert bench.deviations([1.0, 3.0], [2.0, 2.0]) == 0.0
    assert bench.deviations([1.0, 3.0], [4.0, 6.0]) == pytest.approx(3 / 2**0.5)
    assert bench.deviations([1.0], [2.0]) is None
    assert bench.deviations([1.0, 1.0], [2.0, 2.0]) == float("inf")


@pytest.mark.long
@pytest.mark.chaos
def test_it_runs() -> None:
    line = quick("slow_rank_throughput")
    assert line["figure"]["updates not applied"] == 0
    assert line["figure"]["times lock-step"] > 1
