"""Brings one run back into memory: the catalog's spans, its files, the batches that no file has."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
import numpy as np
import pyarrow as pa

from cascade_runtime.vocabulary.errors import BadTrace
from cascade_runtime.vocabulary.events import CollectiveDone
from collector.hot.hot_rows import HotRows
from collector.hot.journal import JournalRow
from collector.hot.run import Run
from collector.hot.run_files import TableFiles, commit_of_segment
from collector.hot.scanned import new_stretches
from collector.hot.sift import sift
from collector.wire.decode import decode

KEYS = ("rank", "incarnation", "seq")
_orphans = msgspec.msgpack.Decoder(list[CollectiveDone])


def restore(run: Run, orphans: bytes | None, left: Iterable[JournalRow]) -> int:
    """Read a run's newest rows: tails and open collectives, then batches that are in no file.

    Args:
        run: its spans are those of its last flush; they grow by what files and batches hold.
        orphans: MessagePack of the completions without a row at that flush.
        left: journaled batches of the run, in the order of their commits.

    Returns:
        The highest commit that its files or batches name.

    Raises:
        BadTrace: a tail, the open collectives or a new segment cannot be read.
    """
    run.files.clean()
    found = run.files.find_all()
    run.rows = HotRows({name: list(files.segments) for name, files in found.items()})
    commits = {name: files.commit for name, files in found.items()}
    for name, files in found.items():
        _know_files(run, name, files)
        if files.tail is not None:
            run.rows.put_table(name, files.tail)
            run.num_published[name] = files.tail.num_rows
    still_open, open_commit = run.files.find_open()
    try:
        know(run, "collectives", still_open)
        run.rows.put_open(still_open)
        if orphans:
            run.rows.put_records(_orphans.decode(orphans))
    except msgspec.MsgspecError as error:
        raise BadTrace(f"open collectives cannot be read: {error}", where=run.run_id) from error
    highest = max([run.flushed_commit, open_commit, *commits.values()])
    for batch in left:
        _replay(run, batch, commits, open_commit)
        highest = max(highest, batch.commit_no)
    run.rows.commit = highest
    run.num_rows = run.count_rows()
    return highest


def know(run: Run, table: str, rows: pa.Table) -> None:
    """Rows that are in the run's folder are stored, whatever the catalog says."""
    rank, incarnation, seq = (rows[name].to_numpy() for name in KEYS)
    order = np.lexsort((seq, incarnation, rank))
    rank, incarnation, seq = rank[order], incarnation[order], seq[order]
    breaks = (np.diff(rank) != 0) | (np.diff(incarnation) != 0) | (np.diff(seq) > 1)
    if len(seq):
        edges = np.flatnonzero(breaks)
        for start, end in zip([0, *(edges + 1)], [*edges, len(seq) - 1], strict=True):
            actor = (int(rank[start]), int(incarnation[start]))
            run.known_of(actor).stored.add(int(seq[start]), int(seq[end]))
    if table == "gaps":
        run.cover_rows(rows)


def _know_files(run: Run, name: str, files: TableFiles) -> None:
    """What was published after the last flush. Without it, rows could be taken twice after a log
    that lost its end: a disk that lies about syncs.
    """  # noqa: D205
    if files.tail is not None:
        know(run, name, files.tail)
    columns = [*KEYS, *(("first_seq", "last_seq") if name == "gaps" else ())]
    for segment in files.segments:
        commit = commit_of_segment(segment)
        if commit is not None and commit > run.flushed_commit:
            know(run, name, run.files.read_segment(name, segment, columns))


def _replay(run: Run, row: JournalRow, commits: dict[str, int], open_commit: int) -> None:
    """Add the rows of a journaled batch that no file has (see run_files)."""
    batch = decode(row.media_type, row.body)
    if batch.scan is not None and row.commit_no > max([open_commit, *commits.values()]):
        # No file has anything of it, as is usual after a kill: it comes in as it did then.
        stretches = new_stretches(batch.scan)
        if stretches is not None:
            for actor, first, last in stretches:
                run.known_of(actor).stored.add(first, last)
            run.rows.replay_scanned(row.body, batch.scan)
            return
    # Only for what is known of the actors: the journal holds nothing twice.
    for part in sift(batch, lambda key: run.known_of(key[1:]).stored, lambda done: True):
        run.cover(part)
    run.rows.replay(row.commit_no, batch, commits, open_commit)
