"""One run in the embedded store: which seqs it has, its newest rows, its folder, its trace.json."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from pathlib import Path

import msgspec
import pyarrow as pa

from cascade_runtime.vocabulary.events import SCHEMA_VERSION, CollectiveDone, Gaps
from cascade_runtime.vocabulary.trace_meta import TraceMeta, format_trace_meta, parse_trace_meta
from collector.hot.hot_rows import HotRows
from collector.hot.journal import RunRow, SpanRow
from collector.hot.run_files import RunFiles
from collector.hot.sift import Part
from collector.hot.spans import Known

ANY_ACTOR = (-1, -1)
"""Among damaged actors: every actor that has no rows."""


class Run:
    """What the store knows of a run while it is open.

    Attributes:
        known: the seqs of an actor, by (rank, incarnation); the writer thread changes it.
        rows: hot rows; of a run that is cold, collectives that never completed.
        num_rows: rows stored, hot and sealed.
        meta_json: the trace.json that was sent; None until one is.
        damaged: actors of which a recovery may have lost rows; ANY_ACTOR: those without rows too.
        publishing: held while the run's folder is written.
        last_row_s: when this process last took a row or a trace.json of it; None when it did not.
        viewed: the tables that its views.sql was written for.
        flushed_commit: everything up to it is in the folder and no longer in the journal.
    """

    def __init__(self, row: RunRow, root: Path) -> None:
        self.run_id = row.run_id
        self.state = row.state
        self.files = RunFiles(root)
        self.known: dict[tuple[int, int], Known] = {}
        self.rows = HotRows()
        self.meta_json = row.meta
        self.damaged: set[tuple[int, int]] = set()
        self.publishing = threading.Lock()
        self.first_seen_ns = row.first_seen_ns
        self.last_seen_ns = row.last_seen_ns
        self.last_row_s: float | None = None
        self.flushed_commit = row.commit_no
        self.meta_changed = row.state != "cold"
        self.num_published: dict[str, int] = {}
        self.viewed: frozenset[str] = frozenset()
        self.num_rows = row.num_rows

    @property
    def has_news(self) -> bool:
        """True when its folder is behind."""
        return self.meta_changed or self.rows.commit > self.flushed_commit

    def count_rows(self) -> int:
        """The seqs that are stored, counted anew."""
        return sum(len(known.stored) for known in list(self.known.values()))

    def seen(self, wall_ns: int, mono_s: float) -> None:
        """Rows came now. A wall clock that was set back does not make the run older."""
        self.last_seen_ns = max(self.last_seen_ns, wall_ns)
        self.last_row_s = mono_s

    def known_of(self, actor: tuple[int, int]) -> Known:
        """What is known of an actor, made when there is nothing."""
        found = self.known.get(actor)
        if found is None:
            found = self.known[actor] = Known()
        return found

    def cover(self, part: Part) -> None:
        """The ``gaps`` rows of a part say which seqs will not come."""
        for gap in part.records or ():
            if type(gap) is Gaps:
                self._cover((gap.rank, gap.incarnation), gap.first_seq, gap.last_seq)
        if "gaps" in (part.tables or {}):
            self.cover_rows(part.tables["gaps"])  # type: ignore[index]

    def cover_rows(self, gaps: pa.Table) -> None:
        """Rows of ``gaps`` say which seqs will not come."""
        names = ("rank", "incarnation", "first_seq", "last_seq")
        columns = [gaps[name].to_pylist() for name in names]
        for rank, incarnation, first, last in zip(*columns, strict=True):
            self._cover((rank, incarnation), first, last)

    def _cover(self, actor: tuple[int, int], first: int | None, last: int | None) -> None:
        if first is not None and last is not None and 0 <= first <= last:
            self.known_of(actor).covered.add(first, last)

    @property
    def meta(self) -> TraceMeta:
        """The trace.json that was sent, or one made up from the rows."""
        if self.meta_json is not None:
            return parse_trace_meta(self.meta_json, self.run_id)
        tables = set(self.rows.tables()) | {f.name for f in self.files.root.glob("events/*")}
        return TraceMeta(
            schema_version=SCHEMA_VERSION,
            run_id=self.run_id,
            name=self.run_id,
            world_size=len({rank for rank, _ in list(self.known)}),
            mode="imported",
            policy=None,
            created_ns=self.first_seen_ns,
            recorded_tables=sorted(tables),
            tool_versions={},
        )

    @property
    def meta_text(self) -> bytes:
        """The text of the folder's trace.json."""
        return format_trace_meta(self.meta)

    def row(self, commit_no: int, orphans: Iterable[CollectiveDone] = ()) -> RunRow:
        """The run as a row of the catalog."""
        kept = list(orphans)
        return RunRow(
            self.run_id,
            self.state,
            self.meta_json,
            self.first_seen_ns,
            self.last_seen_ns,
            self.num_rows,
            commit_no,
            msgspec.msgpack.encode(kept) if kept else None,
        )

    def span_rows(self) -> list[SpanRow]:
        """The spans as rows of the catalog."""
        return [
            (self.run_id, rank, incarnation, kind, first, last)
            for (rank, incarnation), known in list(self.known.items())
            for kind, spans in (("stored", known.stored), ("covered", known.covered))
            for first, last in spans
        ]
