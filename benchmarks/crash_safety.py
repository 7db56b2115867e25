"""50 x kill -9 of the collector under load: are acknowledged rows there, once?

16 clients send as fast as they can and go on through it all: on a lost connection they connect again and
send the same batch again, so many batches are sent that were stored and not acknowledged. The collector
is killed at seeded random moments, some while it starts, and started again on its port and data folder.
In the end every client's last batch is acknowledged, and three witnesses are asked:

- the collector, for the mark and the number of rows of every run;
- the run's trace folder, read as anybody reads a trace: every row by (rank, incarnation, seq);
- SQL, over ``POST /v1/sql``: rows and distinct rows by actor.

A completion of a collective has no row of its own: one that was acknowledged counts as lost when its
collective is there without it.
"""

from __future__ import annotations

import argparse
import gc
import multiprocessing
import random
import shutil
import sys
import tempfile
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path

from benchmarks import _collector, _harness
from benchmarks._load import TIMEOUT_S, Failed, HttpClient
from benchmarks._rows import Host, meta_of, request_of, sample
from benchmarks._stats import median
from cascade_runtime.vocabulary.schema import EVENT_TABLES
from collector.wire.batch import MSGPACK

TARGET = "0 acknowledged rows lost, 0 duplicates visible"
TARGETS = {"lost": 0, "doubled": 0}
NUM_KILLS = 50
QUICK_KILLS = 3
NUM_CLIENTS = 16
BATCH_ROWS = 500
LIFE_S = (0.0, 2.0)
"""Between being ready and being killed, at random."""
START_KILL_SHARE = 0.1
"""Of the kills that come before the collector is ready again, after a random part of a second."""
AGAIN_S = 0.02
MAX_AGAIN_S = 300.0
RUN_ID = _collector.RUN_ID

ActorPair = tuple[int, int]


@dataclass
class Acked:
    """What was acknowledged."""

    num_rows: dict[ActorPair, int] = field(default_factory=dict)
    """Rows by actor; their seqs are contiguous from 0."""
    num_done: dict[ActorPair, int] = field(default_factory=dict)
    num_batches: int = 0
    num_again: int = 0
    """Batches that were sent once more because the connection was lost."""

    def add(self, other: Acked) -> None:
        """Take in what another client was told; no two share an actor."""
        self.num_rows |= other.num_rows
        self.num_done |= other.num_done
        self.num_batches += other.num_batches
        self.num_again += other.num_again


@dataclass
class Found:
    """What one witness has of an actor."""

    num_rows: int
    num_distinct: int
    last_seq: int
    num_done: int = 0


@dataclass
class Count:
    """Rows that one witness has too few, and too many."""

    lost: int = 0
    doubled: int = 0
    unknown: int = 0
    """Rows that nobody sent."""


def compare(acked: Acked, found: dict[ActorPair, Found], *, with_done: bool) -> Count:
    """What is lost and what is doubled; every batch that was sent has been acknowledged.

    Args:
        acked: what was.
        found: what a witness has.
        with_done: whether the witness counted completions.
    """
    count = Count()
    for actor, num_rows in acked.num_rows.items():
        mine = found.get(actor, Found(0, 0, -1))
        count.lost += max(0, num_rows - mine.num_distinct)
        count.doubled += mine.num_rows - mine.num_distinct
        count.unknown += max(0, mine.num_distinct - num_rows, mine.last_seq - num_rows + 1)
        if with_done:
            count.lost += max(0, acked.num_done.get(actor, 0) - mine.num_done)
    count.unknown += sum(f.num_rows for actor, f in found.items() if actor not in acked.num_rows)
    return count


# ---- the clients ---------------------------------------------------------------------------------


def _client(address: tuple[str, int], number: int, stopping: threading.Event, acked: Acked) -> None:
    """Sends a host's batches, each again and again until it is acknowledged."""
    host = Host(RUN_ID, number, start=number * (len(sample().items) // NUM_CLIENTS))
    client: HttpClient | None = None
    while not stopping.is_set():
        taken = host.take(BATCH_ROWS)
        request = request_of(MSGPACK, taken.records)
        until = time.monotonic() + MAX_AGAIN_S
        while True:
            try:
                if client is None:
                    client = HttpClient(address)
                status = client.ask(request)
            except OSError:  # killed: connect again, send the same again
                if client is not None:
                    client.close()
                    client = None
                    acked.num_again += 1
                status = 0
            if status == 200:
                break
            if status not in (0, 429, 503):
                raise Failed(f"a batch was answered with {status}")
            if time.monotonic() > until:
                raise Failed(f"a batch was not taken for {MAX_AGAIN_S:.0f} s")
            time.sleep(AGAIN_S)
        acked.num_batches += 1
        for actor, (first, last, num_done) in taken.actors.items():
            if first >= 0:
                acked.num_rows[actor] = last + 1
            acked.num_done[actor] = acked.num_done.get(actor, 0) + num_done
    if client is not None:
        client.close()


def _clients(pipe: Connection, address: tuple[str, int]) -> None:
    """A process of all clients: they stop at a word, and what was acknowledged is told."""
    gc.disable()
    stopping = threading.Event()
    each = [Acked() for _ in range(NUM_CLIENTS)]
    problems: list[str] = []

    def run(number: int) -> None:
        try:
            _client(address, number, stopping, each[number])
        except Exception as error:
            problems.append(repr(error))
            print(f"client {number} ended: {error!r}", file=sys.stderr, flush=True)

    threads = [threading.Thread(target=run, args=(n,), daemon=True) for n in range(NUM_CLIENTS)]
    for thread in threads:
        thread.start()
    try:
        pipe.recv()
    except EOFError:
        return
    stopping.set()
    for thread in threads:
        thread.join()
    total = Acked()
    for one in each:
        total.add(one)
    pipe.send((total, problems))


# ---- the witnesses -------------------------------------------------------------------------------


def in_folder(data: Path) -> dict[ActorPair, Found]:
    """What the run's trace folder has, every row looked at.

    The folder's files are read as they are: ``TraceFolder`` would drop a double row.
    """
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    from collector.data_folder import run_folder
    from collector.trace.trace_folder import open_trace

    root = run_folder(data, RUN_ID)
    parts = []
    read = 0
    done: Counter[ActorPair] = Counter()
    with open_trace(root) as trace:
        for name in EVENT_TABLES:
            columns = ["rank", "incarnation", "seq"]
            files = sorted((root / "events" / name).glob("*.parquet"))
            parts += [pq.ParquetFile(file).read(columns) for file in files]
            read += trace.table(name, columns).num_rows
        rows = trace.table("collectives", ["rank", "incarnation", "completed"])
        rows = rows.filter(pc.fill_null(rows["completed"], False))
        for row in (
            rows.group_by(["rank", "incarnation"]).aggregate([([], "count_all")]).to_pylist()
        ):
            done[row["rank"], row["incarnation"]] = row["count_all"]
    rows = pa.concat_tables(parts)
    keyed = rows.group_by(["rank", "incarnation"]).aggregate(
        [("seq", "count"), ("seq", "count_distinct"), ("seq", "max")]
    )
    found = {
        (r["rank"], r["incarnation"]): Found(
            r["seq_count"], r["seq_count_distinct"], r["seq_max"], done[r["rank"], r["incarnation"]]
        )
        for r in keyed.to_pylist()
    }
    if read != sum(f.num_distinct for f in found.values()):
        raise Failed(f"the files have other rows than the trace that is read from them ({read})")
    return found


def by_sql(server: _collector.Collector) -> dict[ActorPair, Found]:
    """What SQL has."""
    every = " UNION ALL ".join(
        f"SELECT rank, incarnation, seq FROM {name}" for name in EVENT_TABLES
    )
    told = server.sql(
        "SELECT rank, incarnation, count(*), count(DISTINCT seq), max(seq) "
        f"FROM ({every}) GROUP BY ALL",
        RUN_ID,
    )
    return {(row[0], row[1]): Found(row[2], row[3], row[4]) for row in told}


def by_marks(server: _collector.Collector) -> dict[ActorPair, Found]:
    """What the collector says of itself: every actor's mark."""
    told = server.get(f"/v1/runs/{RUN_ID}")
    found = {
        (m["rank"], m["incarnation"]): Found(m["seq"] + 1, m["seq"] + 1, m["seq"])
        for m in told["marks"]
    }
    total = sum(f.num_rows for f in found.values())
    if told["run"]["num_rows"] != total:
        raise Failed(f"the marks stand for {total} rows, the run says {told['run']['num_rows']}")
    return found


# ---- the whole -----------------------------------------------------------------------------------


@dataclass
class Ordeal:
    """What happened."""

    acked: Acked
    counts: dict[str, Count]
    num_kills: int
    starts_s: list[float]
    seconds: float


def endure(num_kills: int, seed: int, parent: Path) -> Ordeal:
    """Kill a loaded collector again and again; what was lost, and what is there twice.

    Raises:
        Failed: it did not start again, or a client was refused.
    """
    draw = random.Random(seed)
    folder = Path(tempfile.mkdtemp(prefix="bench-crash-", dir=parent))
    context = multiprocessing.get_context("spawn")
    pipe, theirs = context.Pipe()
    begin = time.monotonic()
    clients = None
    try:
        with _collector.Collector(folder / "data") as server:
            server.put_meta(RUN_ID, meta_of(RUN_ID, NUM_CLIENTS))
            clients = context.Process(target=_clients, args=(theirs, server.address), daemon=True)
            clients.start()
            theirs.close()
            wait_for_rows(server)
            starts_s = []
            for number in range(num_kills):
                time.sleep(draw.uniform(*LIFE_S))
                server.kill()
                if draw.random() < START_KILL_SHARE and number + 1 < num_kills:
                    server.start_and_kill(draw.uniform(0.0, 1.0))
                server.start()
                starts_s.append(server.start_s)
                print(
                    f"kill {number + 1} of {num_kills}: again up after {server.start_s:.1f} s",
                    file=sys.stderr,
                )
            wait_for_rows(server)
            pipe.send("stop")
            if not pipe.poll(MAX_AGAIN_S):
                raise Failed("the clients do not end")
            acked, problems = pipe.recv()
            if problems:
                raise Failed(f"a client failed: {problems[0]}")
            seconds = time.monotonic() - begin
            counts = {"marks": compare(acked, by_marks(server), with_done=False)}
            server.stop()  # brings everything into the run's folder
            counts["folder"] = compare(acked, in_folder(folder / "data"), with_done=True)
            server.start()
            counts["sql"] = compare(acked, by_sql(server), with_done=False)
            server.stop()
        return Ordeal(acked, counts, num_kills, starts_s, seconds)
    finally:
        pipe.close()
        if clients is not None:
            clients.join(TIMEOUT_S)
        shutil.rmtree(folder, ignore_errors=True)


def wait_for_rows(server: _collector.Collector) -> None:
    """Until the clients' rows come in again."""
    until = time.monotonic() + TIMEOUT_S
    first = server.num_rows(RUN_ID)
    while server.num_rows(RUN_ID) == first:
        if time.monotonic() > until:
            raise Failed("no rows come in")
        time.sleep(0.05)


def main(argv: list[str]) -> int:
    options = _harness.parser(__doc__)
    options.add_argument("--kills", type=_harness.at_least(1), default=NUM_KILLS)
    options.add_argument("--seed", type=int, default=0, help="of the moments")
    options.add_argument("--dir", type=Path, default=Path(tempfile.gettempdir()), help="where to")
    args: argparse.Namespace = _harness.parse(options, argv)
    num_kills = QUICK_KILLS if args.quick else args.kills
    result = judge(endure(num_kills, args.seed, args.dir))
    result.notes.append(f"file system: {_harness.file_system(args.dir)}; no power was lost")
    return _harness.report(result, args, argv)


def judge(ordeal: Ordeal) -> _harness.Result:
    """The worst of all witnesses."""
    counts = ordeal.counts
    figure = {
        "lost": max(c.lost for c in counts.values()),
        "doubled": max(c.doubled for c in counts.values()),
    }
    unknown = max(c.unknown for c in counts.values())
    num_rows = sum(ordeal.acked.num_rows.values())
    notes = [
        f"{num_rows} rows and {sum(ordeal.acked.num_done.values())} completions were acknowledged in "
        f"{ordeal.acked.num_batches} batches; {ordeal.acked.num_again} batches were sent again",
        f"{ordeal.num_kills} kills in {ordeal.seconds:.0f} s; up again after {median(ordeal.starts_s):.1f} s "
        f"(median), {max(ordeal.starts_s):.1f} s (longest)",
        f"rows that nobody sent: {unknown}",
        *(f"{name}: {c.lost} lost, {c.doubled} doubled" for name, c in counts.items()),
    ]
    return _harness.Result(
        name="crash_safety",
        figure=figure,
        unit="acknowledged rows",
        target=TARGETS,
        holds=figure == TARGETS and not unknown and num_rows > 0,
        notes=notes,
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
