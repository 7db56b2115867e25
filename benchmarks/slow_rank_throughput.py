"""How fast the others go on when one of four ranks is six times as slow, against lock-step.

The same job, data and policy twice, but that cohorts may part in ours. Rate: steps a second of the fast
ranks from the slow rank's first slow step to the end, with all that it takes to notice. Held-out loss at
equal samples (rank-steps, all of one batch size) over seeds.
"""

from __future__ import annotations

import argparse
import itertools
import json
import shutil
import statistics
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks import _harness
from benchmarks._slow_job import SLOW, SLOW_AFTER, TIMES
from benchmarks._stats import median, ratio
from cascade_runtime.agent.launcher import Launcher, make_config
from cascade_runtime.agent.zygote_process import Zygote
from cascade_runtime.vocabulary import policy as policy_module
from collector.trace.trace_folder import open_trace

TARGET = "at least 2 x lock-step, every update of the slow rank applied everywhere, loss within 2 deviations"
TIMES_LOCK_STEP = 2.0
DEVIATIONS = 2.0
ONSET_MS = 400.0
ONSET_STEPS = 3
NUM_RANKS = 4
RANK_STEPS = 720
JOB = Path(__file__).with_name("_slow_job.py")
ROOT = Path(__file__).parents[1]
DEFAULT = Path(policy_module.__file__).parent / "policies" / "default.toml"


@dataclass(frozen=True)
class Run:
    """One job."""

    rate: float
    """Steps a second of the fast ranks while one is slow."""
    loss: float
    rank_steps: int
    unapplied: int
    """Updates of the slow rank that somebody did not apply, counted for each member."""
    slow_updates: int
    """That it made by itself."""
    onset_ms: float | None
    """To the healthy ranks' first step below STRONG; None where all stayed in STRONG."""
    step_ms: float
    """The median step before the onset."""


def run(seed: int, zygote: Path, *, split: bool, rank_steps: int) -> Run:
    """Train once."""
    folder = Path(tempfile.mkdtemp(prefix="slow-"))
    try:
        policy = folder / "policy.toml"
        text = DEFAULT.read_text()
        for was in ("split = false", "split = true"):
            text = text.replace(was, f"split = {str(split).lower()}")
        policy.write_text(text)
        words = ["--seed", seed, "--rank-steps", rank_steps, "--folder", folder]
        config = make_config(
            [str(JOB), *map(str, words)],
            num_ranks=NUM_RANKS,
            trace_dir=folder / "trace",
            policy=str(policy),
            env={"PYTHONPATH": str(ROOT)},
            zygote=zygote,
        )
        outcome = Launcher(config).run()
        shutil.rmtree(config.run_dir, ignore_errors=True)
        if outcome.exit_code or len(outcome.finished) != NUM_RANKS:
            raise SystemExit(f"the job did not end well: {outcome}")
        told = [json.loads((folder / f"rank{r}.json").read_text()) for r in range(NUM_RANKS)]
        with open_trace(folder / "trace") as trace:
            steps, updates = (trace.table(t).to_pylist() for t in ("steps", "updates"))
        return judged(steps, updates, told)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def judged(
    steps: list[dict[str, Any]], updates: list[dict[str, Any]], told: list[dict[str, Any]]
) -> Run:
    """What one job's rows say."""
    fast = [r for r in range(NUM_RANKS) if r != SLOW]
    begins = [s for s in steps if s["rank"] == SLOW and s["phase"] == "begin"]
    onset_ns = min(s["mono_ns"] for s in begins if s["step"] == SLOW_AFTER + 1)
    ends = {r: sorted(_ends(steps, r)) for r in fast}
    rates, before = [], []
    for told_ends in ends.values():
        later = [at for at, _ in told_ends if at > onset_ns]
        rates.append((len(later) - 1) / (later[-1] - later[0]) * 1e9)
        earlier = [at for at, _ in told_ends if at <= onset_ns]
        before += [b - a for a, b in itertools.pairwise(earlier[5:])]
    firsts = [next((at for at, regime in e if regime == "CAUSAL"), None) for e in ends.values()]
    found = [at for at in firsts if at is not None]
    params = [u for u in updates if u["object"].startswith("params/")]
    # A rank that is in the middle of a step when the others reach the end makes that one more, alone.
    last = min(max((u["epoch"] for u in params if u["rank"] == r), default=0) for r in fast)
    own = {_dot(u) for u in params if _is_of_slow(u) and u["rank"] == SLOW and u["epoch"] <= last}
    missing = [
        dot
        for rank in fast
        for dot in own - {_dot(u) for u in params if _is_of_slow(u) and u["rank"] == rank}
    ]
    return Run(
        rate=median(rates),
        loss=told[0]["loss"],
        rank_steps=sum(t["steps"] for t in told),
        unapplied=len(missing),
        slow_updates=len(own),
        onset_ms=(max(found) - onset_ns) / 1e6 if len(found) == len(fast) else None,
        step_ms=median(before) / 1e6,
    )


def _ends(steps: list[dict[str, Any]], rank: int) -> list[tuple[int, str]]:
    return [(s["mono_ns"], s["regime"]) for s in steps if s["rank"] == rank and s["phase"] == "end"]


def _dot(update: dict[str, Any]) -> tuple[int, int]:
    return update["origin_incarnation"], update["counter"]


def _is_of_slow(update: dict[str, Any]) -> bool:
    return update["action"] == "applied" and update["origin_rank"] == SLOW


def main(argv: list[str]) -> int:
    args = _harness.parse(_harness.parser(__doc__), argv)
    with Zygote() as zygote:
        found = measure(args, zygote.path)
    return _harness.report(judge(found), args, argv)


def measure(args: argparse.Namespace, zygote: Path) -> dict[str, list[Run]]:
    """Each arm once a seed."""
    rank_steps = 300 if args.quick else RANK_STEPS

    def arm(split: bool) -> Callable[[], Run]:
        seeds = iter(range(1, 1_000_000))
        return lambda: run(next(seeds), zygote, split=split, rank_steps=rank_steps)

    arms = {"lock-step": arm(False), "ours": arm(True), "ours again": arm(True)}
    return _harness.alternate(arms, 1 if args.quick else args.repeats)


def judge(found: dict[str, list[Run]]) -> _harness.Result:
    """Rates, updates and losses against the target."""
    ours, theirs = found["ours"], found["lock-step"]
    times = ratio([r.rate for r in ours], [r.rate for r in theirs])
    far = deviations([r.loss for r in ours], [r.loss for r in theirs])
    lost = sum(r.unapplied for r in ours)
    made = sum(r.slow_updates for r in ours)
    applied_all = lost == 0 and all(r.slow_updates for r in ours)
    figure = {
        "times lock-step": round(times, 2),
        "updates not applied": lost,
        "loss, deviations apart": None if far is None else round(far, 2),
    }
    onsets = [r.onset_ms for r in (*ours, *found["ours again"])]
    known = [o for o in onsets if o is not None]
    step_ms = median([r.step_ms for r in ours])
    limit_ms = max(ONSET_MS, ONSET_STEPS * step_ms)
    return _harness.Result(
        name="slow_rank_throughput",
        figure=figure,
        unit=f"fast ranks' steps a second over lock-step's, one of {NUM_RANKS} ranks {TIMES:.0f} x slower",
        target={"times lock-step": TIMES_LOCK_STEP, "updates not applied": 0,
                "loss, deviations apart": DEVIATIONS},
        holds=times >= TIMES_LOCK_STEP and applied_all and far is not None and far <= DEVIATIONS,
        against={"lock-step, steps/s": round(median([r.rate for r in theirs]), 2),
                 "ours, steps/s": round(median([r.rate for r in ours]), 2)},
        spread={
            **{f"{name}, steps/s": [round(r.rate, 1) for r in runs] for name, runs in found.items()},
            **{f"{name}, loss": [round(r.loss, 4) for r in runs] for name, runs in found.items()},
            "rank-steps": [r.rank_steps for r in (*ours, *theirs)],
        },
        notes=[
            f"{made} updates that the slow rank made by itself, {lost} of them not applied by somebody",
            f"a step takes {step_ms:.0f} ms before; from the first slow step to the last healthy rank's "
            f"first step in CAUSAL: {', '.join(f'{o:.0f}' for o in sorted(known)) or 'none'} ms, where "
            f"the design wants at most {limit_ms:.0f} ms"
            + ("" if len(known) == len(onsets) else f" ({len(onsets) - len(known)} stayed in STRONG)"),
        ],
    )  # fmt: skip


def deviations(ours: Sequence[float], theirs: Sequence[float]) -> float | None:
    """How far the means are apart, in pooled standard deviations; None of one run each."""
    if min(len(ours), len(theirs)) < 2:
        return None
    pooled = ((statistics.variance(ours) + statistics.variance(theirs)) / 2) ** 0.5
    apart = abs(statistics.mean(ours) - statistics.mean(theirs))
    return apart / pooled if pooled else (0.0 if apart == 0 else float("inf"))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
