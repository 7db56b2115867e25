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

from cascade_runtime.vocabulary.errors import BadTrace, BadUsage, CascadeError
from cascade_runtime.vocabulary.events import Gaps
from cascade_runtime.vocabulary.schema import EVENT_TABLES
from cascade_runtime.vocabulary.trace_meta import parse_trace_meta
from collector.data_folder import run_folder, runs_folder
from collector.hot.aside import Aside
from collector.hot.bridge import gaps_rows
from collector.hot.journal import DATABASE, Journal, JournalRow, RunRow
from collector.hot.restore import KEYS, know, restore
from collector.hot.run import ANY_ACTOR, Run
from collector.hot.run_files import check_note
from collector.schema.arrow import arrow_schema
from collector.trace.durable import alone_in, publish
from collector.trace.parquet_files import read_file
from collector.trace.trace_writer import write_views


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
        aside = Aside(data)
        was_gone = not (data / DATABASE).exists()
        journal = _open(data, aside)
        try:
            return _rebuild(data, journal, aside, was_gone)
        finally:
            journal.close()


def _open(data: Path, aside: Aside) -> Journal:
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


def _rebuild(data: Path, journal: Journal, aside: Aside, was_gone: bool) -> RecoverReport:
    lost_log = was_gone or aside.goes_on or bool(aside.kept)
    known = {row.run_id: row for row in journal.runs()}
    rows = [row for row in known.values() if row.state != "dropped"]
    rows += [row for row in _rows_of_folders(data, aside) if row.run_id not in known]
    batches: dict[str, list[JournalRow]] = {}
    for batch in journal.batches():
        batches.setdefault(batch.run_id, []).append(batch)
    damaged_before: dict[str, set[tuple[int, int]]] = {}
    for run_id, *actor in journal.damaged():
        damaged_before.setdefault(run_id, set()).add((actor[0], actor[1]))
    num_rows = num_restored = 0
    gaps: list[ActorEnd] = []
    for row in rows:
        run = Run(row, run_folder(data, row.run_id))
        run.damaged = damaged_before.get(row.run_id, set())
        num_moved = len(aside.kept)
        last_wall_ns = _read_files(run, aside)
        stored = run.count_rows()
        left = batches.get(row.run_id, [])
        commit = restore(run, row.orphans, left)
        if left or run.num_published:
            run.state = "hot"
        lost_file = len(aside.kept) > num_moved
        if lost_file or (lost_log and run.state == "hot"):
            commit += 1
            _reckon(run, last_wall_ns, commit)
        actors = sorted(run.damaged - {ANY_ACTOR})
        gaps += [ActorEnd(run.run_id, *actor, run.known_of(actor).last) for actor in actors]
        num_rows += run.num_rows
        num_restored += max(0, stored - row.num_rows)
        _store(run, journal, commit)
    journal.checkpoint()
    aside.finish()
    sentences = _sentences(aside, was_gone, num_rows, gaps)
    return RecoverReport(aside.kept, num_rows, num_restored, gaps, sentences)


def _reckon(run: Run, last_wall_ns: dict[tuple[int, int], int], commit: int) -> None:
    """Acknowledged rows of the run may be gone: say so in the run itself, as far as it is known."""
    run.damaged = {*run.known, ANY_ACTOR}
    run.rows.completions_lost(run.known)
    for actor, known in run.known.items():
        wall_ns = last_wall_ns.get(actor, run.last_seen_ns)
        like = Gaps(run.run_id, *actor, 0, "world", None, None, None, wall_ns, None)
        # Numbers between those that are here; whether there were any above nobody knows yet.
        run.rows.put_records(gaps_rows(known, known.last, like))
    run.rows.commit = commit
    run.num_rows = run.count_rows()


def _store(run: Run, journal: Journal, commit: int) -> None:
    """Bring everything into the run's folder and the catalog up to date with it."""
    snapshot = run.rows.snapshot()
    for name, chunks in snapshot.tables.items():
        run.files.write_tail(name, chunks, commit)
    run.files.write_open(run.rows.open_rows.table(snapshot.open), commit)
    if run.state == "hot":
        text = run.meta_text
        run.files.root.mkdir(parents=True, exist_ok=True)
        publish(run.files.root / "trace.json", lambda out: out.write(text))
        write_views(run.files.root)
    journal.flushed(run.row(commit, snapshot.orphans), run.span_rows(), run.damaged)


def _rows_of_folders(data: Path, aside: Aside) -> Iterator[RunRow]:
    """A catalog row for each run's folder."""
    for root in sorted(runs_folder(data).iterdir()):
        file = root / "trace.json"
        if root.name.startswith(".") or not root.is_dir():
            continue
        now = time.time_ns()
        try:
            text = file.read_bytes()
            meta = parse_trace_meta(text, str(file))
        except (OSError, CascadeError):
            run_id = _run_id_of_rows(root)
            if run_id is not None and run_folder(data, run_id) == root:
                aside.move(file)
                yield RunRow(run_id, "hot", None, now, now, 0, 0, None)
            continue
        if run_folder(data, meta.run_id) == root:
            sent = None if meta.mode == "imported" and meta.policy is None else text
            yield RunRow(meta.run_id, "hot", sent, meta.created_ns, now, 0, 0, None)


def _run_id_of_rows(root: Path) -> str | None:
    """The run_id of the first row in a run's folder that can be read."""
    for file in sorted(root.glob("events/*/*.parquet")):
        try:
            rows = read_file(file, str(file), file.parent.name, ["run_id"])
        except (BadTrace, KeyError):
            continue
        if rows.num_rows:
            return str(rows["run_id"][0])
    return None


def _read_files(run: Run, aside: Aside) -> dict[tuple[int, int], int]:
    """Set the run's spans to what its files hold; files that cannot be read whole are moved away.

    Returns:
        The latest wall_ns of each actor.
    """
    run.known = {}
    latest: dict[tuple[int, int], int] = {}
    for name in EVENT_TABLES:
        for file in sorted(run.files.folder(name).glob("*.parquet")):
            try:
                rows = read_file(file, str(file), name, arrow_schema(name).names)
                check_note(file)
            except BadTrace:
                aside.move(file)
                continue
            know(run, name, rows)
            ends = rows.group_by(list(KEYS[:2])).aggregate([("wall_ns", "max")])
            for rank, incarnation, wall_ns in zip(*ends.to_pydict().values(), strict=True):
                actor = (rank, incarnation)
                latest[actor] = max(latest.get(actor, wall_ns), wall_ns)
    return latest


def _sentences(aside: Aside, was_gone: bool, num_rows: int, gaps: list[ActorEnd]) -> list[str]:
    if not (was_gone or aside.goes_on or aside.kept or gaps):
        return [f"nothing is damaged: {num_rows} rows are there"]
    said = ["a recovery that was cut short was gone on with"] if aside.goes_on else []
    if was_gone:
        said.append("the hot database was gone; a new one was made")
    said += [f"kept, damaged as it is: {file}" for file in aside.kept]
    said.append(f"{num_rows} rows are there")
    said += [f"{_name(end)}: {_missing(end)}" for end in gaps]
    if gaps:
        said.append("where a sender goes on above that, the hole becomes a gaps row")
    return said


def _name(end: ActorEnd) -> str:
    return f"run {end.run_id}, rank {end.rank} incarnation {end.incarnation}"


def _missing(end: ActorEnd) -> str:
    return f"rows above seq {end.last_seq} that were acknowledged may be missing"
