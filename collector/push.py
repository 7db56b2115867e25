"""Sends a saved trace to a collector, by the same doorway that live rows take."""

from __future__ import annotations

import random
import ssl
import time
from collections.abc import Callable
from typing import Any, TypeVar
from urllib.parse import quote, urlsplit

import httpx
import msgspec

from cascade_runtime.vocabulary.errors import BadUsage, CascadeError
from cascade_runtime.vocabulary.ports import TraceSource
from cascade_runtime.vocabulary.schema import EVENT_TABLES
from cascade_runtime.vocabulary.trace_meta import TraceMeta
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

_T = TypeVar("_T", bound=msgspec.Struct)

Progress = Callable[[int, int], None]
"""Told (rows that are done, rows in all) after each batch."""

_AGAIN = frozenset({408, 429, 502, 503, 504, 507})
_FIRST_WAIT_S = 0.1
_LONGEST_WAIT_S = 10.0
_LONGEST_ASKED_S = 30.0


class CollectorRefused(CascadeError):
    """The collector answered, and does not want what was sent."""


class CollectorAway(CascadeError):
    """The collector could not be reached, or could take nothing, for as long as was allowed."""


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
    """One collector, over HTTP.

    Args:
        url: its URL.
        token: bearer token, if it needs one.
        timeout_s: how long to go on trying while nothing succeeds.
        sleep: waits; for tests.
        client: the HTTP client; for tests.

    Raises:
        BadUsage: no http or https URL.
    """

    def __init__(
        self,
        url: str,
        token: str | None = None,
        timeout_s: float = 120.0,
        sleep: Callable[[float], None] = time.sleep,
        client: httpx.Client | None = None,
    ) -> None:
        self.url = _checked_url(url)
        self._timeout_s = timeout_s
        self._sleep = sleep
        self._client = client or httpx.Client(timeout=httpx.Timeout(60.0, connect=10.0))
        self._headers = {"authorization": f"Bearer {token}"} if token else {}

    def __enter__(self) -> Collector:
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()

    def stored(self, run_id: str) -> tuple[RunSummary, dict[ActorPair, int]] | None:
        """The run and how far its actors are stored; None when the collector has no such run."""
        answer = self._ask("GET", _path(run_id), good=(200, 404))
        if answer.status_code == httpx.codes.NOT_FOUND:
            return None
        found = self._parsed(answer, _Stored)
        return found.run, {(m.rank, m.incarnation): m.seq for m in found.marks}

    def put_meta(self, meta: TraceMeta) -> None:
        """Send a trace.json."""
        body = msgspec.json.encode(meta)
        headers = {"content-type": "application/json"}
        self._ask("PUT", _path(meta.run_id), good=(200, 204), content=body, headers=headers)

    def post(self, batch: Batch) -> Receipt:
        """Send rows; a batch that is too large is sent in halves."""
        body = encode_arrow(batch.tables)
        good = (200, 413) if batch.num_rows > 1 else (200,)
        answer = self._ask(
            "POST", "/v1/events", good=good, content=body, headers={"content-type": ARROW}
        )
        if answer.status_code == httpx.codes.OK:
            return self._parsed(answer, Receipt)
        first, second = (self.post(half) for half in batch.halves())
        return Receipt(
            first.num_rows + second.num_rows,
            first.num_duplicates + second.num_duplicates,
            [*first.marks, *second.marks],
        )

    def _ask(
        self,
        method: str,
        path: str,
        *,
        good: tuple[int, ...],
        content: bytes | None = None,
        headers: dict[str, str] | None = None,
    ) -> httpx.Response:
        """One request, sent again until it succeeds, is refused, or the time is over."""
        until = time.monotonic() + self._timeout_s
        num_tries = 0
        while True:
            asked_s = 0.0
            try:
                answer = self._client.request(
                    method,
                    self.url + path,
                    content=content,
                    headers=self._headers | (headers or {}),
                )
            except httpx.TransportError as error:
                if isinstance(error, httpx.ConnectError) and _is_tls(error):
                    raise CollectorAway(
                        f"there is no trusted connection: {error}",
                        where=self.url,
                        hint="set SSL_CERT_FILE to the certificate of the collector or its authority",
                    ) from error
                why = f"it cannot be reached: {error}" if str(error) else "it does not answer"
            else:
                if answer.status_code in good:
                    return answer
                why, hint = _told(answer)
                if answer.status_code not in _AGAIN:
                    raise CollectorRefused(why, where=f"{method} {self.url}{path}", hint=hint)
                asked_s = _retry_after(answer)
            wait_s = _wait(num_tries, asked_s)
            if time.monotonic() + wait_s > until:
                raise CollectorAway(
                    f"{why} (after trying for {self._timeout_s:g} s)",
                    where=self.url,
                    hint="run the same command again later: what is stored is not sent twice",
                )
            num_tries += 1
            self._sleep(wait_s)

    def _parsed(self, answer: httpx.Response, kind: type[_T]) -> _T:
        try:
            return msgspec.json.decode(answer.content, type=kind)
        except msgspec.MsgspecError as error:
            raise CollectorRefused(
                "what answers there is no collector", where=self.url, hint="check the URL"
            ) from error


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
    tables = {name: source.table(name) for name in EVENT_TABLES}
    tables = {name: rows for name, rows in tables.items() if rows.num_rows}
    keys = keys_of(tables)
    report.num_rows = len(keys.seq)
    stored = collector.stored(meta.run_id)
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


def _checked_url(url: str) -> str:
    try:
        urlsplit(url)  # stricter about brackets
        parsed = httpx.URL(url)
    except (httpx.InvalidURL, ValueError) as error:
        raise BadUsage(f"this is no URL: {error}", where=url) from error
    if parsed.scheme not in ("http", "https") or not parsed.host or parsed.query or parsed.fragment:
        raise BadUsage(
            "this is no URL of a collector", where=url, hint="such as http://127.0.0.1:7654"
        )
    if parsed.userinfo:
        raise BadUsage(
            "a URL with a password in it ends up in logs",
            where=str(parsed.copy_with(userinfo=b"")),
            hint="put a token into CASCADE_TOKEN",
        )
    return url.rstrip("/")


def _told(answer: httpx.Response) -> tuple[str, str]:
    """What an error answer says: message and hint."""
    hint = ""
    if answer.status_code in (httpx.codes.UNAUTHORIZED, httpx.codes.FORBIDDEN):
        hint = "put a token that may write into the environment variable CASCADE_TOKEN"
    try:
        told: dict[str, Any] = msgspec.json.decode(answer.content)["error"]
        where = f" ({told['where']})" if told["where"] else ""
        return f"the collector says: {told['message']}{where}", hint or str(told["hint"])
    except (msgspec.MsgspecError, KeyError, TypeError):
        return f"it answered {answer.status_code}, which is not a collector's way", hint


def _retry_after(answer: httpx.Response) -> float:
    told = answer.headers.get("retry-after", "")
    return min(float(told), _LONGEST_ASKED_S) if told.isdigit() else 0.0


def _wait(num_tries: int, asked_s: float) -> float:
    """Seconds until the next try: as asked, and longer each time, at random so that many spread."""
    most = min(_FIRST_WAIT_S * 2 ** min(num_tries, 10), _LONGEST_WAIT_S)
    return asked_s + random.uniform(0.0, most)  # noqa: S311  # no secret


def _is_tls(error: BaseException | None) -> bool:
    while error is not None:
        if isinstance(error, ssl.SSLError):
            return True
        error = error.__cause__ or error.__context__
    return False
