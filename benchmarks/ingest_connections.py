"""1,000 agents on keep-alive connections, together 17,000 rows a second: time until an answer.

Each agent has one connection and sends one batch of 17 rows a second, at a phase of its own, as host
agents do; every agent's rows begin at another place of the recorded run (_rows.py). Latency counts from
the moment at which the timetable has a request, whatever kept it (_paced.py). A generator that was late
itself makes the run void: it would measure its own slowness, or hide the collector's.
"""

from __future__ import annotations

import random
import shutil
import sys
import tempfile
from pathlib import Path

from benchmarks import _collector, _harness
from benchmarks._load import Failed
from benchmarks._paced import Paced, PacedLoad, Plan
from benchmarks._rows import Host, meta_of, request_of, sample
from benchmarks._stats import percentile
from collector.wire.batch import MSGPACK

LIMIT_MS = 150.0
TARGET = f"p99 under {LIMIT_MS:.0f} ms, no reset, no error"
NUM_AGENTS = 1000
BATCH_ROWS = 17
PERIOD_S = 1.0
WARM_UP_S = 3.0
SECONDS = 23
"""Warm-up included."""
QUICK = {"agents": 50, "seconds": 3, "warm_up": 1.0}
MAX_LAG_MS = 20.0
"""The generator's own p99 may not be above this."""


def plans(num_agents: int, num_batches: int, seed: int) -> list[Plan]:
    """Every agent's requests and phase."""
    draw = random.Random(seed)
    made = []
    for number in range(num_agents):
        host = Host(_collector.RUN_ID, number, start=draw.randrange(len(sample().items)))
        taken = [host.take(BATCH_ROWS) for _ in range(num_batches)]
        requests = [request_of(MSGPACK, t.records) for t in taken]
        made.append(Plan(requests, [t.num_rows for t in taken], draw.uniform(0.0, PERIOD_S)))
    return made


def one(num_agents: int, seconds: int, warm_up_s: float, parent: Path, seed: int) -> Paced:
    """One run on a new data folder.

    Raises:
        Failed: not every acknowledged row is there, once.
    """
    folder = Path(tempfile.mkdtemp(prefix="bench-connections-", dir=parent))
    try:
        with (
            PacedLoad(plans, (num_agents, seconds, seed)) as load,
            _collector.Collector(folder / "data") as server,
        ):
            load.ready()
            server.put_meta(_collector.RUN_ID, meta_of(_collector.RUN_ID, num_agents))
            cpu = server.cpu_s()
            load.start(server.address, PERIOD_S, warm_up_s)
            done = load.result()
            done.server_cpu_s = server.cpu_s() - cpu
            found = server.num_rows(_collector.RUN_ID)
            if found != done.num_rows and not done.errors:
                raise Failed(f"{done.num_rows} rows were acknowledged, and {found} are there")
            server.stop()
        return done
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def main(argv: list[str]) -> int:
    options = _harness.parser(__doc__)
    options.add_argument("--agents", type=_harness.at_least(1), default=NUM_AGENTS)
    options.add_argument("--seconds", type=_harness.at_least(2), default=SECONDS)
    options.add_argument("--dir", type=Path, default=Path(tempfile.gettempdir()), help="where to")
    args = _harness.parse(options, argv)
    agents, seconds, warm_up = args.agents, args.seconds, WARM_UP_S
    if args.quick:
        agents, seconds, warm_up = QUICK["agents"], QUICK["seconds"], QUICK["warm_up"]
    runs = []
    for number in range(1 if args.quick else args.repeats):
        print(f"run {number + 1}", file=sys.stderr)
        runs.append(one(int(agents), int(seconds), warm_up, args.dir, number))
    result = judge(runs, int(agents))
    result.notes.append(f"file system: {_harness.file_system(args.dir)}")
    return _harness.report(result, args, argv)


def judge(runs: list[Paced], num_agents: int) -> _harness.Result:
    """The figures of all runs together; no reset and no error in any."""
    ms = [ms for run in runs for ms in run.latencies_ms]
    lags = [ms for run in runs for ms in run.lags_ms] or [0.0]  # no connection was ever free
    p99 = percentile(ms, 0.99)
    errors = [error for run in runs for error in run.errors]
    resets = sum(run.num_resets for run in runs)
    lag = percentile(lags, 0.99)
    void = lag > MAX_LAG_MS
    seconds = sum(run.seconds for run in runs)
    cpu = sum(run.cpu_s for run in runs) / seconds
    server = sum(run.server_cpu_s for run in runs) / seconds
    rows = sum(run.num_rows for run in runs) / seconds
    notes = [
        f"{num_agents} connections, {len(ms)} requests measured, {rows:.0f} rows a second, "
        f"collector {server:.2f} cores",
        f"p50 {percentile(ms, 0.5):.1f} ms, p90 {percentile(ms, 0.9):.1f} ms, p99.9 "
        f"{percentile(ms, 0.999):.1f} ms, max {max(ms):.1f} ms",
        f"the generator used {cpu:.2f} cores and was late by p50 {percentile(lags, 0.5):.2f} ms, "
        f"p99 {lag:.2f} ms",
    ]
    notes += [f"error: {error}" for error in errors[:3]]
    if void:
        notes.append(f"void: the generator was later than {MAX_LAG_MS:.0f} ms (p99)")
    return _harness.Result(
        name="ingest_connections",
        figure={"p99": round(p99, 1), "resets": resets, "errors": len(errors)},
        unit="ms from the timetabled sending to the answer (p99), and counts",
        target={"p99": LIMIT_MS, "resets": 0, "errors": 0},
        holds=p99 < LIMIT_MS and not errors and not resets and not void,
        spread={
            "p99": [round(p, 1) for p in sorted(percentile(r.latencies_ms, 0.99) for r in runs)]
        },
        notes=notes,
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
