"""From a fault to the agents' first action: a rank killed, a rank stopped, a whole host lost.

Four ranks whose matrix products fill the processors, and one fault a job, at a random moment of a random
step. The first action is the first message of the walk that an agent sends once it has written down what it
saw (ranks are told to halt, or the other agents are asked to); the proposal of a view without the victim
follows when all others have halted, and is told beside. Clocks are the rows' (CLOCK_MONOTONIC, which the
processes share). False suspicions: members lost in jobs in which every few steps a rank holds its
interpreter lock for a second and nothing else is wrong.
"""

from __future__ import annotations

import argparse
import random
import sys
from pathlib import Path
from typing import NamedTuple

from benchmarks import _harness, _struck
from benchmarks._stats import percentile
from cascade_runtime.agent.zygote_process import Zygote

LIMITS_MS = {"SIGKILL": 50.0, "SIGSTOP": 150.0, "host lost": 400.0}
TARGET = "p95 at most 50 ms (SIGKILL), 150 ms (SIGSTOP), 400 ms (host lost); no false suspicion"
STRIKES = {
    "SIGKILL": (_struck.KILL_RANK, 1),
    "SIGSTOP": (_struck.STOP_RANK, 1),
    "host lost": (_struck.KILL_HOST, 4),
}
REPEATS = 25
HOLD_SECONDS = 600.0
HOLD_EVERY = 40
TABLES = ("transitions", "membership", "health", "messages")


class Answered(NamedTuple):
    """ms from the signal to each."""

    seen: float
    """An agent wrote down that the victim is gone."""
    acted: float
    """An agent's first message of the walk after that."""
    proposed: float
    """A view without the victim was proposed."""


def one(kind: str, seed: int, zygote: Path) -> Answered:
    """One job with one fault, and when it was answered."""
    strike, num_hosts = STRIKES[kind]
    after = 20 + random.Random(seed).randrange(10)
    struck = _struck.run(
        ["--steps", str(after + 60)],
        strike,
        after_step=after,
        num_hosts=num_hosts,
        zygote=zygote,
        tables=TABLES,
    )
    answer = answered(struck)
    if answer is None:
        raise SystemExit(f"{kind}: the job ended without the fault or without an answer to it")
    return answer


def answered(struck: _struck.Struck) -> Answered | None:
    """When the agents answered; None when they did not, or nothing was done to the job."""
    rows = struck.rows
    seen = [
        row["mono_ns"]
        for row in rows["health"]
        if row["fault"] == "GPU_FAIL_STOP" and row["subject_rank"] == _struck.VICTIM
    ]
    acted = [
        row["mono_ns"]
        for row in rows["messages"]
        if row["rank"] >= _struck.NUM_RANKS and row["direction"] == "send"
        and seen and row["mono_ns"] >= min(seen)
    ]  # fmt: skip
    proposed = [
        row["mono_ns"]
        for row in rows["transitions"]
        if row["phase"] == "proposed"
        and _struck.VICTIM not in [member["rank"] for member in row["members"]]
        and row["members"]
    ]
    if not struck.at_ns or not acted or not proposed:
        return None
    return Answered(*((min(at) - struck.at_ns) / 1e6 for at in (seen, acted, proposed)))


def held(seconds: float, zygote: Path) -> tuple[int, int]:
    """A job whose ranks hold their interpreter locks in turn; holds, and members lost."""
    steps = 10_000_000
    struck = _struck.run(
        ["--steps", str(steps), "--seconds", str(seconds), "--hold-every", str(HOLD_EVERY)],
        None,
        after_step=0,
        num_hosts=2,
        zygote=zygote,
        tables=(*TABLES, "steps"),
    )
    last = max(row["step"] for row in struck.rows["steps"])
    lost = [
        member
        for row in struck.rows["membership"]
        if row["reason"] in ("failed", "stopped")
        for member in row["departed"]
    ]
    suspected = [row for row in struck.rows["health"] if row["fault"] == "GPU_FAIL_STOP"]
    return last // HOLD_EVERY, len(lost) + len(suspected)


def main(argv: list[str]) -> int:
    options = _harness.parser(__doc__, repeats=REPEATS)
    options.add_argument("--hold-seconds", type=float, default=HOLD_SECONDS)
    args = _harness.parse(options, argv)
    with Zygote() as zygote:
        found = measure(args, zygote.path)
        seconds = 10.0 if args.quick else args.hold_seconds
        holds, false = held(seconds, zygote.path)
    acted = {kind: [answer.acted for answer in answers] for kind, answers in found.items()}
    p95 = {kind: round(percentile(ms, 0.95), 1) for kind, ms in acted.items()}
    return _harness.report(
        _harness.Result(
            name="detection",
            figure=p95 | {"false suspicions": false},
            unit="ms from the signal to the first message of the walk that answers it, p95",
            target=LIMITS_MS | {"false suspicions": 0},
            holds=not false and all(p95[kind] <= limit for kind, limit in LIMITS_MS.items()),
            spread={kind: spread_of(answers) for kind, answers in found.items()},
            notes=[f"{holds} holds of 1 s in {seconds:.0f} s, {false} members lost or suspected"],
        ),
        args,
        argv,
    )


def spread_of(answers: list[Answered]) -> dict[str, object]:
    """Median, p95 and maximum of each moment, in ms."""
    told = {
        name: "/".join(f"{percentile(ms, share):.1f}" for share in (0.5, 0.95, 1.0))
        for name, ms in zip(Answered._fields, map(list, zip(*answers, strict=True)), strict=True)
    }
    return {f"{name} (median/p95/max)": text for name, text in told.items()} | {
        "jobs": len(answers)
    }


def measure(args: argparse.Namespace, zygote: Path) -> dict[str, list[Answered]]:
    """All three faults, in turn."""
    seeds = iter(range(1_000_000))
    arms = {kind: (lambda kind=kind: one(kind, next(seeds), zygote)) for kind in STRIKES}
    return _harness.alternate(arms, 1 if args.quick else args.repeats)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
