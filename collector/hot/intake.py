"""From the queue to the commit: the batches of a group are read and sifted, many at a time.

What reading and sifting cost beside the rows is paid once for all small batches of a run. A batch that
is wrong, or holds what is stored already, harms no other one.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from concurrent.futures import Future
from typing import Any, NamedTuple

from cascade_runtime.vocabulary.errors import CascadeError
from collector.hot.group import Group
from collector.hot.sift import Part, Told
from collector.storage._interface import Receipt, StoreDown
from collector.wire.batch import BadBatch, Batch
from collector.wire.unread import Unread, read_together

_log = logging.getLogger("cascade.store")

_SMALL_ROWS, _SMALL_BYTES, _MOST_TOGETHER = 1000, 128 << 10, 64
"""Batches up to this size, so many of them, are sifted and stored as one. After a crash that one is read
again, and must be within the decoder's own bounds."""


class Job(NamedTuple):
    """A batch in the queue.

    Attributes:
        num_bytes: as it was queued; what is made of it meanwhile may be larger.
    """

    batch: Batch | Unread
    answer: Future[Receipt]
    num_bytes: int


class Read(NamedTuple):
    """A batch that passed every check."""

    batch: Batch
    answer: Future[Receipt]


class Sifted(NamedTuple):
    """What is to be answered when the commit is durable."""

    answer: Future[Receipt]
    parts: Sequence[Part | Told]


def read(jobs: Sequence[Job]) -> list[Read]:
    """Read what nobody has read so far; a batch that is wrong is answered here."""
    left = [job.batch for job in jobs if isinstance(job.batch, Unread)]
    found = iter(read_together(left))
    checked: list[Read] = []
    for job in jobs:
        batch = next(found) if isinstance(job.batch, Unread) else job.batch
        if isinstance(batch, BadBatch):
            fail(job.answer, batch)
        else:
            checked.append(Read(batch, job.answer))
    return checked


def sift_all(jobs: Sequence[Read], group: Group) -> list[Sifted]:
    """Small batches that were scanned together, a run at a time; all others one by one.

    Batches of one run stay in their order. One that cannot be sifted is answered here.
    """
    sifted: list[Sifted] = []
    waiting: dict[str, list[Read]] = {}
    for job in jobs:
        scan = job.batch.scan
        if scan is not None and _is_small(job.batch):
            mine = waiting.setdefault(scan.run_id, [])
            mine.append(job)
            if len(mine) >= _MOST_TOGETHER:
                sifted += _sift_some(waiting.pop(scan.run_id), group)
            continue
        for mine in waiting.values():  # it may be of any of those runs
            sifted += _sift_some(mine, group)
        waiting.clear()
        sifted += _sift_some([job], group)
    for mine in waiting.values():
        sifted += _sift_some(mine, group)
    return sifted


def fail(answer: Future[Any], error: Exception) -> None:
    """Answer with an error, where there is no answer yet."""
    if not answer.done() and answer.set_running_or_notify_cancel():
        answer.set_exception(error)


def _sift_some(jobs: Sequence[Read], group: Group) -> list[Sifted]:
    """Together; where one of them stands in the way, in halves, until it is alone."""
    if len(jobs) == 1:
        return _sift(jobs[0], group)
    try:
        told = group.sift_together([job.batch for job in jobs])
    except Exception:  # whose fault it is shows when they are alone
        told = None
    if told is None:
        half = len(jobs) // 2
        return [*_sift_some(jobs[:half], group), *_sift_some(jobs[half:], group)]
    return [Sifted(job.answer, [part]) for job, part in zip(jobs, told, strict=True)]


def _sift(job: Read, group: Group) -> list[Sifted]:
    try:
        return [Sifted(job.answer, group.sift(job.batch))]
    except CascadeError as error:
        fail(job.answer, error)
    except Exception as error:
        _log.exception("a batch could not be sifted")
        fail(job.answer, StoreDown(f"this batch could not be stored: {error!r}"[:300]))
    return []


def _is_small(batch: Batch) -> bool:
    return batch.num_rows <= _SMALL_ROWS and len(batch.body) <= _SMALL_BYTES
