"""How long a rank's death holds up the others, against torchft at its defaults and tuned.

From kill() to the end of the slowest survivor's first optimizer step of the new view, less a median step.
The same model, batch and processors; four ranks here, four replicas of one process there, one killed at a
random step. Tuned: the smallest of the heartbeat time-outs with which torchft evicts nobody in two minutes
of the same load without a fault (looked for first).
"""

from __future__ import annotations

import argparse
import itertools
import random
import sys
import time
from pathlib import Path

from benchmarks import _harness, _struck, _torchft
from benchmarks._stats import percentile
from cascade_runtime.agent.zygote_process import Zygote

LIMIT_MS = 250.0
SHARE = 0.2
TARGET = "p95 under 250 ms, and at most 1/5 of torchft's tuned"
REPEATS = 20
TRIES = 3
DEFAULT_MS = 5000
TIMEOUTS_MS = (100, 200, 300, 500, 1000)
QUIET_S = 120.0
STEP_S = 0.05
AFTER = 40
TABLES = ("steps", "transitions")


def ours(seed: int, zygote: Path) -> float:
    """One job of ours with one kill; ms."""
    after = AFTER + random.Random(seed).randrange(20)
    struck = _struck.run(
        ["--steps", str(after + 40)],
        _struck.KILL_RANK,
        after_step=after,
        num_hosts=1,
        zygote=zygote,
        tables=TABLES,
    )
    ends: dict[int, list[tuple[int, int]]] = {}
    for row in struck.rows["steps"]:
        if row["phase"] == "end" and row["rank"] != _struck.VICTIM:
            ends.setdefault(row["rank"], []).append((row["mono_ns"], row["epoch"]))
    stalls = []
    for told in ends.values():
        told.sort()
        before = [at for at, _ in told if at < struck.at_ns]
        steps = sorted(b - a for a, b in itertools.pairwise(before[5:]))
        first = next(at for at, epoch in told if at > struck.at_ns and epoch > 0)
        stalls.append((first - struck.at_ns - steps[len(steps) // 2]) / 1e6)
    if len(stalls) != _struck.NUM_RANKS - 1:
        raise SystemExit(f"only {len(stalls)} survivors told their steps")
    return max(stalls)


def theirs(seed: int, python: str, heartbeat_ms: int) -> float:
    """One torchft job with one kill; ms. One that did not come to it is played again.

    Raises:
        Failed: it never came to it.
    """
    after = AFTER + random.Random(seed).randrange(20)
    for attempt in range(TRIES):
        try:
            at_ns, logs = _torchft.run(
                python,
                replicas=_struck.NUM_RANKS,
                steps=after + 40,
                heartbeat_ms=heartbeat_ms,
                victim=_struck.VICTIM,
                after=after,
            )
            return _torchft.stall_ms(at_ns, logs, _struck.VICTIM)
        except _torchft.Failed as error:
            print(f"torchft, try {attempt + 1} of {TRIES}: {error}", file=sys.stderr)
    raise _torchft.Failed(f"torchft did not come to its kill in {TRIES} tries")


def tuned(python: str, seconds: float) -> tuple[int, list[str]]:
    """The smallest time-out of the list without an eviction in so many seconds, and what was seen."""
    notes = []
    for timeout_ms in TIMEOUTS_MS:
        steps = int(seconds / STEP_S)
        end = time.monotonic() + seconds
        evictions, num_steps = 0, 0
        while time.monotonic() < end:
            try:
                _, logs = _torchft.run(
                    python,
                    replicas=_struck.NUM_RANKS,
                    steps=min(steps, 600),
                    heartbeat_ms=timeout_ms,
                    victim=None,
                    after=0,
                )
            except _torchft.Failed:
                evictions += 1
                break
            for lines in logs.values():
                met = [line.members for line in lines]
                whole = met.index(_struck.NUM_RANKS) if _struck.NUM_RANKS in met else 0
                evictions += sum(members < _struck.NUM_RANKS for members in met[whole:-5])
                num_steps += len(lines)
            if evictions:
                break
        notes.append(
            f"torchft at {timeout_ms} ms: {evictions} steps with somebody evicted of {num_steps}"
        )
        if not evictions:
            return timeout_ms, notes
    return TIMEOUTS_MS[-1], notes


def main(argv: list[str]) -> int:
    options = _harness.parser(__doc__, repeats=REPEATS)
    options.add_argument(
        "--torchft",
        metavar="PYTHON",
        help="a Python with torchft-nightly; without it nothing is compared",
    )
    options.add_argument("--quiet-seconds", type=float, default=QUIET_S, help="without an eviction")
    args = _harness.parse(options, argv)
    if args.save and not args.torchft:
        options.error("a kept result needs its peer: give --torchft PYTHON")
    notes: list[str] = []
    timeout_ms = DEFAULT_MS
    if args.torchft:
        timeout_ms, notes = tuned(args.torchft, 5.0 if args.quick else args.quiet_seconds)
    with Zygote() as zygote:
        found = measure(args, zygote.path, timeout_ms)
    return _harness.report(judge(found, timeout_ms, notes), args, argv)


def measure(args: argparse.Namespace, zygote: Path, timeout_ms: int) -> dict[str, list[float]]:
    """Ours (twice, to see how far equal things differ), and the peer's at both time-outs."""
    seeds = iter(range(1_000_000))
    arms = {
        "ours": lambda: ours(next(seeds), zygote),
        "ours again": lambda: ours(next(seeds), zygote),
    }
    if args.torchft:
        arms["torchft tuned"] = lambda: theirs(next(seeds), args.torchft, timeout_ms)
        arms["torchft default"] = lambda: theirs(next(seeds), args.torchft, DEFAULT_MS)
    return _harness.alternate(arms, 1 if args.quick else args.repeats)


def judge(found: dict[str, list[float]], timeout_ms: int, notes: list[str]) -> _harness.Result:
    """p95 of ours against the limit, medians against the peer's."""
    mine = found["ours"]
    p95 = round(percentile(mine, 0.95), 1)
    peer = found.get("torchft tuned")
    holds = p95 < LIMIT_MS and peer is not None
    against = None
    if peer is not None:
        holds = holds and percentile(mine, 0.5) <= SHARE * percentile(peer, 0.5)
        against = {
            f"torchft at {timeout_ms} ms": round(percentile(peer, 0.5), 1),
            "torchft at its default": round(percentile(found["torchft default"], 0.5), 1),
            "share of tuned": round(percentile(mine, 0.5) / percentile(peer, 0.5), 3),
        }
    return _harness.Result(
        name="kill_stall",
        figure={"p95": p95, "median": round(percentile(mine, 0.5), 1)},
        unit="ms from kill() to the slowest survivor's first step without the victim, less a median step",
        target={"p95": LIMIT_MS, "share of tuned": SHARE},
        holds=holds,
        against=against,
        spread={name: [round(v, 1) for v in sorted(ms)] for name, ms in found.items()},
        notes=notes,
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
