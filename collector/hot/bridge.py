"""Holes that a recovery left: the first rows that come above one say how wide it is.

``cascade recover`` cannot know which acknowledged rows a damaged write-ahead log held. When the
sender goes on above what is stored, the stretch between was acknowledged and lost, so it becomes a
``gaps`` row of reason ``corrupt`` and later checks say unknown instead of accusing somebody.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from cascade_runtime.vocabulary.events import CollectiveDone, Event, Gaps, Record
from collector.hot.run import ANY_ACTOR, Run
from collector.hot.sift import Part
from collector.hot.spans import Known
from collector.schema.rows import table_to_events
from collector.wire.batch import MSGPACK, Batch
from collector.wire.records import encode_msgpack

ActorPair = tuple[int, int]


def bridge(run: Run, batch: Batch, known_of: Callable[[ActorPair], Known]) -> list[Part]:
    """Gaps rows for the damaged actors that go on in this batch; their holes are known then."""
    lowest: dict[ActorPair, Event] = {}
    for record in _rows(batch):
        actor = (record.rank, record.incarnation)
        if record.run_id != run.run_id or not is_damaged(run, actor):
            continue
        if record.seq > known_of(actor).last:
            lower = lowest.get(actor)
            lowest[actor] = record if lower is None or record.seq < lower.seq else lower
    parts = []
    for actor, row in lowest.items():
        run.damaged = run.damaged - {actor}
        known = known_of(actor)
        gaps = gaps_rows(known, row.seq, row)
        if gaps:
            parts.append(part_of(run.run_id, actor, gaps))
    return parts


def is_damaged(run: Run, actor: ActorPair) -> bool:
    """True when acknowledged rows of the actor may have been lost."""
    return actor in run.damaged or (ANY_ACTOR in run.damaged and actor not in run.known)


def gaps_rows(known: Known, below: int, like: Event) -> list[Record]:
    """A gaps row for each hole below a seq; they are in ``known`` then.

    Args:
        known: of the actor.
        below: rows from here on are not missing.
        like: a row of the actor; time and group are taken from it.
    """
    gaps: list[Record] = []
    for first, last in known.holes(below):
        known.stored.add(first, first)  # the row itself
        known.covered.add(first, last)
        gaps.append(_gap(like, first, last))
    return gaps


def part_of(run_id: str, actor: ActorPair, rows: list[Record]) -> Part:
    """Rows of ours as a part of a commit."""
    return Part(run_id, MSGPACK, encode_msgpack(rows), rows, None, len(rows), 0, [actor])


def _rows(batch: Batch) -> Iterable[Event]:
    if batch.records is not None:
        return [record for record in batch.records if not isinstance(record, CollectiveDone)]
    rows: list[Event] = []
    for name, table in (batch.tables or {}).items():
        rows += table_to_events(name, table)
    return rows


def _gap(after: Event, first: int, last: int) -> Gaps:
    """The row takes the first missing seq; its time is that of the row behind the hole."""
    return Gaps(
        after.run_id, after.rank, after.incarnation, first, after.group_id, None, None, None,
        after.wall_ns, after.mono_ns, first_seq=first, last_seq=last,
        num_events=last - first + 1, tables=None, reason="corrupt",
    )  # fmt: skip
