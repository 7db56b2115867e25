"""Wheel steps over 64 ranks and 1e8 rows: until the old picture is stretched, until the sharp one is there.

Thirty steps a round, from the whole run down to a few seconds and out again, about another moment each
round. Each step waits for the sharp frame of the one before, and a little longer.
"""

from __future__ import annotations

import sys
from typing import Any, NamedTuple

from benchmarks import _harness
from benchmarks._browser import SIZE, chromium, page_of, wait_for
from benchmarks._load import Failed
from benchmarks._replayed import Replayed, add_options
from benchmarks._stats import median, p95, percentile

LIMIT_MS = 100.0
TARGET = f"sharp after p95 {LIMIT_MS:.0f} ms; stretched after a median of 16 ms is hoped for"
NUM_STEPS = 30
DELTA = 200
"""Of one step: exp(0.5), a window of three fifths."""

PAUSE_MS = 60
_SETTLED = "() => window.bench.frames.length && window.bench.frames.at(-1).sharp"
_STEPPED = """(before) => {
  const { wheels, frames } = window.bench;
  if (wheels.length <= before) return null;
  const { at, frames: from } = wheels[before];
  const after = frames.slice(from).filter((frame) => frame.drawn >= at);
  const sharp = after.find((frame) => frame.sharp);
  return sharp ? { first: after[0].seen - at, sharp: sharp.seen - at, span: sharp.b - sharp.a } : null;
}"""


class Step(NamedTuple):
    """One turn of the wheel; ms after it, and the window that it led to."""

    first_ms: float
    sharp_ms: float
    span_s: float


def main(argv: list[str]) -> int:
    options = _harness.parser(__doc__)
    add_options(options)
    args = _harness.parse(options, argv)
    with Replayed(args) as replay, chromium() as browser:
        t1_ns = replay.get("pulse")["t1_ns"]
        found: list[list[Step]] = []
        with page_of(browser, f"{replay.run_url}?a=0&b={t1_ns}") as page:
            wait_for(page, _SETTLED)
            for number in range(2 if args.quick else args.repeats):
                print(f"round {number + 1}", file=sys.stderr, flush=True)
                found.append(one(page, 0.35 + 0.11 * number))
        notes = replay.notes()
    return _harness.report(judge(found, notes), args, argv)


def one(page: Any, place: float) -> list[Step]:
    """Thirty steps at a place of the canvas (0 to 1): half of them in, half out."""
    box = page.locator("canvas.ct-overlay").bounding_box()
    if box is None:
        raise Failed("the timeline is not on screen")
    page.mouse.move(box["x"] + box["width"] * place, min(box["y"] + 200, SIZE["height"] - 20))
    page.keyboard.down("Control")
    steps = []
    for number in range(NUM_STEPS):
        before = page.evaluate("window.bench.wheels.length")
        page.mouse.wheel(0, -DELTA if number < NUM_STEPS // 2 else DELTA)
        took = wait_for(page, _STEPPED, before)
        steps.append(Step(took["first"], took["sharp"], took["span"] / 1e9))
        page.wait_for_timeout(PAUSE_MS)
    page.keyboard.up("Control")
    return steps


def judge(found: list[list[Step]], notes: list[str]) -> _harness.Result:
    """p95 of all steps to the sharp frame."""
    steps = [step for one_round in found for step in one_round]
    sharp = [step.sharp_ms for step in steps]
    figure = {
        "stretched, median": round(median([step.first_ms for step in steps]), 1),
        "sharp, p95": round(p95(sharp), 1),
    }
    spans = [step.span_s for step in steps]
    slow = sorted(steps, key=lambda step: -step.sharp_ms)[:5]
    worst = ", ".join(f"{step.sharp_ms:.0f} ms at {step.span_s:.3g} s" for step in slow)
    notes = [
        *notes,
        f"{len(steps)} steps, windows of {min(spans):.3g} to {max(spans):.3g} s; sharp after a median "
        f"of {median(sharp):.0f} ms, p99 {percentile(sharp, 0.99):.0f} ms; worst: {worst}",
    ]
    return _harness.Result(
        name="zoom",
        figure=figure,
        unit="ms from the wheel to the frame",
        target={"sharp, p95": LIMIT_MS},
        holds=figure["sharp, p95"] < LIMIT_MS,
        spread={"sharp, p95": [round(p95([s.sharp_ms for s in steps]), 1) for steps in found]},
        notes=notes,
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
