"""Unique rows in the table mix of a recorded run: the packaged sample ``kill-one``, told again and again.

A host's stream is the sample's records in the order in which its actors wrote them, with a fresh actor
for each of the sample's and times moved to now; at the sample's end the actors come back as their next
incarnation. So no row is there twice, the seqs of every actor are contiguous from 0, and tables, columns
and the sizes of values are those of a real job. A collective is two records, as on the wire; only rows
are counted, never completions.
"""

from __future__ import annotations

import functools
import heapq
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import zstandard

from cascade_runtime.vocabulary.events import EVENT_TYPES, Event
from cascade_runtime.vocabulary.schema import EVENT_TABLES
from cascade_runtime.vocabulary.trace_meta import TraceMeta
from collector.schema.rows import events_to_table, table_to_events
from collector.trace.trace_folder import TraceFolder
from collector.wire.arrow_body import encode_arrow
from collector.wire.batch import ARROW, MSGPACK, NDJSON

SAMPLE = Path(__file__).parents[1] / "sample_traces" / "kill-one"
DONE = "collective_done"
FORMS = (MSGPACK, ARROW, NDJSON)
AGE_S = 600
"""Rows are dated from this long ago on, so that a run's last minute holds many of them."""

Record = list[Any]
"""As on the wire: table, then the fields."""

_RANK, _INCARNATION, _SEQ, _FIRST_FIELD = 2, 3, 4, 1
_DONE_DONE_SEQ, _DONE_START, _DONE_COMPLETE, _DONE_COMPLETED, _DONE_DIGEST = range(5, 10)


class Item(NamedTuple):
    """One record of the sample."""

    actor: int
    wall_ns: int
    record: Record
    done: Record | None
    """Of a collective that completed: its completion."""
    ns_fields: tuple[int, ...]


class Sample(NamedTuple):
    """The sample's records, as one host would write them."""

    items: list[Item]
    """Rows and completions, in order."""
    num_rows: int
    num_actors: int
    span_ns: int
    meta: TraceMeta


class Taken(NamedTuple):
    """One batch: its records, and what they bring each actor."""

    records: list[Record]
    num_rows: int
    actors: dict[tuple[int, int], tuple[int, int, int]]
    """(rank, incarnation): (first seq, last seq, number of completions)."""


def _at(table: str, column: str) -> int:
    names = [c.name for c in EVENT_TABLES[table].columns]
    return names.index(column) + _FIRST_FIELD


_C = {
    name: _at("collectives", name)
    for name in ("done_seq", "start_ns", "complete_ns", "completed", "payload_digest")
}


@functools.cache
def sample() -> Sample:
    """The packaged sample's records."""
    actors: dict[tuple[int, int], list[Any]] = {}
    with TraceFolder(SAMPLE) as trace:
        meta = trace.meta
        for name in EVENT_TABLES:
            for event in table_to_events(name, trace.table(name)):
                actors.setdefault((event.rank, event.incarnation), []).append(event)
    streams = [
        list(_actor_items(number, sorted(actors[key], key=lambda e: e.seq)))
        for number, key in enumerate(sorted(actors))
    ]
    items = list(heapq.merge(*streams, key=lambda item: item.wall_ns))
    num_rows = sum(item.record[0] != DONE for item in items)
    return Sample(items, num_rows, len(actors), items[-1].wall_ns - items[0].wall_ns + 10**6, meta)


def _actor_items(number: int, events: list[Any]) -> Iterator[Item]:
    """An actor's records in the order in which it wrote them."""
    waiting: dict[int, list[Record]] = {}
    wall_ns = 0
    for event in events:
        wall_ns = max(wall_ns, event.wall_ns)
        for done in waiting.pop(event.seq, ()):
            yield Item(number, wall_ns, done, None, (_DONE_START, _DONE_COMPLETE))
        record: Record = msgspec.to_builtins(event)
        done_record = None
        if record[0] == "collectives" and record[_C["done_seq"]] is not None:
            record, done_record = _split(record)
            waiting.setdefault(event.done_seq, []).append(done_record)
        yield Item(number, wall_ns, record, done_record, _ns_fields(record[0]))
    for seq in sorted(waiting):
        for done in waiting[seq]:
            yield Item(number, wall_ns, done, None, (_DONE_START, _DONE_COMPLETE))


def _split(record: Record) -> tuple[Record, Record]:
    """A stored collective as the two records that it was."""
    done = [DONE, *record[1:_SEQ], record[_SEQ]]
    done += [record[_C[n]] for n in ("done_seq", "start_ns", "complete_ns", "completed")]
    done.append(record[_C["payload_digest"]])
    entered = list(record)
    for name in ("done_seq", "start_ns", "complete_ns", "payload_digest"):
        entered[_C[name]] = None
    entered[_C["completed"]] = False
    return entered, done


def _ns_fields(table: str) -> tuple[int, ...]:
    columns = EVENT_TABLES[table].columns
    return tuple(i + _FIRST_FIELD for i, c in enumerate(columns) if c.name.endswith("_ns"))


class Host:
    """An endless stream of one host's records.

    Args:
        run_id: of all of them.
        number: of the host; its actors' ranks follow from it.
        start: where in the sample it begins, so that hosts are not all at the same place.
        whole: collectives as whole rows, as Arrow bodies and other databases take them.
    """

    def __init__(self, run_id: str, number: int, *, start: int = 0, whole: bool = False) -> None:
        self._sample = sample()
        self._run_id = run_id
        self._first_rank = number * self._sample.num_actors
        self._whole = whole
        self._at = start % len(self._sample.items)
        self._lap = 0
        self._base: dict[int, int] = {}
        begin_ns = time.time_ns() - AGE_S * 10**9
        self._shift_ns = begin_ns - self._sample.items[self._at].wall_ns

    def take(self, num_rows: int) -> Taken:
        """The next rows, grouped by actor as an agent sends them, completions between them."""
        records: list[Record] = []
        taken = 0
        while taken < num_rows:
            item = self._next()
            made = self._made(item)
            if made is not None:
                records.append(made)
                taken += made[0] != DONE
        records.sort(key=lambda r: (r[_RANK], r[_INCARNATION]))  # stable
        return Taken(records, taken, _actors(records))

    def _next(self) -> Item:
        if self._at == len(self._sample.items):
            self._at, self._lap, self._base = 0, self._lap + 1, {}
            self._shift_ns += self._sample.span_ns
        item = self._sample.items[self._at]
        self._at += 1
        return item

    def _made(self, item: Item) -> Record | None:
        record = list(item.record)
        is_done = record[0] == DONE
        if is_done and self._whole:
            return None
        base = self._base.get(item.actor)
        if base is None:
            if is_done:
                return None  # it was entered before the place where this host began
            base = self._base[item.actor] = record[_SEQ]
        if record[_SEQ] < base:
            return None
        record[1] = self._run_id
        record[_RANK] = self._first_rank + item.actor
        record[_INCARNATION] = self._lap
        record[_SEQ] -= base
        if is_done:
            record[_DONE_DONE_SEQ] -= base
        elif self._whole and item.done is not None:
            done = item.done
            record[_C["done_seq"]] = done[_DONE_DONE_SEQ] - base
            record[_C["start_ns"]] = done[_DONE_START]
            record[_C["complete_ns"]] = done[_DONE_COMPLETE]
            record[_C["completed"]] = done[_DONE_COMPLETED]
            record[_C["payload_digest"]] = done[_DONE_DIGEST]
        for field in item.ns_fields:
            if record[field] is not None:
                record[field] += self._shift_ns
        return record


def _actors(records: list[Record]) -> dict[tuple[int, int], tuple[int, int, int]]:
    found: dict[tuple[int, int], tuple[int, int, int]] = {}
    for record in records:
        key = (record[_RANK], record[_INCARNATION])
        first, last, done = found.get(key, (-1, -1, 0))
        if record[0] == DONE:
            done += 1
        else:
            first, last = (record[_SEQ] if first < 0 else first), record[_SEQ]
        found[key] = (first, last, done)
    return found


def mix() -> dict[str, float]:
    """Percent of the sample's rows by table, the largest first."""
    counts: dict[str, int] = {}
    for item in sample().items:
        if item.record[0] != DONE:
            counts[item.record[0]] = counts.get(item.record[0], 0) + 1
    total = sum(counts.values())
    return {n: round(100 * c / total, 1) for n, c in sorted(counts.items(), key=lambda x: -x[1])}


def by_table(records: list[Record]) -> dict[str, list[Record]]:
    """Records by table, in order."""
    found: dict[str, list[Record]] = {}
    for record in records:
        found.setdefault(record[0], []).append(record)
    return found


_STRUCTS: dict[str, type[Event]] = {str(s.__struct_config__.tag): s for s in EVENT_TYPES}


def _pack(body: bytes) -> bytes:
    return zstandard.ZstdCompressor(level=1).compress(body)  # one is not for several threads


def body_of(form: str, records: list[Record]) -> tuple[bytes, str | None]:
    """A request's body and its Content-Encoding; Arrow bodies have packed buffers, as a push sends."""
    if form == MSGPACK:  # what the host agent sends
        return _pack(msgspec.msgpack.encode(records)), "zstd"
    if form == NDJSON:
        return _pack(b"\n".join(msgspec.json.encode(r) for r in records)), "zstd"
    tables = {}
    for name, rows in by_table(records).items():
        events = [msgspec.convert(row, _STRUCTS[name]) for row in rows]
        tables[name] = events_to_table(name, events)
    return encode_arrow(tables), None


def request_of(form: str, records: list[Record]) -> bytes:
    """The whole HTTP request that sends the records."""
    body, packing = body_of(form, records)
    head = f"POST /v1/events HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: {form}\r\n"
    if packing is not None:
        head += f"Content-Encoding: {packing}\r\n"
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


def meta_of(run_id: str, num_hosts: int) -> bytes:
    """The trace.json of such a run, as its agents would send it at the start."""
    found = sample()
    meta = msgspec.structs.replace(
        found.meta,
        run_id=run_id,
        name="benchmark",
        world_size=num_hosts * found.num_actors,
        ended_ns=None,
        clean_end=None,
        created_ns=time.time_ns(),
    )
    return msgspec.json.encode(meta)
