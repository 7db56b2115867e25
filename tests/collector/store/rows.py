"""Rows, batches and what a store should hold of them."""

from __future__ import annotations

import shutil

import msgspec

from cascade_runtime.vocabulary.events import CollectiveDone, Collectives, Gaps, Raw, Steps
from cascade_runtime.vocabulary.schema import EVENT_TABLES
from collector.doorway import joined
from collector.schema.rows import events_to_table, table_to_events
from collector.trace.trace_folder import open_trace
from collector.wire.arrow_body import encode_arrow
from collector.wire.decode import ARROW, MSGPACK, NDJSON, decode
from collector.wire.records import encode_msgpack
from tests.collector.traces import make_meta

RUN = "run-1"
USED = ("collectives", "gaps", "steps")
"""The tables that these tests put rows into."""

TABLE_OF = {table.struct: name for name, table in EVENT_TABLES.items()}


def _leading(seq, rank, incarnation, run):
    return (run, rank, incarnation, seq, "world", 0, None, seq, 2_000 + seq, seq)


def step(seq, rank=0, incarnation=0, run=RUN, **more):
    return Steps(*_leading(seq, rank, incarnation, run), phase="begin", num_samples=8, **more)


def entered(seq, rank=0, incarnation=0, run=RUN, **more):
    fields = {"comm_id": "c", "cseq": seq, "op": "all_reduce", "enter_ns": 5, "completed": False}
    return Collectives(*_leading(seq, rank, incarnation, run), **(fields | more))


def done(seq, rank=0, incarnation=0, run=RUN, **more):
    return CollectiveDone(run, rank, incarnation, seq, done_seq=seq + 1, complete_ns=7, **more)


def gap(seq, first, last, rank=0, run=RUN, reason="dropped"):
    return Gaps(
        *_leading(seq, rank, 0, run),
        first_seq=first,
        last_seq=last,
        num_events=last - first + 1,
        reason=reason,
    )


def raw(seq, text, rank=0, run=RUN):
    return Raw(*_leading(seq, rank, 0, run), source="log", line=seq, text=text, parsed=True)


def steps(first, last, **more):
    """Steps of one actor with the seqs first to last."""
    return [step(seq, **more) for seq in range(first, last + 1)]


def batch(records):
    """A batch as it comes from the wire."""
    return decode(MSGPACK, encode_msgpack(list(records)))


def json_batch(records):
    return decode(NDJSON, b"\n".join(map(msgspec.json.encode, records)))


def arrow_batch(rows):
    """A batch of whole rows in Arrow form."""
    return decode(ARROW, encode_arrow(tables_of(rows)))


def tables_of(rows):
    tables = {}
    for name in EVENT_TABLES:
        mine = [row for row in rows if TABLE_OF[type(row)] == name]
        if mine:
            tables[name] = events_to_table(name, mine)
    return tables


def send(store, *records):
    """Append records as one batch and wait for the receipt."""
    return store.append(batch(records)).result(20)


def rows_of(records):
    """The rows that a store holds after records, however often and in whatever order they came."""
    rows, completions = {}, {}
    for record in records:
        key = (record.run_id, record.rank, record.incarnation, record.seq)
        if isinstance(record, CollectiveDone):
            completions.setdefault(key, record)
        else:
            rows.setdefault(key, record)
    for key, completion in completions.items():
        if key in rows:
            rows[key] = joined(rows[key], completion)
    return in_order(rows.values())


def in_order(rows):
    return sorted(rows, key=lambda row: (row.run_id, row.rank, row.incarnation, row.seq, repr(row)))


def queried(store, run=RUN):
    """Every row of a run (of all runs: None), as SQL shows them."""
    found = []
    for name in USED:
        names = ", ".join(column.name for column in EVENT_TABLES[name].columns)
        rows = store.query(f"SELECT {names} FROM {name}", run)
        found += table_to_events(name, rows)
    return in_order(found)


def in_folder(store, run=RUN):
    """Every row of a run, as a reader of its folder sees them."""
    with open_trace(store.run(run).path) as trace:
        rows = [row for name in USED for row in table_to_events(name, trace.table(name))]
        assert not trace.notes
        return in_order(rows)


def check(store, records, run=RUN):
    """SQL shows exactly these records' rows; so does the folder once they are published."""
    mine = [record for record in records if record.run_id == run]
    expected = rows_of(mine)
    assert queried(store, run) == expected
    store.publish(run)
    assert in_folder(store, run) == expected
    assert queried(store, run) == expected
    assert store.run(run).num_rows == len(expected)


def copy_of(data, target):
    """What a crash at this moment leaves of a data folder that is in use."""
    shutil.copytree(data, target, ignore=shutil.ignore_patterns(".*.tmp"))
    return target


def sent_meta(run=RUN, **changes):
    return make_meta(run_id=run, **changes)
