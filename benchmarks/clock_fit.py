"""Hosts whose clocks are 5 ms and 20 ppm apart: the total wait after the fit, against the true one.

The same run (benchmarks/_causal_run.py) is told by true clocks and by those of 64 hosts of 8 ranks each. A
third time without what ties hosts together (no messages, no collective across hosts): there waits between
hosts must be refused.
"""

from __future__ import annotations

import sys

import pyarrow.compute as pc

from benchmarks import _harness
from benchmarks._causal_run import Shape, in_memory
from benchmarks._in_memory import InMemory
from cascade_runtime.vocabulary.report import WaitSummary

TARGET = "total wait within 5 %; unconnected refused"
MOST_PCT = 5.0
NUM_RANKS, NUM_ROWS = 512, 1_000_000
QUICK_RANKS, QUICK_ROWS = 32, 50_000
REST_NS = 300_000_000
"""Steps of a third of a second: over the run, drift parts clocks by about 2 ms."""


def main(argv: list[str]) -> int:
    """Measures; 0 when the wait is near enough and the refusal is there."""
    args = _harness.parse(_harness.parser(__doc__), argv)
    ranks, rows = (QUICK_RANKS, QUICK_ROWS) if args.quick else (NUM_RANKS, NUM_ROWS)
    true = waits(in_memory(Shape.of_rows(ranks, rows, rest_ns=REST_NS)))
    skewed = in_memory(Shape.of_rows(ranks, rows, rest_ns=REST_NS, skewed=True))
    fitted = waits(skewed)
    apart = waits(untied(skewed))
    return _harness.report(judge(true, fitted, apart), args, argv)


def waits(source: InMemory) -> WaitSummary:
    """The report's waits."""
    from analyzer import analyze

    summary: WaitSummary = analyze(source).report.waits
    return summary


def untied(source: InMemory) -> InMemory:
    """Without messages, and without collectives of more than one host."""
    rows = source.table("collectives")
    inside = pc.starts_with(rows["comm_id"], "tp/")
    return source.with_tables(
        collectives=rows.filter(inside), messages=source.table("messages").slice(0, 0)
    )


def judge(true: WaitSummary, fitted: WaitSummary, apart: WaitSummary) -> _harness.Result:
    """Near enough, and refused where nothing ties the hosts."""
    off = 100 * abs(fitted.total_rank_s / true.total_rank_s - 1)
    return _harness.Result(
        name="clock_fit",
        figure={"off by %": round(off, 2), "refused": apart.refused is not None},
        unit="% of the true total wait",
        target={"off by %": MOST_PCT, "refused": True},
        holds=off <= MOST_PCT and apart.refused is not None,
        against={"true s": true.total_rank_s, "fitted s": fitted.total_rank_s},
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
