"""Runs to draw tiles of, without a collector."""

from __future__ import annotations

import duckdb

from cascade_runtime.vocabulary.events import Actors, Collectives, Compute, Gpu, Groups, Health
from cascade_runtime.vocabulary.identity import Actor
from cascade_runtime.vocabulary.schema import EVENT_TABLES, TABLES
from collector.schema.arrow import empty_table
from collector.schema.rows import events_to_table
from collector.wire.decode import MSGPACK, decode
from collector.wire.records import encode_msgpack
from tests.collector.traces import make_meta

RUN = "run-1"
T0 = 10**18
"""When the run was made; times of rows are given since then."""

_NAMES = {table.struct: name for name, table in EVENT_TABLES.items()}


def _leading(rank, seq, at, incarnation=0):
    return (RUN, rank, incarnation, seq, "world", 0, None, seq, T0 + at, seq)


def put(store, rows):
    """Store rows, durable on return."""
    store.append(decode(MSGPACK, encode_msgpack(rows))).result(30)


def actor(rank, kind="rank", at=0):
    return Actors(*_leading(rank, 0, at), name=f"{kind} {rank}", kind=kind, host="h")


def group(rank, size, comm="c", seq=1):
    return Groups(*_leading(rank, seq, 0), comm_id=comm, members=[Actor(r, 0) for r in range(size)])


def entered(rank, cseq, at, comm="c", op="all_reduce", seq=None, **more):
    seq = 10 + cseq if seq is None else seq
    more = {"completed": False} | more
    return Collectives(
        *_leading(rank, seq, at), comm_id=comm, cseq=cseq, op=op, enter_ns=T0 + at, **more
    )


def gpu(rank, seq, at, percent):
    return Gpu(*_leading(rank, seq, at), device_uuid=f"gpu-{rank}", util_pct=percent)


def cpu(rank, seq, at, percent, **more):
    fields = {"detector": "cpu", "signal": "cpu_busy", "unit": "percent", "subject_rank": rank}
    return Health(*_leading(rank, seq, at), value=percent, **(fields | more))


def compute(rank, seq, start, end):
    return Compute(*_leading(rank, seq, start), start_ns=T0 + start, end_ns=T0 + end)


class LocalNews:
    """The news of rows in a list."""

    def __init__(self, rows):
        self._rows = {name: [] for name in [*EVENT_TABLES, "open"]}
        for row in rows:
            name = _NAMES[type(row)]
            is_open = name == "collectives" and row.done_seq is None and not row.completed
            self._rows["open" if is_open else name].append(row)

    @property
    def place(self):
        return {name: len(self._rows[name]) for name in EVENT_TABLES}

    def after(self, place, table):
        return [events_to_table(table, self._rows[table][place.get(table, 0) :])]

    def open(self):
        return events_to_table("collectives", self._rows["open"])


class LocalRun:
    """A run whose rows are in a list; ``results`` hold an analysis when ``judged`` is set."""

    run_id = RUN

    def __init__(self, rows=(), is_live=False):
        self.rows = list(rows)
        self.is_live = is_live
        self.judged = False
        self.results = {}
        self.num_queries = 0

    def meta(self):
        return make_meta(run_id=RUN, created_ns=T0, ended_ns=None)

    def version(self):
        return f"{len(self.rows)}"

    def is_open(self):
        return self.is_live

    def marks(self):
        return None

    def is_judged_whole(self):
        return self.judged

    def query_at(self, sql):
        return self.query(sql), self.news()

    def news(self):
        return LocalNews(self.rows) if self.is_live else None

    def query(self, sql):
        self.num_queries += 1
        rows = list(self.rows)
        with duckdb.connect() as db:
            for name, table in TABLES.items():
                if table.kind == "event":
                    mine = [row for row in rows if _NAMES[type(row)] == name]
                    db.register(name, events_to_table(name, mine))
                else:
                    db.register(name, self.results.get(name, empty_table(name)))
            return db.sql(sql).to_arrow_table()
