"""Rows a second of the whole analysis, all rules, of a run in CAUSAL of 512 ranks, on one core.

The run is made in memory (benchmarks/_causal_run.py says how); loading a trace is not counted, converting
its columns is. One size after the other shows the growth: its exponent is the slope of the times over the
sizes in logarithms, 1 where it is linear. ``spread``: the rates of the repeats at the middle size.
"""

from __future__ import annotations

import os
import resource
import sys
import time

import numpy as np

from benchmarks import _harness
from benchmarks._causal_run import Shape, in_memory
from benchmarks._in_memory import InMemory

TARGET = "10 M rows/s on one core"
LEAST = 10.0
NUM_RANKS = 512
SIZES = (100_000, 300_000, 1_000_000, 3_000_000, 10_000_000)
QUICK_SIZES = (5_000, 10_000, 20_000)
QUICK_RANKS = 32


def main(argv: list[str]) -> int:
    """Measures every size; 0 when the rate at the largest is high enough."""
    args = _harness.parse(_harness.parser(__doc__), argv)
    ranks, sizes = (QUICK_RANKS, QUICK_SIZES) if args.quick else (NUM_RANKS, SIZES)
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    once(in_memory(Shape.of_rows(QUICK_RANKS, QUICK_SIZES[0])))  # compiled
    again = in_memory(Shape.of_rows(ranks, sizes[len(sizes) // 2]))
    repeats = [once(again) for _ in range(2 if args.quick else args.repeats)]
    del again
    found = []
    for size in sizes:
        found.append(once(in_memory(Shape.of_rows(ranks, size))))
        print(f"{found[-1][0]:,} rows in {found[-1][1]:.2f} s", file=sys.stderr, flush=True)
    return _harness.report(judge(found, repeats, ranks), args, argv)


def once(source: InMemory) -> tuple[int, float]:
    """(rows, seconds) of one analysis.

    Raises:
        AssertionError: it did not answer ok.
    """
    from analyzer import analyze

    began = time.perf_counter()
    report = analyze(source).report
    took = time.perf_counter() - began
    assert report.verdict == "ok", [c for c in report.checks if c.verdict != "ok"]
    return source.num_rows, took


def exponent(found: list[tuple[int, float]]) -> float:
    """The slope of log(time) over log(rows)."""
    rows, seconds = np.log([f[0] for f in found]), np.log([f[1] for f in found])
    return float(np.polyfit(rows, seconds, 1)[0])


def judge(
    found: list[tuple[int, float]], repeats: list[tuple[int, float]], ranks: int
) -> _harness.Result:
    """The rate at the largest size must reach the target."""
    rows, seconds = found[-1]
    rate = rows / seconds / 1e6
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return _harness.Result(
        name="analyze_rate",
        figure={
            "M rows/s": round(rate, 3),
            "growth exponent": round(exponent(found), 3),
            "peak bytes/row": round(peak / rows),
        },
        unit="1e6 rows a second; slope of log time over log rows; bytes, the made trace included",
        target={"M rows/s": LEAST},
        holds=rate >= LEAST,
        spread={"M rows/s": [round(n / s / 1e6, 3) for n, s in repeats]},
        notes=[
            f"{ranks} ranks; " + "; ".join(f"{n:,} rows in {s:.2f} s" for n, s in found),
        ],
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
