"""All-in cost of one record in a training loop, nothing deferred in the job.

Each step emits what a DDP job emits in STRONG: a begin, a read of every object, each bucket's
collective entered and done, an update issued and applied of every object, an end. Before each step the
loop copies more memory than the processor's caches hold, as a training step does, so that no record is
written by a warm cache's grace (``--work-mb 0`` shows the difference). Two ways of timing:

- p50, p99: every call by itself, less the cost of reading the timer, over all records (a call that
  writes several counts as so many of its share);
- average: a step's calls together, ``set_step`` too, divided by their number.

``against`` holds what one writes by hand to survive a SIGKILL (a JSON line and a ``write`` a record)
and a method that does nothing, which is what any Python call costs in this loop on this machine.
"""

from __future__ import annotations

import functools
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks import _harness
from benchmarks._stats import median, percentile, ratio, ratio_upper
from cascade_runtime.recorder import Recorder
from cascade_runtime.vocabulary.identity import Actor, Dot

TARGET = "p50 at most 1 us, p99 at most 5 us a record"
TARGET_US = {"p50": 1.0, "p99": 5.0}
NUM_OBJECTS = 6  # 100 MB of parameters in pieces of 25 MB, buffers, optim
NUM_BUCKETS = 4
NAMES = [f"params/{i}" for i in range(NUM_OBJECTS)]
SIZES = [26_214_400] * NUM_OBJECTS
WARM_UP_STEPS = 10
QUICK_STEPS = 4
RUN_ID = "run-0123456789ab"

TimeCall = Callable[[str, Callable[..., Any], tuple[Any, ...], int], Any]
"""Calls what it is given: kind of record, method, values, number of records that it writes."""


@dataclass
class Sample:
    """Microseconds of one run."""

    calls: dict[str, list[float]] = field(default_factory=dict)
    """Each record's share of its call, by kind."""
    averages: list[float] = field(default_factory=list)
    """A record's share of each step that was timed as a whole."""

    def all_calls(self) -> list[float]:
        """Every timed call, whatever its kind."""
        return [us for calls in self.calls.values() for us in calls]


class JsonLines:
    """The recorder's hot methods by hand: one JSON line and one write a record."""

    def __init__(self, folder: Path) -> None:
        self._seq = 0
        self._step = 0
        self._fd = os.open(folder / "events.jsonl", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        for table in ("steps", "entered", "done"):
            setattr(self, table, functools.partial(self._line, table))

    def set_step(self, step: int) -> None:
        """The training step that later lines carry."""
        self._step = step

    def reads(self, names: Any, use: str, dots: Any, version: int) -> None:
        for name, dot in zip(names, dots, strict=True):
            self._line("reads", name, use, dot, version)

    def updates(
        self, action: str, names: Any, dots: Any, version: int, deps: Any, sizes: Any
    ) -> None:
        for name, dot, size in zip(names, dots, sizes, strict=True):
            self._line("updates", action, name, dot, version, deps, size)

    def _line(self, table: str, *values: Any) -> int:
        seq = self._seq
        row = [table, RUN_ID, 0, 0, seq, "world", 0, "STRONG", self._step]
        row += [time.time_ns(), time.monotonic_ns()]
        row += [[v.rank, v.incarnation, v.counter] if isinstance(v, Dot) else v for v in values]
        os.write(self._fd, json.dumps(row).encode() + b"\n")
        self._seq = seq + 1
        return seq

    def close(self) -> None:
        """Nothing is held back."""
        os.close(self._fd)


class Nothing:
    """Methods that return at once."""

    def __init__(self, _folder: Path) -> None:
        pass

    def call(self, *_values: Any) -> int:
        """Take the values and return."""
        return 0

    set_step = steps = reads = updates = entered = done = close = call


def make_recorder(folder: Path) -> Recorder:
    return Recorder(folder, RUN_ID, Actor(0, 0))


def run_step(recorder: Any, step: int, call: TimeCall) -> int:
    """One step's records; returns how many."""
    recorder.set_step(step)
    dots = [Dot(0, 0, step * NUM_OBJECTS + i + 1) for i in range(NUM_OBJECTS)]
    call("steps", recorder.steps, ("begin",), 1)
    call("reads", recorder.reads, (NAMES, "forward", dots, step), NUM_OBJECTS)
    seqs = []
    for b in range(NUM_BUCKETS):
        cseq = step * NUM_BUCKETS + b
        bucket = ("a1b2c3d4e5f60718", cseq, "all_reduce", f"bucket/{b}", 26_214_400, "float32")
        seqs.append(call("entered", recorder.entered, bucket, 1))
    call("updates", recorder.updates, ("issued", NAMES, dots, step + 1, [], SIZES), NUM_OBJECTS)
    for seq in seqs:
        call("done", recorder.done, (seq, time.monotonic_ns()), 1)
    call("updates", recorder.updates, ("applied", NAMES, dots, step + 1, [], SIZES), NUM_OBJECTS)
    call("steps", recorder.steps, ("end", 2.25, 32), 1)
    return 2 + 3 * NUM_OBJECTS + 2 * NUM_BUCKETS


def timer_cost_ns() -> float:
    """What timing a call adds: a reading before and one after."""
    clock = time.perf_counter_ns
    costs = []
    for _ in range(20_000):
        before = clock()
        costs.append(clock() - before)
    return median(costs)


def run(make: Callable[[Path], Any], num_steps: int, work_bytes: int, parent: Path) -> Sample:
    """Steps timed call by call and steps timed as a whole, taking turns."""
    sample, clock, overhead = Sample(), time.perf_counter_ns, timer_cost_ns()
    source, target = bytearray(work_bytes), bytearray(work_bytes)

    def timed(kind: str, method: Callable[..., Any], values: tuple[Any, ...], rows: int) -> Any:
        before = clock()
        returned = method(*values)
        ns = clock() - before - overhead
        sample.calls.setdefault(kind, []).extend([max(ns, 0.0) / 1000 / rows] * rows)
        return returned

    def plain(_kind: str, method: Callable[..., Any], values: tuple[Any, ...], _rows: int) -> Any:
        return method(*values)

    def nothing(_kind: str, _method: Callable[..., Any], _values: Any, _rows: int) -> Any:
        return 0

    with tempfile.TemporaryDirectory(dir=parent) as folder:
        recorder = make(Path(folder))
        for step in range(WARM_UP_STEPS):
            run_step(recorder, step, plain)
        for step in range(WARM_UP_STEPS, WARM_UP_STEPS + num_steps):
            target[:] = source  # the step's own work
            if step % 2:
                run_step(recorder, step, timed)
                continue
            before = clock()
            num_records = run_step(recorder, step, plain)
            middle = clock()
            run_step(recorder, step, nothing)  # what making the arguments costs
            ns = (middle - before) - (clock() - middle)
            sample.averages.append(ns / num_records / 1000)
        recorder.close()
    return sample


def main(argv: list[str]) -> int:
    options = _harness.parser(__doc__)
    options.add_argument("--steps", type=_harness.at_least(100), default=200, help="steps a round")
    options.add_argument("--work-mb", type=int, default=64, help="memory copied before each step")
    options.add_argument("--dir", type=Path, default=Path(tempfile.gettempdir()), help="where to")
    args = _harness.parse(options, argv)
    num_steps = QUICK_STEPS if args.quick else args.steps

    def arm(make: Callable[[Path], Any]) -> Callable[[], Sample]:
        return lambda: run(make, num_steps, args.work_mb << 20, args.dir)

    arms = {
        "ours": arm(make_recorder),
        "json lines": arm(JsonLines),
        "nothing": arm(Nothing),
        "ours again": arm(make_recorder),
    }
    found = _harness.alternate(arms, args.repeats)
    return _harness.report(judge(found, args.dir), args, argv)


def judge(found: dict[str, list[Sample]], folder: Path) -> _harness.Result:
    """The figures of all rounds; the target must hold over all calls of all rounds together."""
    ours = found["ours"] + found["ours again"]
    averages = {name: [median(s.averages) for s in samples] for name, samples in found.items()}
    equal = ratio(averages["ours"], averages["ours again"])
    versus = averages["ours"], averages["json lines"]
    figure = figures(ours)
    notes = [f"{kind}: {by_kind(ours, kind)} us" for kind in ours[0].calls]
    notes += [
        f"average over that of JSON lines: {ratio(*versus):.3f}, 95 % below {ratio_upper(*versus):.3f}",
        f"average over that of the same thing again: {equal:.3f}",
        f"file system: {_harness.file_system(folder)}",
    ]
    return _harness.Result(
        name="emit",
        figure=figure,
        unit="us a record",
        target=TARGET_US,
        holds=all(figure[key] <= limit for key, limit in TARGET_US.items()),
        against={
            "json line and write": figures(found["json lines"]),
            "a method that does nothing": figures(found["nothing"]),
        },
        spread={
            "p50": between([percentile(s.all_calls(), 0.50) for s in ours]),
            "p99": between([percentile(s.all_calls(), 0.99) for s in ours]),
            "average": between(averages["ours"] + averages["ours again"]),
            "a/a": round(equal, 3),
        },
        notes=notes,
    )


def figures(samples: list[Sample]) -> dict[str, float]:
    calls = [us for s in samples for us in s.all_calls()]
    found = {"p50": percentile(calls, 0.50), "p99": percentile(calls, 0.99)}
    found["average"] = median([us for s in samples for us in s.averages])
    return {name: round(us, 3) for name, us in found.items()}


def by_kind(samples: list[Sample], kind: str) -> str:
    calls = [us for s in samples for us in s.calls[kind]]
    return ", ".join(f"p{p} {percentile(calls, p / 100):.2f}" for p in (50, 90, 99, 99.9))


def between(values: list[float]) -> list[float]:
    """The smallest and the largest."""
    return [round(min(values), 3), round(max(values), 3)]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
