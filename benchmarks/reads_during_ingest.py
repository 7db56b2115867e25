"""Dashboard questions while 16 clients send as fast as they can: time until a whole answer.

The questions are those of the dashboard's pages, asked by the pages' own code (_page_questions.py) of one run
that grows all the while: all that a run's page asks (pulse, story, state at the newest moment, window, tile),
every panel of the waits page, the list of the violations page, every named view. So the list follows the pages:
what none of them asks (rows by table, the last minute of a table) is no longer in it, and what they do ask at
run time is, with the statements that they ask in the background. The run has samples of a GPU and a process, or
pages would leave some out; result tables hold what an analysis of the recorded run found, so the views join
something, and its report comes halfway: before it pages ask for provisional waits, after it for judged ones.

The dashboard runs in the collector's process (_asking.py); each statement goes through the event store and
counts for the target. ``POST /v1/sql``, a stranger's path over the run's files, is measured in runs of its own.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import httpx
import msgspec
import pyarrow as pa

from benchmarks import _collector, _harness
from benchmarks._asking import Asked, Asker, AskingCollector
from benchmarks._load import Failed, HttpClient, Load, Sent
from benchmarks._page_questions import samples
from benchmarks._rows import SAMPLE, Host, meta_of, request_of, sample
from benchmarks._stats import p95, percentile
from collector.schema.views import named_views
from collector.wire.batch import MSGPACK

LIMIT_MS = 150.0
TARGET = f"p95 under {LIMIT_MS:.0f} ms"
NUM_CLIENTS = 16
BATCH_ROWS = 500
SECONDS = 15.0
WARM_UP_S = 3.0
MAX_RATE = 250_000
"""Rows a second that are made for it; when they run out, the rest of a run has no load and is void."""
QUICK_SECONDS = 2.0
RUN_ID = _collector.RUN_ID


def questions() -> list[tuple[str, str]]:
    """A stranger's, name and statement, in the order in which they are asked."""
    plain = [
        ("waits by rank", "SELECT rank, sum(wait_ns) FROM waits GROUP BY rank ORDER BY rank"),
        (
            "collectives by op",
            "SELECT op, count(*), avg(complete_ns - enter_ns) FROM collectives GROUP BY op",
        ),
    ]
    return [*plain, *((name, f"SELECT * FROM {name} LIMIT 1000") for name in named_views())]


@dataclass
class Round:
    """One run: what was asked while the load was on, and the load."""

    asked: list[Asked] = field(default_factory=list)
    answers: list[Asked] = field(default_factory=list)
    """Whole answers that pages waited for, of one statement or several."""
    sent: Sent = field(default_factory=Sent)
    load_was_on: bool = True


class Found(NamedTuple):
    """What an analysis found: result tables and the report's JSON."""

    results: dict[str, pa.Table]
    report: bytes


def found_of_sample() -> Found:
    """What an analysis of the recorded run finds, under the benchmark's run_id."""
    from analyzer import analyze
    from collector.trace.trace_folder import open_trace

    with open_trace(SAMPLE) as trace:
        found = analyze(trace)
    results = {name: moved(rows) for name, rows in found.results.items()}
    return Found(results, msgspec.json.encode(found.report))


def moved(rows: pa.Table) -> pa.Table:
    """The rows under the benchmark's run_id, where they name a run at all."""
    at = rows.schema.get_field_index("run_id")
    if at < 0:
        return rows
    field_ = rows.schema.field(at)
    return rows.set_column(at, field_, pa.array([RUN_ID] * rows.num_rows, field_.type))


def one(load: Load, analysis: Found, seconds: float, parent: Path, *, by_sql: bool) -> Round:
    """One run on a new data folder."""
    from collector.data_folder import run_folder
    from collector.trace.trace_writer import write_results

    folder = Path(tempfile.mkdtemp(prefix="bench-reads-", dir=parent))
    try:
        with AskingCollector(folder / "data", RUN_ID) as server:
            address = ("127.0.0.1", server.port)
            url = f"http://127.0.0.1:{server.port}"
            path = f"{url}/v1/runs/{RUN_ID}"
            headers = {"content-type": "application/json"}
            meta = meta_of(RUN_ID, NUM_CLIENTS)
            httpx.put(path, content=meta, headers=headers).raise_for_status()
            # The first rows make the run's folder.
            first = Host(RUN_ID, NUM_CLIENTS).take(BATCH_ROWS)
            client = HttpClient(address)
            if client.ask(request_of(MSGPACK, first.records)) != 200:
                raise Failed("the first rows were not taken")
            rows = samples(RUN_ID, (NUM_CLIENTS + 1) * sample().num_actors)
            if client.ask(request_of(MSGPACK, [msgspec.to_builtins(row) for row in rows])) != 200:
                raise Failed("the samples were not taken")
            client.close()
            server.publish()
            root = run_folder(folder / "data", RUN_ID)
            write_results(root, analysis.results)
            begin = time.monotonic()
            load.start(address, seconds + WARM_UP_S)
            time.sleep(WARM_UP_S)
            answers: list[Asked] = []
            if by_sql:
                asker = Asker(lambda sql: ask_sql(url, sql), questions())
                time.sleep(seconds)
                asked = asker.stop()
            else:
                server.begin()
                time.sleep(seconds / 2)
                write_results(root, analysis.results, analysis.report)
                time.sleep(seconds / 2)
                asked, answers = server.end()
            sent = load.result()
        # Answers that were begun before the load ended count, however long they took.
        asked, answers = ([a for a in kind if a.at < sent.end] for kind in (asked, answers))
        return Round(asked, answers, sent, sent.end >= begin + seconds + WARM_UP_S - 0.5)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def ask_sql(url: str, sql: str) -> int:
    """A stranger's question; the number of rows of its answer."""
    body = {"sql": sql, "run_id": RUN_ID, "format": "arrow"}
    answer = httpx.post(f"{url}/v1/sql", json=body, timeout=60)
    if answer.status_code != 200:
        raise Failed(f"/v1/sql answered {answer.status_code}: {answer.text[:300]}")
    return int(answer.headers["cascade-num-rows"])


def main(argv: list[str]) -> int:
    options = _harness.parser(__doc__)
    options.add_argument("--seconds", type=float, default=SECONDS, help="of a run")
    options.add_argument("--dir", type=Path, default=Path(tempfile.gettempdir()), help="where to")
    args = _harness.parse(options, argv)
    found = measure(args)
    result = judge(found)
    result.notes.append(f"file system: {_harness.file_system(args.dir)}")
    return _harness.report(result, args, argv)


def measure(args: argparse.Namespace) -> dict[str, list[Round]]:
    """Runs of both paths, in turn."""
    seconds = QUICK_SECONDS if args.quick else args.seconds
    num_rows = MAX_RATE * (seconds + WARM_UP_S) / (2 if args.quick else 1)
    num_batches = int(num_rows / NUM_CLIENTS / BATCH_ROWS) + 1
    sizes = (MSGPACK, NUM_CLIENTS, num_batches, BATCH_ROWS)
    analysis = found_of_sample()
    with Load(_collector.queues, sizes, HttpClient) as load:
        load.ready()
        arms = {
            "query": lambda: one(load, analysis, seconds, args.dir, by_sql=False),
            "/v1/sql": lambda: one(load, analysis, seconds, args.dir, by_sql=True),
        }
        return _harness.alternate(arms, 1 if args.quick else args.repeats)


def judge(found: dict[str, list[Round]]) -> _harness.Result:
    """p95 over all questions of all runs; void without load or answers."""
    ms = {name: [a.ms for r in rounds for a in r.asked] for name, rounds in found.items()}
    void = not all(ms.values()) or not all(r.load_was_on for rs in found.values() for r in rs)
    rates = {
        name: sum(r.sent.num_rows for r in rounds) / sum(r.sent.seconds for r in rounds)
        for name, rounds in found.items()
    }
    notes = []
    for name, rounds in found.items():
        notes.append(
            f"{name}: {len(ms[name])} answers, p50 {percentile(ms[name], 0.5):.0f} ms, p99 "
            f"{percentile(ms[name], 0.99):.0f} ms, while {rates[name]:.0f} rows a second came in "
            f"({max(r.sent.num_rows for r in rounds)} in the largest run)"
        )
        notes.append(f"{name}, median ms: {by_name([a for r in rounds for a in r.asked])}")
        answers = [a for r in rounds for a in r.answers]
        if answers:
            notes.append(
                f"whole answers of pages, p95 {p95([a.ms for a in answers]):.0f} ms; "
                f"median ms: {by_name(answers)}"
            )
    if void:
        notes.append("void: the load ended before the questions did, or nothing was answered")
    figure = round(p95(ms["query"]), 1)
    return _harness.Result(
        name="reads_during_ingest",
        figure={"p95": figure},
        unit="ms from statement to whole answer, event store",
        target={"p95": LIMIT_MS},
        holds=figure < LIMIT_MS and not void,
        against={"/v1/sql p95": round(p95(ms["/v1/sql"]), 1)},
        spread={
            "p95": [
                round(v, 1) for v in sorted(p95([a.ms for a in r.asked]) for r in found["query"])
            ]
        },
        notes=notes,
    )


def by_name(asked: list[Asked]) -> str:
    """Every question's median, the slowest first."""
    names = {a.name for a in asked}
    medians = {n: percentile([a.ms for a in asked if a.name == n], 0.5) for n in names}
    return ", ".join(f"{n} {v:.0f}" for n, v in sorted(medians.items(), key=lambda x: -x[1]))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
