"""Attached against plain DistributedDataParallel: step time and CPU time, in the same processes.

**Why it is fair.** One job of 4 ranks, started as ``cascade run`` starts one, holds the attached model and
two plain ones of the same shape, seed and data, and gives them turns of 50 steps, the order reversed from
round to round. A neighbour's load and the processor's mood so hit all arms; two jobs in turn would differ
in addresses, placement and start-up besides. What one job could hide is taken care of:

- our agent is stopped (SIGSTOP) during plain blocks, so plain steps do not pay for it; in our blocks its
  CPU time counts as ours;
- our threads stay in the processes while plain blocks run: what they use is measured standing still,
  before ``attach`` and after, and taken off plain's CPU time, and off its step time as if no core were
  ever idle;
- ours is always the block between the two plain ones and is compared with their geometric mean: a drift
  cancels. The two plain ones compared with each other are the A/A pair;
- a step's time is the mean over a block, since a digest falls on some steps only, which a median hides;
- the model has no buffers: plain DDP broadcasts them before each forward while our hook does it beside the
  gradients, which would count in our favour;
- every rank has one thread for its mathematics, and nothing is computed but the step.

The share of communication is checked in the run: a plain step less the same step under ``no_sync``, over
the plain step. The job must be in STRONG with all ranks at the end, and must have written all of a step's rows
(digests too), or the run is void.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import shutil
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from benchmarks import _harness
from benchmarks._stats import median, ratio, ratio_upper
from cascade_runtime.agent.launcher import Launcher, make_config
from cascade_runtime.agent.zygote_process import Zygote
from cascade_runtime.vocabulary import spool_format

ROOT = Path(__file__).parents[1]
JOB = Path(__file__).with_name("_overhead_job.py")
NUM_RANKS = 4
MIN_SHARE = 0.30
NUM_ROUNDS = 8
NUM_STEPS = 50
FULL = {"width": 1024, "depth": 24, "batch": 48}
"""25.2 million parameters in layers of 1 million."""
EVERY_STEP = ("steps", "reads", "collectives", "collective_done", "updates", "digests")
"""Kinds of rows that must have been written at each attached step."""
QUICK = {"width": 128, "depth": 2, "batch": 8}


class Failed(Exception):
    """The job did not run as it must."""


@dataclass
class Arm:
    """What one arm did, a number a block."""

    rank0_ms: list[float]
    """Mean wall time of a step at rank 0."""
    slowest_ms: list[float]
    """Mean over the steps of the slowest rank's time."""
    cpu_ms: list[float]
    """CPU time a step of all ranks, and of the agent."""
    agent_ms: list[float]


def run_job(
    mode: str, sizes: dict[str, int], *, zygote: Path | None = None
) -> list[dict[str, Any]]:
    """Starts the job and gives what each rank told."""
    folder = Path(tempfile.mkdtemp(prefix="overhead-"))
    try:
        options = [f"--{name}={number}" for name, number in sizes.items()]
        config = make_config(
            [str(JOB), *options, f"--out={folder}"],
            num_ranks=NUM_RANKS,
            mode=mode,
            trace_dir=folder / "trace",
            # Telemetry that fails and is skipped would make us look cheap.
            env={"PYTHONPATH": str(ROOT), "CASCADE_RERAISE": "1"},
            zygote=zygote,
        )
        outcome = Launcher(config, stopped_agent_s=math.inf).run()  # as plain blocks last
        shutil.rmtree(config.run_dir, ignore_errors=True)
        if outcome.exit_code != 0 or len(outcome.finished) != NUM_RANKS:
            raise Failed(f"the job ended badly: {outcome}")
        told = [json.loads((folder / f"rank-{r}.json").read_text()) for r in range(NUM_RANKS)]
        told[0]["rows"] = rows_by_table(folder / "trace" / "spool" / "0-0")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    for rank, facts in enumerate(told):
        if (facts["regime"], facts["num_members"]) != ("STRONG", NUM_RANKS):
            raise Failed(f"rank {rank} was not in STRONG with all ranks at the end: {facts}")
    missing = [t for t in EVERY_STEP if told[0]["rows"][t] < told[0]["num_attached_steps"]]
    if missing:
        raise Failed(f"these tables have less than a row a step: {', '.join(missing)}")
    return told


def rows_by_table(spool: Path) -> Counter[str]:
    """How many records of each kind an actor wrote."""
    counts: Counter[str] = Counter()
    for segment in spool.glob("*.seg"):
        data = segment.read_bytes()
        counts.update(
            msgspec.msgpack.decode(record)[0]
            for record in spool_format.read_records(data)
            if not isinstance(record, spool_format.Torn)
        )
    return counts


def arm_of(told: Sequence[dict[str, Any]], name: str) -> Arm:
    """One arm's blocks, all ranks together."""
    arm = Arm([], [], [], [])
    for blocks in zip(*(facts["blocks"][name] for facts in told), strict=True):
        steps = list(zip(*(block["step_ns"] for block in blocks), strict=True))
        agent = blocks[0]["agent_cpu_ns"]
        cpu = sum(block["rank_cpu_ns"] for block in blocks) + agent
        arm.rank0_ms.append(sum(step[0] for step in steps) / len(steps) / 1e6)
        arm.slowest_ms.append(sum(max(step) for step in steps) / len(steps) / 1e6)
        arm.cpu_ms.append(cpu / len(steps) / 1e6)
        arm.agent_ms.append(agent / len(steps) / 1e6)
    return arm


def resident_cpu(told: Sequence[dict[str, Any]]) -> float:
    """CPU seconds a second that the ranks' processes use more for being attached, standing still."""
    still = [facts["still"] for facts in told]
    return sum(s["attached"]["rank"] - s["before attach"]["rank"] for s in still)


def relieve(arm: Arm, resident: float) -> None:
    """Takes off what a plain arm paid for our threads, which use ``resident`` cores."""
    arm.cpu_ms = [c - resident * ms for c, ms in zip(arm.cpu_ms, arm.rank0_ms, strict=True)]
    lost = resident / len(os.sched_getaffinity(0))
    arm.rank0_ms = [ms * (1 - lost) for ms in arm.rank0_ms]
    arm.slowest_ms = [ms * (1 - lost) for ms in arm.slowest_ms]


def between(first: Sequence[float], second: Sequence[float]) -> list[float]:
    """Geometric means of the plain blocks on either side of ours."""
    return [(a * b) ** 0.5 for a, b in zip(first, second, strict=True)]


def percent(times: float) -> float:
    """A ratio as percent more than equal."""
    return round((times - 1) * 100, 2)


def judge(name: str, limit: float, told: Sequence[dict[str, Any]], load: str) -> _harness.Result:
    """The target must hold for step time at rank 0, of the slowest rank, and for CPU time."""
    plain, ours, again, alone = (
        arm_of(told, arm) for arm in ("plain", "ours", "plain again", "alone")
    )
    resident = max(resident_cpu(told), 0.0)
    for arm in (plain, again):
        relieve(arm, resident)
    pairs = {
        "step": (ours.rank0_ms, between(plain.rank0_ms, again.rank0_ms)),
        "step, slowest rank": (ours.slowest_ms, between(plain.slowest_ms, again.slowest_ms)),
        "cpu": (ours.cpu_ms, between(plain.cpu_ms, again.cpu_ms)),
    }
    equal = {
        "step": (again.rank0_ms, plain.rank0_ms),
        "step, slowest rank": (again.slowest_ms, plain.slowest_ms),
        "cpu": (again.cpu_ms, plain.cpu_ms),
    }
    uppers = {what: percent(ratio_upper(*pair)) for what, pair in pairs.items()}
    step_ms = median(plain.rank0_ms + again.rank0_ms)
    shares = [1 - a / p for a, p in zip(alone.rank0_ms, plain.rank0_ms, strict=True)]
    share = median(shares)
    figure = {f"{what}, 95 % below": upper for what, upper in uppers.items()}
    figure |= {what: percent(ratio(*pair)) for what, pair in pairs.items()}
    still = told[0]["still"]["attached"]
    notes = [
        f"{told[0]['num_parameters']:,} parameters, {NUM_RANKS} ranks, {len(ours.rank0_ms)} rounds; "
        f"rows a step at rank 0: {rows_a_step(told[0])}",
        f"plain DDP spends {share:.0%} of a step in communication (at least {MIN_SHARE:.0%} is "
        f"required; by round {min(shares):.0%} to {max(shares):.0%})",
        f"agent: {median(ours.agent_ms):.2f} ms of CPU a step of ours, counted in cpu; standing still "
        f"{still['agent']:.2%} of a core",
        f"our threads in the ranks, standing still: {resident:.2%} of a core in all, taken off plain",
        f"ours over plain by round, step: {by_round(*pairs['step'])}; cpu: {by_round(*pairs['cpu'])} %",
        f"load average of the machine before and after (idle: 0 before, about {NUM_RANKS} after): {load}",
    ]
    if share < MIN_SHARE:
        notes.append("void: the batch is too large here for the required share of communication")
    return _harness.Result(
        name=name,
        figure=figure,
        unit="% more than plain DDP",
        target=dict.fromkeys(uppers, limit),
        holds=share >= MIN_SHARE and all(upper <= limit for upper in uppers.values()),
        against={
            "step ms": round(step_ms, 1),
            "cpu ms a step": round(median(plain.cpu_ms + again.cpu_ms), 1),
            "communication share": round(share, 3),
        },
        spread={
            **{f"a/a {what}": percent(ratio(*pair)) for what, pair in equal.items()},
            **{f"a/a {what}, 95 % below": percent(ratio_upper(*p)) for what, p in equal.items()},
            "step ms, plain": [round(f(plain.rank0_ms + again.rank0_ms), 1) for f in (min, max)],
        },
        notes=notes,
    )


def by_round(ours: Sequence[float], theirs: Sequence[float]) -> str:
    """Every round's own answer, for seeing what is noise."""
    return ", ".join(f"{percent(a / b):+.1f}" for a, b in zip(ours, theirs, strict=True))


def rows_a_step(facts: dict[str, Any]) -> str:
    rows, steps = facts["rows"], facts["num_attached_steps"]
    return ", ".join(f"{table} {rows[table] / steps:.1f}" for table in EVERY_STEP)


def load_average() -> str:
    return f"{os.getloadavg()[0]:.1f}"


def main(name: str, mode: str, limit: float, doc: str | None, argv: list[str]) -> int:
    options = _harness.parser(doc, repeats=NUM_ROUNDS)
    options.add_argument("--steps", type=_harness.at_least(2), default=NUM_STEPS, help="a block")
    options.add_argument("--batch", type=_harness.at_least(1), default=FULL["batch"], help="a rank")
    args = _harness.parse(options, argv)
    before = load_average()
    told = measure(mode, args)
    return _harness.report(judge(name, limit, told, f"{before}, {load_average()}"), args, argv)


def measure(mode: str, args: argparse.Namespace) -> list[dict[str, Any]]:
    if not args.quick:
        sizes = FULL | {"batch": args.batch, "steps": args.steps, "repeats": args.repeats}
        return run_job(mode, sizes)
    with Zygote() as zygote:  # ranks that share one import of torch
        return run_job(mode, QUICK | {"steps": 3, "repeats": 2}, zygote=zygote.path)
