"""The one doorway: records, from a spool, a file or the wire, become rows of tables.

A record is checked by the codec before it comes here. What is left to do is to join the two records
of a collective (``entered``, then ``done``) into its one row.
"""

from __future__ import annotations

import msgspec
import pyarrow as pa

from cascade_runtime.vocabulary.events import CollectiveDone, Collectives, Event, Record
from cascade_runtime.vocabulary.identity import Actor
from cascade_runtime.vocabulary.schema import EVENT_TABLES
from collector.schema.arrow import empty_table
from collector.schema.rows import events_to_table

_TABLE_OF = {table.struct: table.name for table in EVENT_TABLES.values()}

CollectiveKey = tuple[str, int, int, int]
"""(run_id, rank, incarnation, seq): what joins a done record to its entered record."""


def key_of(record: Collectives | CollectiveDone) -> CollectiveKey:
    """The key that a done record shares with its entered record."""
    return (record.run_id, record.rank, record.incarnation, record.seq)


def joined(entered: Collectives, done: CollectiveDone) -> Collectives:
    """The stored row: the union of the two records."""
    return msgspec.structs.replace(
        entered,
        done_seq=done.done_seq,
        start_ns=entered.start_ns if done.start_ns is None else done.start_ns,
        complete_ns=entered.complete_ns if done.complete_ns is None else done.complete_ns,
        completed=done.completed,
        payload_digest=done.payload_digest or entered.payload_digest,
    )


class Doorway:
    """Takes records one by one and gives them back as Arrow tables.

    Args:
        batch_rows: rows of one table that are held as structs before they become Arrow, which is
            a tenth of the size.
    """

    def __init__(self, batch_rows: int = 100_000) -> None:
        self._batch_rows = batch_rows
        self._rows: dict[str, list[Event]] = {}
        self._batches: dict[str, list[pa.Table]] = {}
        self._open: dict[CollectiveKey, Collectives] = {}
        self._early: dict[CollectiveKey, CollectiveDone] = {}

    def take(self, record: Record) -> None:
        """Take one record; a collective waits here for its completion."""
        if isinstance(record, CollectiveDone):
            entered = self._open.pop(key_of(record), None)
            if entered is None:
                self._early[key_of(record)] = record
            else:
                self._put(joined(entered, record))
        elif isinstance(record, Collectives) and record.done_seq is None and not record.completed:
            self._enter(record)
        else:
            self._put(record)

    def _enter(self, record: Collectives) -> None:
        key = key_of(record)
        done = self._early.pop(key, None)
        if done is not None:
            self._put(joined(record, done))
            return
        twin = self._open.get(key)
        if twin is not None:  # the same number twice: both are kept for whoever judges duplicates
            self._put(twin)
        self._open[key] = record

    def _put(self, row: Event) -> None:
        table = _TABLE_OF[type(row)]
        rows = self._rows.setdefault(table, [])
        rows.append(row)
        if len(rows) >= self._batch_rows:
            self._convert(table)

    def _convert(self, table: str) -> None:
        rows = self._rows.pop(table, [])
        if rows:
            self._batches.setdefault(table, []).append(events_to_table(table, rows))

    def completions_lost(self, actor: Actor) -> None:
        """Completions of ``actor`` up to here may be lost: its open collectives are not known to hang.

        Their ``completed`` becomes null (not known) instead of false.
        """
        for key, entered in list(self._open.items()):
            if (entered.rank, entered.incarnation) == (actor.rank, actor.incarnation):
                del self._open[key]
                self._put(entered)

    def actor_ends(self) -> None:
        """All records of the actors seen so far are in: what is open never completed."""
        for entered in self._open.values():
            self._put(msgspec.structs.replace(entered, completed=False))
        self._open.clear()

    def orphans(self) -> list[CollectiveDone]:
        """Done records whose entered record has not come; they are forgotten here."""
        early = list(self._early.values())
        self._early.clear()
        return early

    def drain(self) -> dict[str, pa.Table]:
        """All rows taken so far, by table; open collectives included, as never completed."""
        self.actor_ends()
        for table in list(self._rows):
            self._convert(table)
        tables = {
            name: pa.concat_tables([empty_table(name), *parts])
            for name, parts in self._batches.items()
        }
        self._batches.clear()
        return tables
