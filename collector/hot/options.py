"""Settings of the embedded store, with the reasons for their values."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class StoreOptions:
    """What ``cascade serve`` may set; defaults suit one machine.

    Attributes:
        publish_every_s: how often new rows come into the runs' folders. Readers of files are at most
            this and the time of writing behind.
        segment_rows: rows of one table at which its tail becomes a segment.
        segment_bytes: the same by size, for rows with long texts.
        group_rows: rows of one commit at most.
        max_queued_rows, max_queued_bytes: above these a batch is refused with 429.
        max_hot_rows, max_hot_bytes: rows that are durable but not in a segment; above it 429, until
            the publisher has caught up.
        min_free_bytes: below this the disk is low, and batches are refused with 507. The publisher
            needs room to write what was taken already.
        give_way_s: how long the writer waits before a commit, and the publisher before a file, while
            a question is answered inside the collector.
        long_log_bytes: a journal's log of this size is emptied when the store is opened, before
            anything new is taken. Replaying so much takes about half a second.
        fold_log_bytes: the same while rows come in, after a round of publishing. It took 0.2 s of
            CPU at 20 to 40 MiB, in the writer; left to itself, DuckDB does it at 256 MiB, at whatever moment.
        idle_s: an ended run without new rows for this long is sealed whole.
        keep_days: runs whose last row came earlier are dropped; None keeps them.
        keep_bytes: the oldest runs are dropped while all are larger; None keeps them.
        wall_ns, mono_s: the clocks.
    """

    publish_every_s: float = 2.0
    segment_rows: int = 128 * 1024
    segment_bytes: int = 64 << 20
    group_rows: int = 50_000
    max_queued_rows: int = 500_000
    max_queued_bytes: int = 256 << 20
    max_hot_rows: int = 4_000_000
    max_hot_bytes: int = 2 << 30
    min_free_bytes: int = 256 << 20
    give_way_s: float = 0.05
    long_log_bytes: int = 32 << 20
    fold_log_bytes: int = 96 << 20
    idle_s: float = 5.0
    keep_days: float | None = None
    keep_bytes: int | None = None
    wall_ns: Callable[[], int] = time.time_ns
    mono_s: Callable[[], float] = time.monotonic
