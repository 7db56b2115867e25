"""Holes that a recovery left: the first rows that come above one say how wide it is.

``cascade recover`` cannot know which acknowledged rows a damaged write-ahead log held. When the
sender goes on above what is stored, the stretch between was acknowledged and lost, so it becomes a
``gaps`` row of reason ``corrupt`` and later checks say unknown instead of accusing somebody.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from cascade_runtime.vocabulary.events import CollectiveDone, Gaps, Record
from collector.hot.run import Run
from collector.hot.sift import Part
from collector.hot.spans import Known
from collector.schema.rows import table_to_events
from collector.wire.batch import MSGPACK, Batch
from collector.wire.records import encode_msgpack

ActorPair = tuple[int, int]


def bridge(run: Run, batch: Batch, known_of: Callable[[ActorPair], Known]) -> list[Part]:
    """Gaps rows for the damaged actors that go on in this batch; the hole is known then."""
    lowest: dict[ActorPair, Record] = {}
    for record in _records(batch):
        actor = (record.rank, record.incarnation)
        if record.run_id != run.run_id or actor not in run.damaged:
            continue
        if type(record) is not CollectiveDone and record.seq > known_of(actor).last:
            lower = lowest.get(actor)
            lowest[actor] = record if lower is None or record.seq < lower.seq else lower
    parts = []
    for actor, record in lowest.items():
        known = known_of(actor)
        first, last = known.last + 1, record.seq - 1
        run.damaged = run.damaged - {actor}
        if first > last:
            continue
        known.stored.add(first, first)  # the row itself
        known.covered.add(first, last)
        gap: list[Record] = [_gap(record, first, last)]  # type: ignore[arg-type]
        parts.append(Part(run.run_id, MSGPACK, encode_msgpack(gap), gap, None, 1, 0, [actor]))
    return parts


def _records(batch: Batch) -> list[Record]:
    if batch.records is not None:
        return batch.records
    rows: list[Record] = []
    for name, table in (batch.tables or {}).items():
        rows += cast("list[Record]", table_to_events(name, table))
    return rows


def _gap(after: Gaps, first: int, last: int) -> Gaps:
    """The row takes the first missing seq; its time is that of the row behind the hole."""
    return Gaps(
        after.run_id, after.rank, after.incarnation, first, after.group_id, None, None, None,
        after.wall_ns, after.mono_ns, first_seq=first, last_seq=last,
        num_events=last - first + 1, tables=None, reason="corrupt",
    )  # fmt: skip
