"""The one interface of every store, and what passes through it."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Protocol

import msgspec
import pyarrow as pa

from cascade_runtime.vocabulary.errors import CascadeError
from cascade_runtime.vocabulary.trace_meta import TraceMeta
from collector.wire.batch import Batch
from collector.wire.unread import Unread


class Mark(msgspec.Struct, frozen=True):
    """How far a store has an actor's rows: every seq up to and with ``seq`` is stored.

    ``seq`` is -1 when nothing contiguous from 0 is there yet.
    """

    run_id: str
    rank: int
    incarnation: int
    seq: int


class Receipt(msgspec.Struct, frozen=True):
    """The answer to a batch; given only when its rows are durable.

    Attributes:
        num_rows: rows stored by it, done records that completed a collective included.
        num_duplicates: rows that were there already and were dropped.
        marks: of every actor that the batch had rows of.
    """

    num_rows: int
    num_duplicates: int
    marks: list[Mark]


class RunSummary(msgspec.Struct, frozen=True):
    """One run in a store.

    Attributes:
        name: from its trace.json, else the run_id.
        state: live (rows may come), ended (trace.json says so).
        mode: enforce, observe, imported.
        num_rows: stored rows of all event tables.
        first_seen_ns, last_seen_ns: wall clock of the collector.
        ended_ns, clean_end: from trace.json.
        verdict: of the last analysis: ok, violated, unknown; None before the first one.
        path: the run's trace folder.
    """

    run_id: str
    name: str
    state: str
    mode: str
    world_size: int
    num_rows: int
    first_seen_ns: int
    last_seen_ns: int
    ended_ns: int | None
    clean_end: bool | None
    verdict: str | None
    path: str


class StoreStats(msgspec.Struct, frozen=True):
    """What a store did since it was opened; for /metrics.

    Attributes:
        num_queued_rows: accepted and not yet durable.
        num_hot_rows: durable and not yet in a sealed segment.
        hot_bytes: size of the hot database and its write-ahead log.
        free_bytes: of the disk that it lies on.
        hot_row_bytes: about what those rows take up in memory.
        num_commits: group commits.
        num_rows, num_duplicates: stored and dropped rows.
        num_segments: sealed Parquet segments written.
        num_reopened: times that it was opened again after a fatal error.
    """

    num_queued_rows: int
    num_hot_rows: int
    hot_row_bytes: int
    hot_bytes: int
    free_bytes: int
    num_commits: int
    num_rows: int
    num_duplicates: int
    num_segments: int
    num_reopened: int


class QueueFull(CascadeError):
    """Too much is waiting to be stored; come again later (HTTP 429)."""


class DiskLow(CascadeError):
    """The disk has less room than a store keeps free; nothing was taken (HTTP 507)."""


class StoreDown(CascadeError):
    """The store cannot take or give rows now (HTTP 503)."""


class RunDropped(CascadeError):
    """The run was dropped by retention; its rows are not taken again (HTTP 410)."""


class NoSuchRun(CascadeError):
    """There is no run of that id (HTTP 404)."""


class News(Protocol):
    """A run's newest rows as they were after one commit: whoever keeps what he read goes on with these.

    Rows of a table come in an order that stays: a place is good for as long as its store is open.
    """

    @property
    def place(self) -> dict[str, int]:
        """By table, how far its rows go. Collectives count when they completed, or never will."""
        ...

    def after(self, place: Mapping[str, int], table: str) -> list[pa.Table] | None:
        """A table's rows beyond a place, each once, in parts; None where some are in files alone."""
        ...

    def open(self) -> pa.Table:
        """Every collective that has not completed."""
        ...


class EventStore(Protocol):
    """Keeps the rows of runs. Safe to call from several threads."""

    def append(self, batch: Batch | Unread) -> Future[Receipt]:
        """Take a batch; the future resolves when its rows are durable, duplicates dropped.

        A store reads what is unread before it stores anything of it (``read_together``). The future
        of one that is wrong fails with BadBatch, and no other one's does.

        Raises:
            QueueFull, DiskLow, StoreDown, RunDropped: at once, with nothing taken. The future may
            fail with the same.
        """
        ...

    def put_meta(self, meta: TraceMeta) -> None:
        """Store a run's trace.json; durable on return. The first one makes the run, a later one ends it.

        Raises:
            DiskLow, StoreDown, RunDropped.
        """
        ...

    def meta(self, run_id: str) -> TraceMeta:
        """The run's trace.json; made up from its rows (mode imported) when none was sent.

        Raises:
            NoSuchRun.
        """
        ...

    def marks(self, run_id: str) -> list[Mark]:
        """How far the run's actors are stored; what a sender asks after a restart.

        Raises:
            NoSuchRun.
        """
        ...

    def runs(self) -> list[RunSummary]:
        """Every run, the newest first."""
        ...

    def run(self, run_id: str) -> RunSummary:
        """One run.

        Raises:
            NoSuchRun.
        """
        ...

    def is_published(self, run_id: str) -> bool:
        """True when the run's trace folder holds all that is stored of it; cheap.

        Raises:
            NoSuchRun.
        """
        ...

    def query(
        self,
        sql: str,
        run_id: str | None = None,
        *,
        background: bool = False,
        max_age_s: float = 0.0,
    ) -> Any:
        """Trusted SQL over hot and sealed rows as of now: a pyarrow.Table.

        For our own pages; a stranger's SQL goes to collector.sql.

        Args:
            sql: one statement.
            run_id: the run that it is about; every run when not given.
            background: nobody waits for the answer, so rows that come in do not give way to it.
            max_age_s: rows that were stored in the last so many seconds may be missing, each
                run's up to one commit; with 0 every row that was acknowledged is seen.

        Raises:
            NoSuchRun; BadUsage: the statement fails.
        """
        ...

    def question(self) -> AbstractContextManager[None]:
        """Around work on an answer that somebody waits for: what comes in gives way, but not for long."""
        ...

    def query_at(self, sql: str, run_id: str, *, background: bool = False) -> tuple[pa.Table, News]:
        """The answer as of now, and the news as of the very commit that it sees.

        Raises:
            NoSuchRun; BadUsage: the statement fails, or asks for no event table.
        """
        ...

    def news(self, run_id: str) -> News:
        """The run's newest rows as of now.

        Raises:
            NoSuchRun.
        """
        ...

    def publish(self, run_id: str | None = None) -> None:
        """Bring every stored row of the run (of all runs) into its trace folder now."""
        ...

    def drop(self, run_id: str) -> None:
        """Delete a run, its folder too; its rows are refused from then on.

        Raises:
            NoSuchRun.
        """
        ...

    def stats(self) -> StoreStats:
        """Figures for /metrics."""
        ...

    def problem(self) -> str | None:
        """Why the store cannot take rows now; None when it can."""
        ...

    def close(self, deadline_s: float = 10.0) -> None:
        """Store what was accepted, publish, close; after the deadline leave the rest to the next start."""
        ...


class StoreKind(Protocol):
    """The ``PLUGIN`` of a store's file."""

    name: str

    def open(self, data: Path, options: dict[str, Any]) -> EventStore:
        """Open the store of a data folder, made when it is not there.

        Raises:
            BadUsage: another collector has it; its files are damaged (hint: cascade recover).
        """
        ...
