"""A store in memory, and a stand-in for the SQL service: what the HTTP side is tested against."""

from __future__ import annotations

import threading
from concurrent.futures import Future
from pathlib import Path

from cascade_runtime.vocabulary.events import CollectiveDone
from cascade_runtime.vocabulary.trace_meta import TraceMeta
from collector.schema.rows import table_to_events
from collector.sql.service import SqlAnswer, SqlHealth
from collector.storage._interface import (
    Mark,
    NoSuchRun,
    Receipt,
    RunDropped,
    RunSummary,
    StoreStats,
)
from collector.wire.batch import BadBatch
from collector.wire.unread import Unread, read_together


class MemoryStore:
    """An EventStore that keeps rows in a dict; every batch is durable at once.

    ``refuse_with`` is raised by the next appends; ``fail_with`` is what their futures fail with;
    with ``hold`` set, futures wait for ``release()``.
    """

    def __init__(self):
        self.rows = {}
        self.metas = {}
        self.dropped = set()
        self.refuse_with = None
        self.fail_with = None
        self.hold = False
        self.held = []
        self.batches = []
        self.trouble = None
        self.closed_with = None
        self.num_duplicates = 0
        self._lock = threading.Lock()

    def append(self, batch):
        if self.refuse_with is not None:
            raise self.refuse_with
        future = Future()
        if isinstance(batch, Unread):
            (batch,) = read_together([batch])
            if isinstance(batch, BadBatch):
                future.set_exception(batch)
                return future
        with self._lock:
            self.batches.append(batch)
            if self.fail_with is not None:
                future.set_exception(self.fail_with)
            elif self.hold:
                self.held.append((future, batch))
            else:
                future.set_result(self._keep(batch))
        return future

    def release(self):
        with self._lock:
            held, self.held = self.held, []
            self.hold = False
            for future, batch in held:
                future.set_result(self._keep(batch))

    def _keep(self, batch):
        rows = batch.records
        if rows is None:
            rows = [e for name, table in batch.tables.items() for e in table_to_events(name, table)]
        num_rows = num_duplicates = 0
        actors = set()
        for row in rows:
            if row.run_id in self.dropped:
                raise RunDropped("dropped", where=row.run_id)
            key = (row.rank, row.incarnation, row.seq, isinstance(row, CollectiveDone))
            run = self.rows.setdefault(row.run_id, {})
            if key in run:
                num_duplicates += 1
            else:
                run[key] = row
                num_rows += 1
            actors.add((row.run_id, row.rank, row.incarnation))
        self.num_duplicates += num_duplicates
        return Receipt(num_rows, num_duplicates, [self._mark(*actor) for actor in sorted(actors)])

    def _mark(self, run_id, rank, incarnation):
        seqs = {k[2] for k in self.rows[run_id] if k[:2] == (rank, incarnation) and not k[3]}
        seq = 0
        while seq in seqs:
            seq += 1
        return Mark(run_id, rank, incarnation, seq - 1)

    def put_meta(self, meta):
        if meta.run_id in self.dropped:
            raise RunDropped("dropped", where=meta.run_id)
        if self.refuse_with is not None:
            raise self.refuse_with
        self.metas[meta.run_id] = meta

    def meta(self, run_id):
        self.run(run_id)
        return self.metas.get(run_id) or TraceMeta(
            schema_version=1,
            run_id=run_id,
            name=run_id,
            world_size=1,
            mode="imported",
            policy=None,
            created_ns=0,
            recorded_tables=[],
            tool_versions={},
        )

    def marks(self, run_id):
        self.run(run_id)
        actors = {key[:2] for key in self.rows.get(run_id, {})}
        return [self._mark(run_id, *actor) for actor in sorted(actors)]

    def runs(self):
        if self.trouble is not None and isinstance(self.trouble, Exception):
            raise self.trouble
        return [self.run(run_id) for run_id in sorted({*self.rows, *self.metas})]

    def run(self, run_id):
        if run_id not in self.rows and run_id not in self.metas:
            raise NoSuchRun("there is no such run", where=run_id)
        meta = self.metas.get(run_id)
        ended = meta.ended_ns if meta else None
        return RunSummary(
            run_id=run_id,
            name=meta.name if meta else run_id,
            state="live" if ended is None else "ended",
            mode=meta.mode if meta else "imported",
            world_size=meta.world_size if meta else 1,
            num_rows=len(self.rows.get(run_id, {})),
            first_seen_ns=1,
            last_seen_ns=2,
            ended_ns=ended,
            clean_end=meta.clean_end if meta else None,
            verdict=None,
            path=f"/data/runs/{run_id}",
        )

    def query(self, sql, run_id=None):
        raise NotImplementedError

    def publish(self, run_id=None):
        pass

    def drop(self, run_id):
        self.dropped.add(run_id)

    def stats(self):
        num_rows = sum(map(len, self.rows.values()))
        return StoreStats(0, num_rows, 0, 0, 1 << 30, len(self.batches), num_rows, 0, 0, 0)

    def problem(self):
        return self.trouble

    def close(self, deadline_s=10.0):
        self.closed_with = deadline_s


class NullStore(MemoryStore):
    """Takes everything and keeps nothing; what is measured with it is the HTTP side's own cost."""

    def append(self, batch):
        future = Future()
        future.set_result(Receipt(batch.num_rows, 0, []))
        return future


class EchoSql:
    """Answers a statement with itself."""

    def __init__(self):
        self.fail_with = None
        self.asked = []

    def health(self):
        return SqlHealth(landlock=True)

    def run(self, request):
        self.asked.append(request)
        if self.fail_with is not None:
            raise self.fail_with
        return SqlAnswer("application/json", b'{"rows":[]}', False, 0)


def stub_kind(store):
    """A StoreKind that opens ``store``."""

    class Kind:
        name = "duckdb"
        opened = None

        def open(self, data: Path, options):
            self.opened = (data, options)
            return store

    return Kind()
