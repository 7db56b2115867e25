"""From a fault to the agents' first action: a rank killed, a rank stopped, a whole host lost.

Four ranks whose matrix products fill the processors, and one fault a job, at a random moment of a random
step. The first action is the first proposal of a view without the victim (its row's clock; the processes
share CLOCK_MONOTONIC). False suspicions: members lost in jobs in which every few steps a rank holds its
interpreter lock for a second and nothing else is wrong.
"""

from __future__ import annotations

import argparse
import random
import sys
from pathlib import Path

from benchmarks import _harness, _struck
from benchmarks._stats import percentile
from cascade_runtime.agent.zygote_process import Zygote

LIMITS_MS = {"SIGKILL": 50.0, "SIGSTOP": 150.0, "host lost": 400.0}
TARGET = "p95 at most 50 ms (SIGKILL), 150 ms (SIGSTOP), 400 ms (host lost); no false suspicion"
STRIKES = {
    "SIGKILL": (_struck.kill_rank, 1),
    "SIGSTOP": (_struck.stop_rank, 1),
    "host lost": (_struck.kill_host, 4),
}
REPEATS = 25
HOLD_SECONDS = 600.0
HOLD_EVERY = 40
TABLES = ("transitions", "membership", "health")


def one(kind: str, seed: int, zygote: Path) -> float:
    """One job with one fault; ms to the first proposal without the victim."""
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
    proposed = [
        row["mono_ns"]
        for row in struck.rows["transitions"]
        if row["phase"] == "proposed"
        and _struck.VICTIM not in [member["rank"] for member in row["members"]]
        and row["members"]
    ]
    if not struck.at_ns or not proposed:
        raise SystemExit(f"{kind}: the job ended without the fault or without an answer to it")
    return (min(proposed) - struck.at_ns) / 1e6


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
    p95 = {kind: round(percentile(ms, 0.95), 1) for kind, ms in found.items()}
    return _harness.report(
        _harness.Result(
            name="detection",
            figure=p95 | {"false suspicions": false},
            unit="ms from the signal to the first proposal of a view without the victim, p95",
            target=LIMITS_MS | {"false suspicions": 0},
            holds=not false and all(p95[kind] <= limit for kind, limit in LIMITS_MS.items()),
            spread={
                kind: {
                    "median": round(percentile(ms, 0.5), 1),
                    "max": round(max(ms), 1),
                    "jobs": len(ms),
                }
                for kind, ms in found.items()
            },
            notes=[f"{holds} holds of 1 s in {seconds:.0f} s, {false} members lost or suspected"],
        ),
        args,
        argv,
    )


def measure(args: argparse.Namespace, zygote: Path) -> dict[str, list[float]]:
    """All three faults, in turn."""
    seeds = iter(range(1_000_000))
    arms = {kind: (lambda kind=kind: one(kind, next(seeds), zygote)) for kind in STRIKES}
    return _harness.alternate(arms, 1 if args.quick else args.repeats)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
