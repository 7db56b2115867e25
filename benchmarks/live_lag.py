"""A live job's page under load: from a row's acknowledgement to its mark on the canvas.

Sixteen connections bring 100,000 rows a second of the recorded mix, by a timetable that does not wait for
answers, to ``cascade serve``; the run's page is open in Chromium and follows. Another client sends one committed transition every second or so, of a rank of its
own and with the newest time of all. It is on screen with the first frame whose story has its epoch.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks import _collector, _harness
from benchmarks._browser import chromium, page_of, wait_for
from benchmarks._load import Failed, HttpClient
from benchmarks._paced import Paced, PacedLoad, Plan
from benchmarks._rows import Host, Record, meta_of, request_of, sample
from benchmarks._stats import median, p95
from cascade_runtime.vocabulary.schema import EVENT_TABLES
from collector.wire.batch import MSGPACK

LIMIT_S = 1.0
TARGET = f"p95 under {LIMIT_S:.0f} s"
NUM_CLIENTS = 16
BATCH_ROWS = 500
SECONDS = 20.0
QUICK_SECONDS = 3.0
WARM_UP_S = 3.0
EVERY_S = 0.7
RATE = 100_000
"""Rows a second that are sent."""
PERIOD_S = NUM_CLIENTS * BATCH_ROWS / RATE
MIN_SHARE = 0.95
"""Of that rate that must have been taken, or the figure is of less than it says."""
RUN_ID = _collector.RUN_ID
FIRST_EPOCH = 1_000_000
PATIENCE_S = 30.0
_SEEN = """(epoch) => {
  const frame = window.bench.frames.find((one) => one.epoch >= epoch);
  return frame ? (window.bench.origin + frame.seen) / 1000 : null;
}"""


@dataclass
class Round:
    """One run: seconds from acknowledgement to frame, and the load meanwhile."""

    lags_s: list[float] = field(default_factory=list)
    load: Paced = field(default_factory=Paced)

    @property
    def rate(self) -> float:
        """Rows a second that were taken."""
        return self.load.num_rows / self.load.seconds if self.load.seconds else 0.0

    @property
    def is_void(self) -> bool:
        """Whether it says nothing: too few rows came in, or none was marked."""
        return not self.lags_s or bool(self.load.errors) or self.rate < MIN_SHARE * RATE


class Marked:
    """A rank of its own that does nothing but walk to another epoch."""

    def __init__(self) -> None:
        found = (item.record for item in sample().items if item.record[0] == "transitions")
        names = [column.name for column in EVENT_TABLES["transitions"].columns]
        self._at = {name: number + 1 for number, name in enumerate(names)}
        self._like: Record = next(r for r in found if r[self._at["phase"]] == "committed")
        self._num = 0

    def next(self) -> tuple[bytes, int]:
        """A request with one committed transition, and its epoch."""
        row, epoch = self.row(self._num, time.time_ns()), FIRST_EPOCH + self._num
        self._num += 1
        return request_of(MSGPACK, [row]), epoch

    def row(self, number: int, wall_ns: int) -> Record:
        """The transition of that number."""
        row, epoch = list(self._like), FIRST_EPOCH + number
        new = {"run_id": RUN_ID, "rank": NUM_CLIENTS * sample().num_actors, "incarnation": 0}
        new |= {"seq": number, "wall_ns": wall_ns, "epoch": epoch - 1, "new_epoch": epoch}
        for name, value in new.items():
            row[self._at[name]] = value
        return row


def one(load: PacedLoad, browser: Any, seconds: float, parent: Path) -> Round:
    """One run on a new data folder."""
    folder = Path(tempfile.mkdtemp(prefix="bench-lag-", dir=parent))
    try:
        with _collector.Collector(folder / "data") as server:
            server.put_meta(RUN_ID, meta_of(RUN_ID, NUM_CLIENTS))
            client = HttpClient(server.address)
            send(
                client, request_of(MSGPACK, Host(RUN_ID, NUM_CLIENTS + 1).take(BATCH_ROWS).records)
            )
            with page_of(browser, f"{server.url}/dash/run/{RUN_ID}") as page:
                wait_for(page, "() => window.bench.frames.length > 0")
                found = under_load(load, server.address, client, page, seconds)
            client.close()
            server.stop()
        return found
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def under_load(
    load: PacedLoad, address: tuple[str, int], client: HttpClient, page: Any, seconds: float
) -> Round:
    """Send marked rows while the load is on."""
    marked, found = Marked(), Round()
    begin = time.monotonic()
    load.start(address, PERIOD_S, WARM_UP_S)
    page.wait_for_timeout(WARM_UP_S * 1000)
    acked: list[tuple[int, float]] = []
    while time.monotonic() < begin + WARM_UP_S + seconds:
        request, epoch = marked.next()
        send(client, request)
        acked.append((epoch, time.time()))
        # The page may still be at work on the last one: the next goes out all the same.
        page.wait_for_timeout(EVERY_S * 1000)
    for epoch, at in acked:
        found.lags_s.append(float(wait_for(page, _SEEN, epoch)) - at)
    found.load = load.result()
    return found


def send(client: HttpClient, request: bytes) -> None:
    """Send until it is taken.

    Raises:
        Failed: it is refused.
    """
    until = time.monotonic() + PATIENCE_S
    while (status := client.ask(request)) in (429, 503) and time.monotonic() < until:
        time.sleep(0.02)
    if status != 200:
        raise Failed(f"a marked row was answered with {status}: {client.body[:300]!r}")


def main(argv: list[str]) -> int:
    options = _harness.parser(__doc__)
    options.add_argument("--seconds", type=float, default=SECONDS, help="of a run")
    options.add_argument("--dir", type=Path, default=Path(tempfile.gettempdir()), help="where to")
    args = _harness.parse(options, argv)
    return _harness.report(judge(measure(args)), args, argv)


def plans(num_batches: int) -> list[Plan]:
    """What each connection sends; their first requests are spread over one period."""
    queues = _collector.queues(MSGPACK, NUM_CLIENTS, num_batches, BATCH_ROWS)
    phases = [number * PERIOD_S / NUM_CLIENTS for number in range(NUM_CLIENTS)]
    return [Plan(q.requests, q.num_rows, phase) for q, phase in zip(queues, phases, strict=True)]


def measure(args: argparse.Namespace) -> list[Round]:
    """The rounds."""
    seconds = QUICK_SECONDS if args.quick else args.seconds
    # One second more: the load is on until the last marked row is on screen.
    num_batches = int((seconds + WARM_UP_S + LIMIT_S) / PERIOD_S) + 1
    with PacedLoad(plans, (num_batches,)) as load, chromium() as browser:
        load.ready()
        rounds = 1 if args.quick else args.repeats
        return [one(load, browser, seconds, args.dir) for _ in range(rounds)]


def judge(found: list[Round]) -> _harness.Result:
    """p95 over all marked rows; void without load."""
    lags = [lag for one_round in found for lag in one_round.lags_s]
    void = any(one_round.is_void for one_round in found)
    rate = sum(r.load.num_rows for r in found) / max(sum(r.load.seconds for r in found), 1e-9)
    figure = round(p95(lags), 3) if lags else None
    notes = [f"{len(lags)} marked rows, while {rate:.0f} rows a second came in"]
    if lags:
        notes.append(f"median {median(lags):.2f} s, longest {max(lags):.2f} s")
    late = [ms for one_round in found for ms in one_round.load.latencies_ms]
    if late:
        notes.append(f"the load's own requests were answered within p95 {p95(late):.0f} ms")
    notes += [f"error: {error}" for one_round in found for error in one_round.load.errors[:1]]
    if void:
        notes.append(
            f"void: less than {MIN_SHARE:.0%} of {RATE} rows a second were taken, or none was marked"
        )
    return _harness.Result(
        name="live_lag",
        figure={"p95": figure},
        unit="s from acknowledgement to the frame with the row's mark",
        target={"p95": LIMIT_S},
        holds=figure is not None and figure < LIMIT_S and not void,
        spread={"p95": sorted(round(p95(r.lags_s), 3) for r in found if r.lags_s)},
        notes=notes,
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
