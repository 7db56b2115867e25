"""The hot database: batches that are in no Parquet file yet, which seqs are stored, the runs.

One connection, one writer. A commit is one INSERT of whole batches, not one a table: with the twenty
tables of the schema, an INSERT a table costs 2 to 5 ms each and made a commit of 500 rows take 50 ms
(docs/decisions/0017). What a batch adds to the marks follows from its rows, so both are durable in one
transaction.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import duckdb
import pyarrow as pa

from cascade_runtime.vocabulary.errors import BadUsage
from collector.data_folder import runs_folder
from collector.hot.aside import is_unfinished
from collector.hot.sift import Part

DATABASE = "hot.duckdb"
_FEW = 8
"""Rows of the journal that one statement takes as values. An Arrow table costs 1.5 ms beside its rows."""

_SCHEMA = """
CREATE TABLE IF NOT EXISTS journal (
    commit_no BIGINT, run_id VARCHAR, media_type VARCHAR, body BLOB);
CREATE TABLE IF NOT EXISTS runs (
    run_id VARCHAR, state VARCHAR, meta BLOB, first_seen_ns BIGINT, last_seen_ns BIGINT,
    num_rows BIGINT, commit_no BIGINT, orphans BLOB);
CREATE TABLE IF NOT EXISTS spans (
    run_id VARCHAR, rank INTEGER, incarnation INTEGER, kind VARCHAR, first_seq BIGINT,
    last_seq BIGINT);
CREATE TABLE IF NOT EXISTS damaged (run_id VARCHAR, rank INTEGER, incarnation INTEGER);
"""
_JOURNAL = pa.schema(
    [
        ("commit_no", pa.int64()),
        ("run_id", pa.string()),
        ("media_type", pa.string()),
        ("body", pa.binary()),
    ]
)
_RUNS = pa.schema(
    [
        ("run_id", pa.string()),
        ("state", pa.string()),
        ("meta", pa.binary()),
        ("first_seen_ns", pa.int64()),
        ("last_seen_ns", pa.int64()),
        ("num_rows", pa.int64()),
        ("commit_no", pa.int64()),
        ("orphans", pa.binary()),
    ]
)
_SPANS = pa.schema(
    [
        ("run_id", pa.string()),
        ("rank", pa.int32()),
        ("incarnation", pa.int32()),
        ("kind", pa.string()),
        ("first_seq", pa.int64()),
        ("last_seq", pa.int64()),
    ]
)
_DAMAGED = pa.schema([("run_id", pa.string()), ("rank", pa.int32()), ("incarnation", pa.int32())])


class RunRow(NamedTuple):
    """A run in the ``runs`` table.

    Attributes:
        state: ``hot``, ``cold`` (everything is in segments), ``dropped``.
        meta: its trace.json; None when none was sent.
        num_rows: stored rows at ``commit_no``.
        commit_no: everything up to this commit is in the run's folder.
        orphans: MessagePack of completions whose entered record is missing.
    """

    run_id: str
    state: str
    meta: bytes | None
    first_seen_ns: int
    last_seen_ns: int
    num_rows: int
    commit_no: int
    orphans: bytes | None


class JournalRow(NamedTuple):
    """A batch, or what was new in it."""

    commit_no: int
    run_id: str
    media_type: str
    body: bytes


SpanRow = tuple[str, int, int, str, int, int]
"""(run_id, rank, incarnation, ``stored`` or ``covered``, first seq, last seq)"""


class Journal:
    """Opens (or makes) the hot database of a data folder.

    Args:
        data: the data folder.
        memory_limit: for DuckDB.
        checkpoint_bytes: size of the write-ahead log at which it is folded into the file. Replaying
            233 MB took 1.9 s (docs/decisions/0017).

    Raises:
        BadUsage: the files are damaged, or another process has them.
    """

    def __init__(
        self, data: Path, *, memory_limit: str = "1GB", checkpoint_bytes: int = 256 << 20
    ) -> None:
        self.path = data / DATABASE
        self._config: dict[str, str | bool | int | float | list[str]] = {
            "storage_compatibility_version": "v1.5.0",
            "checkpoint_threshold": f"{checkpoint_bytes}B",
            "memory_limit": memory_limit,
            "threads": "1",
            "autoinstall_known_extensions": "false",
            "autoload_known_extensions": "false",
        }
        self._con = self._connect()

    def _connect(self) -> duckdb.DuckDBPyConnection:
        try:
            con = duckdb.connect(str(self.path), config=self._config)
            con.execute(_SCHEMA)
        except duckdb.Error as error:
            raise _cannot_open(self.path, error) from error
        self._inserts: dict[int, duckdb.Statement] = {}  # of this connection
        return con

    def reopen(self, last_commit: int) -> None:
        """Connect anew: after a fatal error nothing else helps.

        Whether a commit that failed is durable is not known, and its sender was told no; so what
        there is of it is removed, or the rows would be there twice when they are sent again.

        Args:
            last_commit: the last commit that was acknowledged.

        Raises:
            BadUsage: as the constructor.
            duckdb.Error: it fails again.
        """
        self.close()
        self._con = self._connect()
        self._con.execute("DELETE FROM journal WHERE commit_no > ?", [last_commit])

    def close(self) -> None:
        """Close; the write-ahead log stays when it cannot be folded in."""
        try:
            self._con.close()
        except duckdb.Error:
            return  # the next start replays the log

    # ---- writing: every call is one transaction --------------------------------------------------

    def commit(self, number: int, parts: Sequence[Part], new_runs: Sequence[RunRow]) -> None:
        """Make the parts of one group durable under one commit number.

        Raises:
            duckdb.Error: nothing was stored.
        """
        rows = [(number, part.run_id, part.media_type, part.body) for part in parts]

        def write() -> None:
            if 0 < len(rows) <= _FEW:
                self._con.execute(self._insert_of(len(rows)), [v for row in rows for v in row])
            else:
                self._insert("journal", _table_of(rows, _JOURNAL))
            if new_runs:
                self._insert_runs(new_runs)

        if new_runs:
            self._transaction(write)
        else:  # one statement is a transaction by itself, and BEGIN and COMMIT took a third of it
            write()

    def flushed(
        self, run: RunRow, spans: Iterable[SpanRow], damaged: Iterable[tuple[int, int]]
    ) -> None:
        """Everything of a run up to ``run.commit_no`` is in its folder: forget those batches.

        Raises:
            duckdb.Error: nothing was changed.
        """
        rows = _table_of(spans, _SPANS)
        actors = _table_of(((run.run_id, *actor) for actor in damaged), _DAMAGED)

        def write() -> None:
            key = [run.run_id]
            self._con.execute(
                "DELETE FROM journal WHERE run_id = ? AND commit_no <= ?", [*key, run.commit_no]
            )
            for table in ("spans", "damaged"):
                self._con.execute(f"DELETE FROM {table} WHERE run_id = ?", key)  # noqa: S608
            self._insert("spans", rows)
            self._insert("damaged", actors)
            self._insert_runs([run])

        self._transaction(write)

    def put_meta(self, run: RunRow) -> None:
        """Store the run's trace.json; of a run that is there, commit and orphans stay as they are.

        Raises:
            duckdb.Error: nothing was changed.
        """

        def write() -> None:
            changed = self._con.execute(
                "UPDATE runs SET state = ?, meta = ?, last_seen_ns = ? WHERE run_id = ?",
                [run.state, run.meta, run.last_seen_ns, run.run_id],
            ).fetchall()
            if not changed[0][0]:
                self._insert_runs([run])

        self._transaction(write)

    def drop(self, run: RunRow) -> None:
        """Forget everything of a run but that it was dropped."""

        def write() -> None:
            for table in ("journal", "spans", "damaged"):
                self._con.execute(
                    f"DELETE FROM {table} WHERE run_id = ?",  # noqa: S608
                    [run.run_id],
                )
            self._insert_runs([run])

        self._transaction(write)

    def checkpoint(self) -> None:
        """Fold the write-ahead log into the file."""
        self._con.execute("CHECKPOINT")

    def log_bytes(self) -> int:
        """Size of the write-ahead log: what the next start would replay."""
        try:
            return self.path.with_name(f"{DATABASE}.wal").stat().st_size
        except OSError:
            return 0

    # ---- reading, at the start -------------------------------------------------------------------

    def runs(self) -> list[RunRow]:
        """Every run that was ever seen."""
        return [RunRow(*row) for row in self._rows("SELECT * FROM runs")]

    def spans(self) -> list[SpanRow]:
        """What is stored, as of each run's last flush."""
        return self._rows("SELECT * FROM spans")

    def damaged(self) -> list[tuple[str, int, int]]:
        """Actors of which acknowledged rows may have been lost in a recovery."""
        return self._rows("SELECT * FROM damaged")

    def batches(self) -> list[JournalRow]:
        """The batches that are in no file yet, in the order of their commits."""
        query = "SELECT * FROM journal ORDER BY commit_no, rowid"
        return [JournalRow(*row) for row in self._rows(query)]

    def _rows(self, query: str) -> list[Any]:
        return self._con.execute(query).fetchall()

    # ---- inside ----------------------------------------------------------------------------------

    def _insert_of(self, num_rows: int) -> duckdb.Statement:
        """The statement that inserts so many batches; it is parsed once."""
        found = self._inserts.get(num_rows)
        if found is None:
            values = ", ".join(["(?, ?, ?, ?)"] * num_rows)
            (found,) = self._con.extract_statements(f"INSERT INTO journal VALUES {values}")  # noqa: S608
            self._inserts[num_rows] = found
        return found

    def _transaction(self, write: Callable[[], None]) -> None:
        self._con.execute("BEGIN")
        try:
            write()
            self._con.execute("COMMIT")
        except duckdb.Error:
            with contextlib.suppress(duckdb.Error):  # a fatal error ended the connection too
                self._con.execute("ROLLBACK")
            raise

    def _insert(self, table: str, rows: pa.Table) -> None:
        if rows.num_rows:
            self._con.execute(f"INSERT INTO {table} SELECT * FROM rows")  # noqa: S608

    def _insert_runs(self, runs: Sequence[RunRow]) -> None:
        rows = _table_of(runs, _RUNS)
        if rows.num_rows:
            self._con.execute("DELETE FROM runs WHERE run_id IN (SELECT run_id FROM rows)")
            self._insert("runs", rows)


def open_journal(data: Path) -> Journal:
    """The journal of a data folder; a new one only where there is no run yet.

    Raises:
        BadUsage: it is damaged; it is gone and there are runs, of which it knew more than their files.
    """
    if is_unfinished(data):
        raise BadUsage(
            "a recovery of this data folder was cut short",
            where=str(data),
            hint=f"cascade recover {data}   (goes on with it)",
        )
    runs = runs_folder(data)
    if not (data / DATABASE).exists() and any(not f.name.startswith(".") for f in runs.glob("*")):
        raise BadUsage(
            "the hot database is gone, and there are runs",
            where=str(data / DATABASE),
            hint=f"cascade recover {data}   (makes a new one from the runs' files)",
        )
    return Journal(data)


def _table_of(rows: Iterable[Sequence[Any]], schema: pa.Schema) -> pa.Table:
    columns = list(zip(*rows, strict=True)) or [()] * len(schema)
    arrays = [pa.array(c, f.type) for c, f in zip(columns, schema, strict=True)]
    return pa.Table.from_arrays(arrays, schema=schema)


def _cannot_open(path: Path, error: duckdb.Error) -> BadUsage:
    text = " ".join(str(error).split())[:300]
    if "lock" in text.lower() and "Conflicting" in text:
        return BadUsage(
            "another process has this data folder open",
            where=str(path),
            hint="stop the other collector, or give another --data",
        )
    return BadUsage(
        f"the hot database cannot be opened: {text}",
        where=str(path),
        hint=f"cascade recover {path.parent}   (keeps the damaged file, says what is missing)",
    )
