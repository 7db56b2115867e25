"""Sends a saved trace to a collector, by the same doorway that live rows take."""

from __future__ import annotations

import time
from collections.abc import Callable
from urllib.parse import quote

import httpx
import msgspec

from cascade_runtime.vocabulary.errors import BadUsage
from cascade_runtime.vocabulary.ports import TraceSource
from cascade_runtime.vocabulary.schema import EVENT_TABLES
from cascade_runtime.vocabulary.trace_meta import TraceMeta
from collector.client import BUSY, Client
from collector.storage._interface import Mark, Receipt, RunSummary
from collector.wire.arrow_body import encode_arrow
from collector.wire.arrow_send import (
    ROWS_EACH,
    ActorPair,
    Batch,
    above,
    batches,
    keys_of,
    prefixes,
)
from collector.wire.batch import ARROW
from collector.wire.run_ids import RULE, fits_a_path

Progress = Callable[[int, int], None]
"""Told (rows that are done, rows in all) after each batch."""

BYTES_EACH = 16 << 20
"""Bytes of one batch in memory; the collector takes four times as many."""

_AGAIN = BUSY | {408, 502, 504}


class PushReport(msgspec.Struct):
    """What a push did.

    Attributes:
        num_rows: of the trace.
        num_skipped: that the collector had before, by its marks.
        num_stored, num_duplicates: of what was sent.
        uncovered: sentences about rows that are not known to be stored; empty when all is well.
    """

    run_id: str
    url: str
    num_rows: int = 0
    num_skipped: int = 0
    num_stored: int = 0
    num_duplicates: int = 0
    uncovered: list[str] = []


class _Stored(msgspec.Struct):
    run: RunSummary
    marks: list[Mark]


class Collector:
    """One collector, as rows are sent to it.

    Args:
        url: its URL.
        token: bearer token, if it needs one.
        timeout_s: how long to go on trying while nothing succeeds.
        first_wait_s: the same where nobody has answered yet; None: ``timeout_s``.
        on_wait: told when something is tried again: why, and for how many seconds at most.
        sleep: waits; for tests.
        http: the HTTP client; for tests.

    Raises:
        BadUsage: no http or https URL, or a token that no header can carry.
    """

    def __init__(
        self,
        url: str,
        token: str | None = None,
        timeout_s: float = 120.0,
        sleep: Callable[[float], None] = time.sleep,
        http: httpx.Client | None = None,
        *,
        first_wait_s: float | None = None,
        on_wait: Callable[[str, float], None] = lambda why, seconds: None,
    ) -> None:
        self._client = Client(
            url,
            token,
            scope="write",
            timeout_s=timeout_s,
            again=_AGAIN,
            first_wait_s=first_wait_s,
            on_wait=on_wait,
            unreached_hint="check the address, and that cascade serve runs there; "
            "cascade push --wait 60 waits for it",
            away_hint="run the same command again later: what is stored is not sent twice",
            sleep=sleep,
            http=http,
        )
        self.url = self._client.url

    def __enter__(self) -> Collector:
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()

    def stored(self, run_id: str) -> tuple[RunSummary, dict[ActorPair, int]] | None:
        """The run and how far its actors are stored; None when the collector has no such run."""
        answer = self._client.ask("GET", _path(run_id), good=(200, 404))
        if answer.status_code == httpx.codes.NOT_FOUND:
            return None
        found = self._client.parsed(answer, _Stored)
        return found.run, {(m.rank, m.incarnation): m.seq for m in found.marks}

    def put_meta(self, meta: TraceMeta) -> None:
        """Send a trace.json."""
        body = msgspec.json.encode(meta)
        self._client.ask("PUT", _path(meta.run_id), good=(200, 204), content=body)

    def post(self, batch: Batch) -> Receipt:
        """Send rows; a batch that is too large is sent in halves."""
        may_halve = batch.num_rows > 1
        # Rows of large jobs hold long lists: 20,000 of them may be more than a body may unpack to.
        if not may_halve or sum(int(rows.nbytes) for rows in batch.tables.values()) <= BYTES_EACH:
            good = (200, 413) if may_halve else (200,)
            body = encode_arrow(batch.tables)
            answer = self._client.ask(
                "POST", "/v1/events", good=good, content=body, media_type=ARROW
            )
            if answer.status_code == httpx.codes.OK:
                return self._client.parsed(answer, Receipt)
        first, second = (self.post(half) for half in batch.halves())
        return Receipt(
            first.num_rows + second.num_rows,
            first.num_duplicates + second.num_duplicates,
            [*first.marks, *second.marks],
        )


def push(source: TraceSource, collector: Collector, progress: Progress | None = None) -> PushReport:
    """Send a trace; what is stored already is not sent again.

    Args:
        source: the trace. All of its rows are held in memory meanwhile.
        collector: where it goes.
        progress: told after each batch.

    Raises:
        BadUsage: the run_id cannot be part of a URL.
        CollectorRefused, CollectorAway: not all rows are there; pushing again goes on where it ended.
    """
    meta = source.meta
    if not fits_a_path(meta.run_id):
        raise BadUsage(RULE, where=f"trace.json: run_id {meta.run_id[:80]!r}")
    report = PushReport(meta.run_id, collector.url)
    stored = collector.stored(meta.run_id)  # first: reading a large trace takes a while
    tables = {name: source.table(name) for name in EVENT_TABLES}
    tables = {name: rows for name, rows in tables.items() if rows.num_rows}
    keys = keys_of(tables)
    report.num_rows = len(keys.seq)
    if stored is not None:
        keys = above(keys, stored[1])
    report.num_skipped = report.num_rows - len(keys.seq)
    if stored is None or stored[0].ended_ns is None:
        # Never after the end: that would open an ended run again.
        collector.put_meta(msgspec.structs.replace(meta, ended_ns=None, clean_end=None))
    num_done = report.num_skipped
    for batch in batches(tables, keys, ROWS_EACH):
        receipt = collector.post(batch)
        report.num_stored += receipt.num_rows
        report.num_duplicates += receipt.num_duplicates
        num_done += batch.num_rows
        if progress is not None:
            progress(num_done, report.num_rows)
    if meta.ended_ns is not None:
        collector.put_meta(meta)
    after = collector.stored(meta.run_id)
    marks = {} if after is None else after[1]
    report.uncovered = _uncovered(report, prefixes(keys_of(tables)), marks)
    return report


def _uncovered(
    report: PushReport, wanted: dict[ActorPair, int], marks: dict[ActorPair, int]
) -> list[str]:
    found = []
    for (rank, incarnation), last in wanted.items():
        mark = marks.get((rank, incarnation), -1)
        if mark < last:
            found.append(
                f"rank {rank}, incarnation {incarnation}: the collector has its rows up to seq "
                f"{mark}, the trace has them up to {last}"
            )
    sent = report.num_rows - report.num_skipped
    told = report.num_stored + report.num_duplicates
    if told < sent:
        found.append(f"{sent} rows were sent, and the collector tells of {told}")
    return found


def _path(run_id: str) -> str:
    return f"/v1/runs/{quote(run_id, safe='')}"
