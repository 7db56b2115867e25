"""Opens a damaged data folder: keeps what was damaged, rebuilds the catalog from the runs' own files.

The runs' Parquet files are at most a few seconds behind what was acknowledged, so what a damaged
write-ahead log takes with it is those seconds. Which rows they held nobody knows; when a sender goes
on above what is left, the hole becomes a ``gaps`` row (bridge.py).
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import duckdb
import msgspec
import numpy as np

from cascade_runtime.vocabulary.errors import BadTrace, BadUsage, CascadeError
from cascade_runtime.vocabulary.schema import EVENT_TABLES
from cascade_runtime.vocabulary.trace_meta import parse_trace_meta
from collector.data_folder import run_folder, runs_folder
from collector.hot.catalog import restore
from collector.hot.journal import DATABASE, Journal, RunRow
from collector.hot.run import Run
from collector.hot.sift import Part
from collector.schema.arrow import arrow_schema
from collector.trace.durable import alone_in
from collector.trace.parquet_files import read_file

_DAMAGED = "damaged"
_KEYS = ("run_id", "rank", "incarnation", "seq")


class ActorEnd(msgspec.Struct, frozen=True):
    """An actor of which acknowledged rows may be missing above ``last_seq``; -1: it has no rows."""

    run_id: str
    rank: int
    incarnation: int
    last_seq: int


class RecoverReport(msgspec.Struct, frozen=True):
    """What a recovery did.

    Attributes:
        kept: what was damaged, where it is now.
        num_rows: rows that are there after it.
        num_rows_restored: of those, rows that the hot database did not know any more.
        gaps: actors of which rows may be missing.
        sentences: all of it for people.
    """

    kept: list[str]
    num_rows: int
    num_rows_restored: int
    gaps: list[ActorEnd]
    sentences: list[str]


def recover(data: Path) -> RecoverReport:
    """Make a data folder usable again; does nothing when it is.

    Raises:
        BadUsage: no data folder, or a collector has it open.
    """
    if not runs_folder(data).is_dir():
        raise BadUsage(
            "this is no data folder: it has no runs/",
            where=str(data),
            hint="give the folder of cascade serve --data",
        )
    with alone_in(data, "using"):
        aside = _Aside(data)
        journal = _open(data, aside)
        try:
            return _rebuild(data, journal, aside)
        finally:
            journal.close()


class _Aside:
    """Moves damaged files into ``DATA/damaged/<time>/``, under the path that they had."""

    def __init__(self, data: Path) -> None:
        self._data = data
        self._folder = data / _DAMAGED / time.strftime("%Y%m%d-%H%M%S")
        self.kept: list[str] = []

    def move(self, file: Path) -> None:
        if not file.exists():
            return
        target = self._folder / file.relative_to(self._data)
        number = 0
        while target.exists():
            number += 1
            target = target.with_name(f"{file.name}.{number}")
        target.parent.mkdir(parents=True, exist_ok=True)
        file.rename(target)
        self.kept.append(str(target))


def _open(data: Path, aside: _Aside) -> Journal:
    """The hot database: as it is, without its log, or a new one."""
    database = data / DATABASE
    log = database.with_name(f"{DATABASE}.wal")
    for damaged in ((), (log,), (database, log)):
        for file in damaged:
            aside.move(file)
        journal = _open_one(data)
        if journal is not None:
            return journal
    raise BadUsage("no new hot database can be made", where=str(data), hint="check the disk")


def _open_one(data: Path) -> Journal | None:
    """The hot database when all of it can be read, else None."""
    try:
        journal = Journal(data)
    except BadUsage:
        return None
    try:
        for read in (journal.runs, journal.spans, journal.damaged, journal.batches):
            read()
    except duckdb.Error:
        journal.close()
        return None
    return journal


def _rebuild(data: Path, journal: Journal, aside: _Aside) -> RecoverReport:
    known = {row.run_id: row for row in journal.runs()}
    rows = [row for row in known.values() if row.state != "dropped"]
    rows += [row for row in _rows_of_folders(data) if row.run_id not in known]
    known_rows = {row.run_id: row.num_rows for row in rows}
    lost_log = bool(aside.kept)
    num_rows = num_restored = 0
    gaps: list[ActorEnd] = []
    for row in rows:
        run = Run(row, run_folder(data, row.run_id))
        damaged_before = len(aside.kept)
        _read_files(run, aside)
        left = [batch for batch in journal.batches() if batch.run_id == row.run_id]
        run.state = row.state if row.state == "cold" and not left else "hot"
        stored = run.num_rows
        restore(run, row.orphans, left)
        if len(aside.kept) > damaged_before or (lost_log and run.state == "hot"):
            run.damaged = set(run.known)
        gaps += [ActorEnd(run.run_id, *a, run.known_of(a).last) for a in sorted(run.damaged)]
        num_rows += run.num_rows
        num_restored += max(0, stored - known_rows[row.run_id])
        journal.flushed(run.row(row.commit_no, run.rows.orphans()), run.span_rows(), run.damaged)
    journal.checkpoint()
    return RecoverReport(
        aside.kept, num_rows, num_restored, gaps, _sentences(aside.kept, num_rows, gaps)
    )


def _rows_of_folders(data: Path) -> Iterator[RunRow]:
    """A catalog row for each run folder that has a trace.json."""
    for root in sorted(runs_folder(data).iterdir()):
        file = root / "trace.json"
        if root.name.startswith(".") or not file.is_file():
            continue
        try:
            text = file.read_bytes()
            meta = parse_trace_meta(text, str(file))
        except (OSError, CascadeError):
            continue
        if run_folder(data, meta.run_id) == root:
            now = time.time_ns()
            sent = None if meta.mode == "imported" and meta.policy is None else text
            yield RunRow(meta.run_id, "hot", sent, meta.created_ns, now, 0, 0, None)


def _read_files(run: Run, aside: _Aside) -> None:
    """Set the run's spans to what its files hold; files that cannot be read whole are moved away."""
    run.known = {}
    for name in EVENT_TABLES:
        for file in sorted(run.files.folder(name).glob("*.parquet")):
            try:
                read_file(file, str(file), name, [c.name for c in EVENT_TABLES[name].columns])
                keys = read_file(file, str(file), name, _KEYS)
            except BadTrace:
                aside.move(file)
                continue
            _add_keys(
                run, keys["rank"].to_numpy(), keys["incarnation"].to_numpy(), keys["seq"].to_numpy()
            )
    _add_gaps(run)


def _add_keys(run: Run, rank: np.ndarray, incarnation: np.ndarray, seq: np.ndarray) -> None:
    order = np.lexsort((seq, incarnation, rank))
    rank, incarnation, seq = rank[order], incarnation[order], seq[order]
    new_span = (np.diff(rank) != 0) | (np.diff(incarnation) != 0) | (np.diff(seq) > 1)
    if not len(seq):
        return
    starts = np.concatenate(([0], np.flatnonzero(new_span) + 1))
    ends = np.concatenate((np.flatnonzero(new_span), [len(seq) - 1]))
    for start, end in zip(starts, ends, strict=True):
        actor = (int(rank[start]), int(incarnation[start]))
        run.known_of(actor).stored.add(int(seq[start]), int(seq[end]))


def _add_gaps(run: Run) -> None:
    """Holes that gaps rows account for."""
    columns = arrow_schema("gaps").names
    for file in sorted(run.files.folder("gaps").glob("*.parquet")):
        rows = {"gaps": read_file(file, str(file), "gaps", columns)}
        run.cover(Part(run.run_id, "", b"", None, rows, 0, 0, []))


def _sentences(kept: list[str], num_rows: int, gaps: list[ActorEnd]) -> list[str]:
    if not kept:
        return [f"nothing is damaged: {num_rows} rows are there"]
    said = [f"kept, damaged as it is: {file}" for file in kept]
    said.append(f"{num_rows} rows are there")
    said += [
        f"run {end.run_id}, rank {end.rank} incarnation {end.incarnation}: rows above seq "
        f"{end.last_seq} that were acknowledged may be missing"
        for end in gaps
    ]
    if gaps:
        said.append("where a sender goes on above that, the hole becomes a gaps row")
    return said
