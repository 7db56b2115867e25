"""Unique rows a second in the table mix of a recorded run, 16 clients of 500, against PostgreSQL COPY.

Both sides are durable on acknowledgement and drop duplicates, start each round with an empty store, and
get the same rows (_rows.py) in the same batches over 16 connections, each waiting for its answer before
it sends the next batch. Requests are encoded before the clock starts, on both sides down to the bytes on
the socket. After each round every row must be there, once.

Ours is ``cascade serve``, and the figure is that of the form in which host agents send (MessagePack,
zstd). PostgreSQL (_postgres.py) drops duplicates in two ways: by marks in the same transaction, and by a
primary key; the faster one is the peer, both are told. Arrow and NDJSON bodies are told beside. The peer
that is not expected to be the faster one, Arrow and NDJSON get a quarter of the rows, to save time.
"""

from __future__ import annotations

import argparse
import contextlib
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from benchmarks import _collector, _harness, _postgres
from benchmarks._load import Failed, HttpClient, Load, Sent
from benchmarks._rows import meta_of, mix
from benchmarks._stats import median, percentile, ratio, ratio_upper
from collector.wire.batch import ARROW, MSGPACK, NDJSON

TARGET = "at least 1.5 x PostgreSQL COPY and 100k rows/s"
TARGETS = {"rows/s": 100_000, "ratio": 1.5}
NUM_CLIENTS = 16
BATCH_ROWS = 500
NUM_BATCHES = 80
"""Of a client and round: 640,000 rows."""
QUICK_BATCHES = 2
SHORTER = 4
"""Arms that are told beside the figure send so many times less."""
FORMS = {"ours": MSGPACK, "ours again": MSGPACK, "ours, arrow": ARROW, "ours, ndjson": NDJSON}
PEERS: dict[str, _postgres.How] = {"postgres, marks": "marks", "postgres, primary key": "key"}


@dataclass
class Round:
    """One arm's round."""

    sent: Sent
    server_cpu_s: float
    settle_s: float = 0.0
    """From the last answer until every row was in the run's folder."""

    @property
    def rate(self) -> float:
        """Rows a second."""
        return self.sent.num_rows / self.sent.seconds


def check_count(who: str, sent: int, found: int) -> None:
    """Every acknowledged row is there once.

    Raises:
        Failed: more or fewer are.
    """
    if found != sent:
        raise Failed(f"{who}: {sent} rows were acknowledged, and {found} are there")


def ours(load: Load, parent: Path) -> Round:
    """A round of the collector, its data folder new."""
    folder = Path(tempfile.mkdtemp(prefix="bench-ingest-", dir=parent))
    try:
        with _collector.Collector(folder / "data") as server:
            server.put_meta(_collector.RUN_ID, meta_of(_collector.RUN_ID, NUM_CLIENTS))
            cpu = server.cpu_s()
            sent = load.run(server.address)
            cpu = server.cpu_s() - cpu
            check_count("the collector", sent.num_rows, server.num_rows(_collector.RUN_ID))
            begin = time.monotonic()
            server.stop()  # publishes what is not in the run's folder yet
            settle_s = time.monotonic() - begin
        check_count("the run's folder", sent.num_rows, rows_in(folder / "data"))
        return Round(sent, cpu, settle_s)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def rows_in(data: Path) -> int:
    """Rows in the run's trace folder."""
    from cascade_runtime.vocabulary.schema import EVENT_TABLES
    from collector.data_folder import run_folder
    from collector.trace.trace_folder import open_trace

    with open_trace(run_folder(data, _collector.RUN_ID)) as trace:
        return sum(trace.table(name, ["seq"]).num_rows for name in EVENT_TABLES)


def theirs(load: Load, how: _postgres.How) -> Round:
    """A round of PostgreSQL, its tables new."""
    with _postgres.Postgres(how) as server:
        cpu = server.cpu_s()
        sent = load.run(server.address)
        cpu = server.cpu_s() - cpu
        check_count("PostgreSQL", sent.num_rows, server.num_rows(_collector.RUN_ID))
        return Round(sent, cpu)


def measure(args: argparse.Namespace) -> dict[str, list[Round]]:
    """Every arm in every round."""
    num_batches = QUICK_BATCHES if args.quick else args.batches
    few = -(-num_batches // SHORTER)
    with contextlib.ExitStack() as open_loads:

        def started(load: Load) -> Load:
            load.ready()
            return open_loads.enter_context(load)

        def collector(form: str, num: int) -> Load:
            sizes = (form, NUM_CLIENTS, num, BATCH_ROWS)
            return started(Load(_collector.queues, sizes, HttpClient))

        def postgres(how: _postgres.How, num: int) -> Load:
            sizes = (how, NUM_CLIENTS, num, BATCH_ROWS)
            return started(Load(_postgres.queues, sizes, _postgres.Client))

        sizes = {MSGPACK: num_batches, ARROW: few, NDJSON: few}
        loads = {form: collector(form, num) for form, num in sizes.items()}
        peers = {
            how: postgres(how, num_batches if how == "marks" else few) for how in PEERS.values()
        }

        def our_arm(form: str) -> Callable[[], Round]:
            return lambda: ours(loads[form], args.dir)

        def their_arm(how: _postgres.How) -> Callable[[], Round]:
            return lambda: theirs(peers[how], how)

        mine = {name: our_arm(form) for name, form in FORMS.items()}
        them = {name: their_arm(how) for name, how in PEERS.items()}
        marks, key = them
        order = ["ours", marks, "ours again", key, "ours, arrow", "ours, ndjson"]
        return _harness.alternate(
            {n: (mine | them)[n] for n in order}, 1 if args.quick else args.repeats
        )


def main(argv: list[str]) -> int:
    options = _harness.parser(__doc__)
    options.add_argument(
        "--batches", type=_harness.at_least(1), default=NUM_BATCHES, help="of a client and round"
    )
    options.add_argument("--dir", type=Path, default=Path(tempfile.gettempdir()), help="where to")
    args = _harness.parse(options, argv)
    found = measure(args)
    result = judge(found)
    result.notes += conditions(args.dir)
    return _harness.report(result, args, argv)


def judge(found: dict[str, list[Round]]) -> _harness.Result:
    """The figures of all rounds, against the faster way of the peer."""
    rates = {name: [r.rate for r in rounds] for name, rounds in found.items()}
    peer = max(PEERS, key=lambda name: median(rates[name]))
    # Each of our two runs stands beside the peer's run of its round.
    mine, them = rates["ours"] + rates["ours again"], rates[peer] + rates[peer]
    figure = {"rows/s": round(median(mine)), "ratio": round(ratio(mine, them), 3)}
    lower = 1 / ratio_upper(them, mine)
    notes = [f"{name}: {words(rounds)}" for name, rounds in found.items()]
    notes.append(f"the peer is {peer}; the ratio is above {lower:.3f} with 95 % confidence")
    settle = median([r.settle_s for r in found["ours"] + found["ours again"]])
    notes.append(f"the collector's stop, with what was not in the run's folder yet: {settle:.1f} s")
    return _harness.Result(
        name="ingest",
        figure=figure,
        unit="rows a second, and that over PostgreSQL's",
        target=TARGETS,
        holds=all(figure[key] >= limit for key, limit in TARGETS.items()),
        against={
            name: round(median(values))
            for name, values in rates.items()
            if name not in ("ours", "ours again")
        },
        spread={
            "rows/s": [round(min(mine)), round(max(mine))],
            peer: [round(min(them)), round(max(them))],
            "a/a": round(ratio(rates["ours"], rates["ours again"]), 3),
        },
        notes=notes,
    )


def words(rounds: list[Round]) -> str:
    """What else is known of an arm."""
    rows = sum(r.sent.num_rows for r in rounds)
    cpu = sum(r.server_cpu_s for r in rounds)
    seconds = sum(r.sent.seconds for r in rounds)
    ms = [ms for r in rounds for ms in r.sent.latencies_ms]
    again = sum(r.sent.num_again for r in rounds)
    return (
        f"p50 {percentile(ms, 0.5):.0f} ms, p99 {percentile(ms, 0.99):.0f} ms a batch; server "
        f"{cpu / rows * 1e6:.1f} us CPU a row, {cpu / seconds:.2f} cores; generator "
        f"{sum(r.sent.cpu_s for r in rounds) / seconds:.2f} cores; {again} batches sent again"
    )


def conditions(folder: Path) -> list[str]:
    """What both sides were given."""
    settings = ", ".join(f"{k}={v}" for k, v in _postgres.SETTINGS.items() if v)
    tables = ", ".join(f"{name} {share} %" for name, share in mix().items() if share >= 1)
    return [
        f"rows: {tables}, others below 1 %; a collective is two records for us, one row for others",
        "our bodies are zstd (MessagePack, NDJSON) or lz4 (Arrow), encoded before the clock starts",
        f"PostgreSQL {_postgres.version()}: {settings}; text COPY, lists and structs as jsonb",
        f"file system: {_harness.file_system(folder)}",
    ]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
