"""Drops from a batch what is stored already, and parts it by run."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cascade_runtime.vocabulary.events import CollectiveDone, Record
from collector.hot.scanned import Completions
from collector.hot.spans import Spans
from collector.wire.arrow_body import encode_arrow
from collector.wire.batch import ARROW, MSGPACK, Batch, Scan
from collector.wire.records import encode_msgpack

ActorKey = tuple[str, int, int]
"""(run_id, rank, incarnation)"""

SpansOf = Callable[[ActorKey], Spans]
WantsDone = Callable[[CollectiveDone], bool]


class Told(NamedTuple):
    """What is said of a batch that was stored together with others.

    Attributes:
        actors: the (rank, incarnation) pairs that it names.
    """

    run_id: str
    num_rows: int
    num_duplicates: int
    actors: list[tuple[int, int]]


class Part(NamedTuple):
    """What a batch brings one run. ``body`` holds exactly the rows that are new.

    Attributes:
        num_rows: new rows and new completions.
        actors: the (rank, incarnation) pairs that it names, duplicates included.
        num_done: completions among ``num_rows``; they take no seq.
        scan: of the body, where the records were not made.
        completions: of the scan.
    """

    run_id: str
    media_type: str
    body: bytes
    records: list[Record] | None
    tables: dict[str, pa.Table] | None
    num_rows: int
    num_duplicates: int
    actors: list[tuple[int, int]]
    num_done: int = 0
    scan: Scan | None = None
    completions: Completions | None = None


def sift(batch: Batch, spans_of: SpansOf, wants_done: WantsDone) -> list[Part]:
    """The new rows of a batch, a part for each run; their seqs are in the spans afterwards.

    Args:
        batch: checked rows.
        spans_of: the spans of an actor, which grow.
        wants_done: whether a completion is new; asked once of each, when the rows of the batch are
            in the spans.
    """
    if batch.records is not None:
        return list(_records(batch, batch.records, spans_of, wants_done))
    return list(_tables(batch, batch.tables or {}, spans_of))


def _records(
    batch: Batch, records: list[Record], spans_of: SpansOf, wants_done: WantsDone
) -> Iterator[Part]:
    seqs: dict[ActorKey, list[int]] = defaultdict(list)
    completions: list[CollectiveDone] = []
    for record in records:
        key = (record.run_id, record.rank, record.incarnation)
        if type(record) is CollectiveDone:
            completions.append(record)
            _ = seqs[key]
        else:
            seqs[key].append(record.seq)
    flags = {key: spans_of(key).take(mine) for key, mine in seqs.items()}
    # The seq of a completion is that of its row, so it says nothing of a repeat: each is looked at.
    wanted = [wants_done(done) for done in completions]
    all_new = all(flag is None for flag in flags.values()) and all(wanted)
    runs = {key[0] for key in seqs}
    kept = records if all_new else _new_ones(records, flags, wanted)
    for run_id in sorted(runs):
        actors = [key[1:] for key in seqs if key[0] == run_id]
        if all_new and len(runs) == 1:
            num_done = len(completions)
            yield Part(
                run_id,
                batch.media_type,
                batch.body,
                records,
                None,
                len(records),
                0,
                actors,
                num_done,
            )
            return
        mine = [record for record in kept if record.run_id == run_id]
        num_done = sum(type(record) is CollectiveDone for record in mine)
        sent = sum(record.run_id == run_id for record in records)
        body = encode_msgpack(mine)
        yield Part(run_id, MSGPACK, body, mine, None, len(mine), sent - len(mine), actors, num_done)


def _new_ones(
    records: list[Record], flags: dict[ActorKey, list[bool] | None], wanted: list[bool]
) -> list[Record]:
    turns = {key: iter(flag) for key, flag in flags.items() if flag is not None}
    next_done = iter(wanted)
    kept: list[Record] = []
    for record in records:
        key = (record.run_id, record.rank, record.incarnation)
        if type(record) is CollectiveDone:
            is_new = next(next_done)
        else:
            is_new = key not in turns or next(turns[key])
        if is_new:
            kept.append(record)
    return kept


def _tables(batch: Batch, tables: dict[str, pa.Table], spans_of: SpansOf) -> Iterator[Part]:
    runs = {run for rows in tables.values() for run in pc.unique(rows["run_id"]).to_pylist()}
    for run_id in sorted(runs):
        if len(runs) == 1:
            mine = tables
        else:
            mine = {n: rows.filter(pc.equal(rows["run_id"], run_id)) for n, rows in tables.items()}
        mine = {name: rows for name, rows in mine.items() if rows.num_rows}
        masks, actors = _new_rows(run_id, mine, spans_of)
        sent = sum(rows.num_rows for rows in mine.values())
        if masks is None:
            body = batch.body if len(runs) == 1 else encode_arrow(mine)
            yield Part(run_id, ARROW, body, None, mine, sent, 0, actors)
            continue
        kept = {name: rows.filter(pa.array(masks[name])) for name, rows in mine.items()}
        num_rows = sum(rows.num_rows for rows in kept.values())
        yield Part(run_id, ARROW, encode_arrow(kept), None, kept, num_rows, sent - num_rows, actors)


def _new_rows(
    run_id: str, tables: dict[str, pa.Table], spans_of: SpansOf
) -> tuple[dict[str, np.ndarray] | None, list[tuple[int, int]]]:
    """A mask a table (None when every row is new), and the actors."""
    rank, incarnation, seq = (
        np.concatenate([rows[name].to_numpy() for rows in tables.values()])
        for name in ("rank", "incarnation", "seq")
    )
    order = np.lexsort((seq, incarnation, rank))
    rank, incarnation, seq = rank[order], incarnation[order], seq[order]
    breaks = np.flatnonzero((np.diff(rank) != 0) | (np.diff(incarnation) != 0)) + 1
    new = np.ones(len(seq), dtype=bool)
    actors = []
    for start, stop in zip([0, *breaks], [*breaks, len(seq)], strict=True):
        actor = (int(rank[start]), int(incarnation[start]))
        actors.append(actor)
        flags = spans_of((run_id, *actor)).take(seq[start:stop].tolist())
        if flags is not None:
            new[start:stop] = flags
    if new.all():
        return None, actors
    in_place = np.empty(len(new), dtype=bool)
    in_place[order] = new
    masks, at = {}, 0
    for name, rows in tables.items():
        masks[name] = in_place[at : at + rows.num_rows]
        at += rows.num_rows
    return masks, actors
