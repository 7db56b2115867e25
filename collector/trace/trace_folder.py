"""Opens a trace, a folder or a ``.cascade.zip`` of one, for reading; nothing is ever written to it."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from types import TracebackType

import pyarrow as pa
import pyarrow.compute as pc

from cascade_runtime.vocabulary.errors import BadTrace
from cascade_runtime.vocabulary.ports import SourceNote
from cascade_runtime.vocabulary.schema import EVENT_TABLES, RESULT_TABLES
from cascade_runtime.vocabulary.trace_meta import TraceMeta, parse_trace_meta
from collector.duplicates import distinct, has_repeats
from collector.losses import gaps_rows
from collector.schema.arrow import arrow_schema, empty_table
from collector.schema.rows import events_to_table
from collector.spool_reader import SpoolFolder
from collector.trace.inside import Inside
from collector.trace.late_done import Completed, apply_done
from collector.trace.parquet_files import one_run, read_file
from collector.trace.segment_cache import SegmentCache
from collector.trace.seq_index import SeqIndex
from collector.trace.spool_rows import SpoolRows, read_spool
from collector.trace.unknown_tables import losses_of_unknown_tables
from collector.trace.unzip import ZipLimits, extract_trace

_META_LIMIT = 64 << 20
_KEY = ("rank", "incarnation", "seq")


def open_trace(path: str | Path, limits: ZipLimits | None = None) -> TraceFolder:
    """Open a trace for reading.

    Args:
        path: a trace folder, or one ``.cascade.zip`` of it.
        limits: how large a zip may become; generous defaults.

    Raises:
        BadTrace: it is not there, not a trace, of a newer schema version, or an unsafe zip.
    """
    path = Path(path)
    if path.is_dir():
        return TraceFolder(path)
    if not path.exists():
        raise BadTrace("there is nothing of that name", where=str(path), hint="check the path")
    if not path.is_file():
        raise BadTrace("a trace is a folder or a .cascade.zip file", where=str(path))
    unpacked = tempfile.TemporaryDirectory(prefix="cascade-", ignore_cleanup_errors=True)
    try:
        root = extract_trace(path, Path(unpacked.name), limits or ZipLimits())
        return TraceFolder(root, called=str(path), unpacked=unpacked)
    except BaseException:
        unpacked.cleanup()
        raise


class TraceFolder:
    """A trace that is read from disk; a ``TraceSource`` of the vocabulary, and a context manager.

    Attributes:
        path: the folder that is read (a temporary one for a zip).
        meta: trace.json.
        inputs: what was read, for the report.
        notes: what a reader must know: torn records, rows of other runs, copies dropped. It grows
            while tables are read.

    Args:
        path: the trace folder.
        called: how messages call it, when not by its path.
        leave_spool: names of spool folders that are not read.
        cache: what an earlier reading of the same folder kept.
        unpacked: the temporary folder to remove in the end.

    Raises:
        BadTrace: no trace.json, or one that breaks the contract.
    """

    def __init__(
        self,
        path: Path,
        *,
        called: str | None = None,
        leave_spool: frozenset[str] = frozenset(),
        cache: SegmentCache | None = None,
        unpacked: tempfile.TemporaryDirectory[str] | None = None,
    ) -> None:
        self.path = path
        self._called = called or str(path)
        self._leave_spool = leave_spool
        self._cache = cache or SegmentCache()
        self._unpacked = unpacked
        self._inside = Inside(path)
        self._spool: SpoolRows | None = None
        self._gaps: pa.Table | None = None
        self.notes: list[SourceNote] = []
        self.inputs: list[str] = [self._called]
        self.meta: TraceMeta = self._read_meta()

    def __enter__(self) -> TraceFolder:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Forget what was read; what a zip was unpacked into is removed."""
        self._spool = None
        if self._unpacked is not None:
            self._unpacked.cleanup()

    def table(self, name: str, columns: Sequence[str] | None = None) -> pa.Table:
        """The rows of one event table, of trace.json's run, in no particular order.

        Args:
            name: an event table.
            columns: only these (and in this order); all of the schema's when not given. Leaving out
                ``run_id`` saves much memory in a large trace.

        Raises:
            KeyError: no event table of that name.
            BadTrace: a file of the table cannot be read; file and column are named.
        """
        every = arrow_schema(EVENT_TABLES[name].name).names
        wanted = every if columns is None else list(columns)
        rows = self._all_rows(name, list(dict.fromkeys([*wanted, *_KEY])))
        if has_repeats(rows):
            rows = self._all_rows(name, every)  # whether they are copies, only all columns can tell
            keep = distinct(rows, collectives=name == "collectives")
            num_dropped = rows.num_rows - len(keep)
            if num_dropped:
                what = f"{num_dropped} rows are there twice; one copy each is read"
                self._note(f"events/{name}", what)
                rows = rows.take(pa.array(keep))
        return rows.select(wanted)

    def unsealed(self, name: str) -> pa.Table:
        """The rows of one event table that lie in the spool and in no Parquet file yet.

        Rows made for torn segments are among them.
        """
        every = arrow_schema(name).names
        stored = self._stored(name, every)
        parts = self._rows_beside(name, every)
        if name == "collectives":
            parts.append(self._completed(stored).rows)
        rows = pa.concat_tables([stored, *parts])
        keep = distinct(rows, collectives=name == "collectives")
        return rows.take(pa.array(keep[keep >= stored.num_rows]))

    def spool_folders(self) -> list[SpoolFolder]:
        """The actors' folders in the spool, read."""
        return self._spool_rows().folders

    def _all_rows(self, name: str, columns: Sequence[str]) -> pa.Table:
        """Stored rows, spool rows and those made for losses; copies are still in."""
        beside = self._rows_beside(name, columns)
        if name == "collectives" and self._spool_rows().orphans:
            completed = self._completed(self._stored(name, arrow_schema(name).names))
            stored = [completed.rest.select(columns), completed.rows.select(columns)]
        else:
            stored = [self._stored(name, columns)]
        return pa.concat_tables([*stored, *beside])

    def _rows_beside(self, name: str, columns: Sequence[str]) -> list[pa.Table]:
        """Rows that are in no file: the spool's, and gaps rows for what could not be read."""
        parts = [self._spool_rows().tables.get(name, empty_table(name)).select(columns)]
        if name == "gaps":
            parts.append(self._synthetic_gaps().select(columns))
        return parts

    def _completed(self, stored: pa.Table) -> Completed:
        """Done records in the spool may complete rows that were sealed before they came."""
        completed = apply_done(stored, self._spool_rows().orphans)
        if completed.num_unknown:
            what = "completions of collectives whose entered record is not here"
            self._note("spool", f"{completed.num_unknown} {what}")
        return completed

    def result(self, name: str) -> pa.Table:
        """The rows of one result table; none when the trace was not analyzed with ``--write``.

        Raises:
            KeyError: no result table of that name.
            BadTrace: a file of the table cannot be read; file and column are named.
        """
        schema = arrow_schema(RESULT_TABLES[name].name)
        parts = [
            read_file(file, self._inside.name(file), name, schema.names)
            for file in self._files("results", name)
        ]
        rows = pa.concat_tables([schema.empty_table(), *parts])
        at = schema.get_field_index("run_id")  # not there in results of an earlier release
        return rows.set_column(at, schema.field(at), pc.fill_null(rows["run_id"], self.meta.run_id))

    def _read_meta(self) -> TraceMeta:
        file = self._inside.path("trace.json")
        where = f"{self._called}/trace.json" if self._unpacked is None else self._called
        if not file.is_file() or not self._inside.holds(file):
            raise BadTrace(
                "there is no trace.json, so this is not a trace",
                where=self._called,
                hint="give the folder that holds trace.json, or a .cascade.zip of it",
            )
        try:
            with file.open("rb") as opened:
                data = opened.read(_META_LIMIT + 1)
        except OSError as error:
            raise BadTrace(f"it cannot be read: {error.strerror}", where=where) from error
        if len(data) > _META_LIMIT:
            raise BadTrace("it is too large to be a trace.json", where=where)
        return parse_trace_meta(data, where)

    def _files(self, kind: str, table: str) -> list[Path]:
        files = self._inside.files(self._inside.path(kind, table), ".parquet")
        self._note_all(self._inside.notes)
        return files

    def _stored(self, name: str, columns: Sequence[str]) -> pa.Table:
        """The rows of the table's Parquet files, of this run."""
        parts, others = [], 0
        schema = pa.schema([arrow_schema(name).field(c) for c in columns])
        for file in self._files("events", name):
            part, num_others = self._stored_part(file, name, tuple(columns))
            parts.append(part)
            others += num_others
        if others:
            self._note_other_runs(f"events/{name}", others)
        return pa.concat_tables([schema.empty_table(), *parts])

    def _stored_part(self, file: Path, name: str, columns: tuple[str, ...]) -> tuple[pa.Table, int]:
        """This run's rows of one file, and how many it has of others."""
        called = self._inside.name(file)
        if one_run(file, self.meta.run_id):
            read = partial(read_file, file, called, name, columns)
            return self._cache.get(file, columns, read), 0
        with_run = tuple(dict.fromkeys(["run_id", *columns]))
        part = self._cache.get(file, with_run, partial(read_file, file, called, name, with_run))
        mine = part.filter(pc.equal(part["run_id"], self.meta.run_id))
        return mine.select(list(columns)), part.num_rows - mine.num_rows

    def _spool_rows(self) -> SpoolRows:
        if self._spool is None:
            self._spool = read_spool(self._inside, self.meta.run_id, self._leave_spool)
            self._note_all(self._inside.notes)
            self._note_all(self._spool.notes)
            if self._spool.num_other_runs:
                self._note_other_runs("spool", self._spool.num_other_runs)
        return self._spool

    def _synthetic_gaps(self) -> pa.Table:
        """Gaps rows for what could not be read: torn segments, tables of a newer writer."""
        if self._gaps is None:
            unknown, notes = losses_of_unknown_tables(self._inside, self.meta.run_id)
            self._note_all(notes)
            losses = [*self._spool_rows().losses, *unknown]
            index = SeqIndex(self._rows_as_read, {loss.actor for loss in losses})
            rows = gaps_rows(losses, index.of, self.meta.run_id, self.meta.created_ns)
            self._gaps = events_to_table("gaps", rows)
        return self._gaps

    def _rows_as_read(self, name: str, columns: Sequence[str]) -> pa.Table:
        spool = self._spool_rows().tables.get(name, empty_table(name))
        return pa.concat_tables([self._stored(name, columns), spool.select(columns)])

    def _note_other_runs(self, where: str, num_rows: int) -> None:
        self._note(where, f"{num_rows} rows of other runs than {self.meta.run_id} were left out")

    def _note(self, where: str, what: str) -> None:
        self._note_all([SourceNote(where=where, what=what)])

    def _note_all(self, notes: Sequence[SourceNote]) -> None:
        self.notes += [note for note in notes if note not in self.notes]
